"""The definition of a case before it runs: criteria, session, scenario and rubrics."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.agents.workspace import EvalsetEntry
from workbench.files.criteria import Criterion
from workbench.files.evalset import EvalCase
from workbench.results.json_text import compact, pretty, pretty_lines
from workbench.results.lines import Line, flow, fold, safe, wrap, wrap_indented
from workbench.results.rows import View, label, part, under
from workbench.text.counting import amount, counted, threshold
from workbench.text.safe_text import one_line

STATE_LINES = 3


def criteria_part(entry: EvalsetEntry, view: View) -> Iterator[Line]:
    """Yield the criteria, one per line, and the reason for them."""
    lead = label("criteria")
    for criterion in entry.criteria.config.criteria:
        line = _criterion(criterion)
        after_name = line.plain.index(" ")
        yield from under(lead, flow((line[:after_name], line[after_name + 1 :]), view.room, " "))
        lead = Text()
    if lead:
        yield from part("criteria", Text.styled("none", "status-not-evaluated"), view)
    yield from under(Text(), wrap(safe(entry.criteria.reason, "muted"), view.room))


def case_setting(case: EvalCase, view: View, *, ran: bool) -> Iterator[Line]:
    """Yield the case's settings besides its turns. After a run, only those that its transcript needs."""
    if case.session_input and not ran:
        yield from under(label("session"), _session(case.session_input, view))
    if case.scenario is not None:
        yield from _scenario(case.scenario, view)
    lead = label("rubrics")
    for rubric in case.rubrics:
        yield from under(lead, wrap(_rubric(rubric), view.room))
        lead = Text()
    if case.final_session_state and not ran:
        yield from under(label("end state"), pretty_lines(case.final_session_state, view.room))


def _criterion(criterion: Criterion) -> Line:
    limit = " without a threshold" if criterion.is_informational else f" ≥ {threshold(criterion.threshold)}"
    words = ", ".join(_option_words(criterion.options))
    options = f", {one_line(words, limit=300)}" if words else ""
    return Text.assemble((one_line(criterion.name, limit=200), "strong"), limit, (options, "muted"))


_NAMES = {"judge_model": "judge", "match_type": "match type"}


def _option_words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield `judge gemini-2.5-flash`, `5 samples`, `match type IN_ORDER`, `3 rubrics`: options as raw words."""
    for key, value in options.items():
        name = _NAMES.get(key, key.replace("_", " "))
        if key == "judge_model_options" and isinstance(value, dict):
            yield from _option_words(value)
        elif key == "num_samples" and isinstance(value, int):
            yield counted(value, "sample")
        elif isinstance(value, bool):
            yield name if value else f"no {name}"
        elif isinstance(value, dict | list):
            yield f"{len(value)} {name}"
        elif value is not None:
            yield f"{name} {amount(value) if isinstance(value, int | float) else value}"


def _session(session: dict[str, Any], view: View) -> Iterator[Line]:
    names = {"user_id": "user", "session_id": "session", "app_name": "app"}
    parts = [f"{word} {one_line(str(session[key]))}  " for key, word in names.items() if session.get(key)]
    if parts:
        yield from wrap(Text("".join(parts)), view.room)
    if session.get("state"):
        lead = Text.styled("state ", "muted")
        lines = wrap(Text.assemble(lead, safe(compact(session["state"]))), view.room)
        if len(lines) > 1 and view.full:
            lines = wrap_indented(lead + pretty(session["state"]), view.room)
        elif len(lines) > STATE_LINES:
            lines = [*lines[:STATE_LINES], fold(f"… {counted(len(lines) - STATE_LINES, 'more line')}", view.room)]
        yield from lines


def _scenario(scenario: dict[str, Any], view: View) -> Iterator[Line]:
    """Yield the scenario of a simulated user."""
    names = {"starting_prompt": "starts with", "conversation_plan": "plan", "user_persona": "persona"}
    for key, value in scenario.items():
        if value is None:
            continue
        text = value if isinstance(value, str) else compact(value)
        yield from part(names.get(key, one_line(key, limit=12)), safe(text), view)


def _rubric(rubric: dict[str, Any]) -> Text:
    content = rubric.get("rubric_content")
    text = content.get("text_property") if isinstance(content, dict) else None
    name = f"{one_line(str(rubric.get('rubric_id') or '?'))}: "
    return Text.assemble((name, "name"), safe(str(text if text is not None else compact(content))))

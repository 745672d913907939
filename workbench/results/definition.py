"""The contents of files as lines: the criteria and settings of a case, and an evalset with its problems."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.agents.workspace import EvalsetEntry
from workbench.files.criteria import Criterion
from workbench.files.evalset import EvalCase
from workbench.files.faults import Fault
from workbench.results.document import Document, Subject
from workbench.results.lines import Line, View, flow, fold, hang_text, label, part, safe, under, wrap, wrap_indented
from workbench.results.texts import compact, pretty, pretty_lines
from workbench.text.counting import amount, counted, threshold
from workbench.text.json_values import objects, string
from workbench.text.safe_text import one_line

STATE_LINES = 3
_SCENARIO = {"starting_prompt": "starts with", "conversation_plan": "plan", "user_persona": "persona"}
_NAMES = {"judge_model": "judge", "match_type": "match type"}
_IN_CASE = re.compile(r"eval_cases\[([0-9]+)\]")


def criteria_part(entry: EvalsetEntry, view: View) -> Iterator[Line]:
    """Yield the criteria, one per line, and their source."""
    lines: list[Line] = []
    for criterion in entry.criteria.config.criteria:
        line = _criterion(criterion)
        after_name = line.plain.index(" ")
        lines += flow((line[:after_name], line[after_name + 1 :]), view.room, " ")
    lines = lines or [Text.styled("none", "status-not-evaluated")]
    yield from under(label("criteria"), [*lines, *wrap(safe(entry.criteria.reason, "muted"), view.room)])


def case_setting(case: EvalCase, view: View, *, ran: bool) -> Iterator[Line]:
    """Yield the settings of a case, without its turns. If the case `ran`, yield only its scenario and its rubrics."""
    if case.session_input and not ran:
        yield from under(label("session"), _session(case.session_input, view))
    if case.scenario is not None:
        yield from scenario_lines(case.scenario, view)
    rubrics: list[Line] = []
    for rubric in case.rubrics:
        content = rubric.get("rubric_content")
        wanted = content.get("text_property") if isinstance(content, dict) else None
        name = f"{one_line(str(rubric.get('rubric_id') or '?'))}: "
        said = safe(str(wanted if wanted is not None else compact(content)))
        rubrics += wrap(Text.assemble((name, "name"), said), view.room)
    yield from under(label("rubrics"), rubrics)
    if case.final_session_state and not ran:
        yield from under(label("end state"), pretty_lines(case.final_session_state, view.room))


def scenario_lines(scenario: Mapping[str, Any], view: View) -> Iterator[Line]:
    """Yield the starting prompt, the plan and the persona of a simulated user."""
    for key, value in scenario.items():
        if isinstance(value, dict) and value.get("id"):
            about = f"{string(value['id'])}  {string(value.get('description'))}"
            does = (
                f"· {string(one.get('name'))}: {string(one.get('description'))}"
                for one in objects(value.get("behaviors"))
            )
            value = "\n".join([about, *does])
        if value is not None:
            text = value.strip() if isinstance(value, str) else compact(value)
            yield from part(_SCENARIO.get(key, one_line(key, limit=12)), safe(text), view)


def _criterion(criterion: Criterion) -> Line:
    limit = " without a threshold" if criterion.is_informational else f" ≥ {threshold(criterion.threshold)}"
    words = ", ".join(_option_words(criterion.options))
    options = f", {one_line(words, limit=300)}" if words else ""
    return Text.assemble((one_line(criterion.name, limit=200), "strong"), limit, (options, "muted"))


def _option_words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield options as raw text: `judge gemini-2.5-flash`, `5 samples`, `match type IN_ORDER`, `3 rubrics`."""
    for key, value in options.items():
        name = _NAMES.get(key, key.replace("_", " "))
        if key == "judge_model_options" and isinstance(value, dict):
            yield from _option_words(value)
        elif key == "num_samples" and isinstance(value, int):
            yield counted(value, "sample")
        elif isinstance(value, bool):
            yield name if value else f"no {name}"
        elif isinstance(value, dict | list):
            yield counted(len(value), name.removesuffix("s"), name)
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


def file_document(entry: EvalsetEntry | None, view: View, found: Iterable[Fault] = ()) -> Document:
    """Return an evalset as a document, its faults first. Without an `entry`, the document is empty."""
    document = Document()
    if entry is None:
        return document
    document.add(fault_lines(file_faults(entry, found), entry, view))
    document.gap()
    document.add(file_lines(entry, view))
    return document


def file_faults(entry: EvalsetEntry, found: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults of an evalset and of its criteria, then the problems that `check` found, without duplicates."""
    return list(dict.fromkeys([*entry.document.faults, *entry.criteria.config.faults, *found]))


def file_lines(entry: EvalsetEntry, view: View) -> Iterator[Line]:
    """Yield the name, description, file, number of cases, agent and criteria of an evalset."""
    evalset = entry.document
    yield from part("evalset", safe(evalset.name or evalset.eval_set_id, "strong"), view)
    if evalset.description:
        yield from part("", safe(evalset.description), view)
    yield from part("file", safe(entry.relative), view)
    yield from part("cases", Text(f"{len(evalset.cases):,}"), view)
    if entry.agent is not None:
        because = safe(f", because {entry.agent_reason}", "muted")
        yield from part("agent", Text.assemble(safe(entry.agent.name, "strong"), because), view)
    else:
        yield from part("agent", Text.assemble(("none: ", "status-error"), safe(entry.agent_reason)), view)
    yield from criteria_part(entry, view)


def case_faults(subject: Subject, view: View) -> Iterator[Line]:
    """Yield the file's faults that concern one case, and the problems that `check` found."""
    entry, case = subject.entry, subject.case
    if entry is None or case is None:
        return
    # The search starts from the faults, because a file may have 50,000 cases but few faults.
    cases, mine = entry.document.cases, []
    for fault in entry.document.faults:
        place = _IN_CASE.match(fault.json_path)
        if place is not None and int(place[1]) < len(cases) and cases[int(place[1])].eval_id == case.eval_id:
            mine.append(fault)
    yield from fault_lines(dict.fromkeys([*mine, *subject.found]), entry, view)


def fault_lines(faults: Iterable[Fault], entry: EvalsetEntry, view: View) -> Iterator[Line]:
    """Yield every fault except notes, errors first: its message, place and hint."""
    width = view.width - 1
    listed = [fault for fault in faults if fault.severity != "note"]  # The page names the evalset's agent already.
    for fault in sorted(listed, key=lambda fault: (fault.severity != "error", fault.line, fault.column)):
        error = fault.severity == "error"
        style = "status-error" if error else "status-not-evaluated"
        file = entry.relative if fault.file == entry.file else fault.file.name
        sign = Text.styled(" ! " if error else " ~ ", style)
        kind = Text() if error else Text.styled("warning: ", style)
        yield from hang_text(sign, Text.assemble(kind, safe(fault.message, "strong" if error else "")), width, 3)
        yield from hang_text(Text(), safe(fault.where(file), "muted"), width, 3)
        if fault.hint:
            yield from hang_text(Text.styled(" → ", "hint"), safe(fault.hint), width, 3)

"""The simulated user: its task, the verdicts on its messages, the questions that made them, and the end."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.document import Document, Subject
from workbench.results.judge_texts import cost_words, verdict_mark, vote_words, who
from workbench.results.judged import count, versions
from workbench.results.judges.questions import question_lines
from workbench.results.lines import Line, flow, hang, has_style, heading, safe, shortened, wrap
from workbench.results.rows import View, label, under
from workbench.store.execution import CaseRecord
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line

BRIEF_SETTING = 6
"""The number of lines of a plan or persona above the conversation while it is folded."""
_ENDS = {"stop_signal": "■ ended by the user's stop signal", "turn_limit": "■ turn limit reached"}
_NAMES = (("conversation_plan", "plan"), ("starting_prompt", "starts with"), ("user_persona", "persona"))


def add_simulated_user(document: Document, subject: Subject, view: View, asked: View) -> None:
    """Add the task of the simulated user, and the questions that made its messages and its end.

    `asked` is the view of the questions.
    """
    record, scenario = subject.record, scenario_of(subject)
    if not scenario and (record is None or not record.simulated):
        return
    document.gap()
    document.add([heading("simulated user", view.width)])
    _add_setting(document, scenario, view)
    if record is None:
        return
    for event in record.simulated:
        key = "simulated/end" if event.ended else f"simulated/{event.turn}"
        name = "end" if event.ended else f"turn {event.turn + 1}"
        lines = list(_asked(name, mapping(event.question), asked.is_open(key), view))
        if event.question:
            document.add_item(key, lines, opens=True)


def end_words(record: CaseRecord) -> str:
    """Return `■ ended by the user's stop signal`, or "" if the simulated user did not end the conversation."""
    return next((_ENDS[event.ended] for event in record.simulated if event.ended), "")


def scenario_of(subject: Subject) -> dict[str, Any]:
    """Return the scenario of the run, or else that of the file."""
    if subject.record is not None and subject.record.scenario:
        return mapping(subject.record.scenario)
    return mapping(subject.case.scenario) if subject.case is not None else {}


def _add_setting(document: Document, scenario: dict[str, Any], view: View) -> None:
    """Add the setting above the conversation, as an item if it is long and can be unfolded."""
    key = "simulated/setting"
    room = max(view.width - 2, 20)
    brief = list(_setting(scenario, room, full=view.full))
    folded = any(has_style(line, "fold") for line in brief)
    lines = list(_setting(scenario, room, full=True)) if view.is_open(key) else brief
    if folded:
        document.add_item(key, hang(Text(), lines, 1), opens=True)
    else:
        document.add(hang(Text(), lines, 1))


def _setting(scenario: dict[str, Any], width: int, *, full: bool) -> Iterator[Line]:
    """Yield plan, starting prompt and persona, each under its name."""
    for key, name in _NAMES:
        lines = list(_setting_part(scenario.get(key), width))
        if not lines:
            continue
        yield Text.styled(name, "label")
        yield from hang(Text(), lines if full else shortened(lines, BRIEF_SETTING, width), 2)


def _setting_part(value: Any, width: int) -> Iterator[Line]:
    room = max(width - 2, 10)
    if isinstance(value, str) and value.strip():
        yield from wrap(safe(value.strip()), room)
    elif isinstance(value, dict):
        name = one_line(string(value.get("id")), limit=100)
        yield from wrap(Text.assemble((f"{name}  ", "name"), safe(string(value.get("description")))), room)
        for behaviour in objects(value.get("behaviors")):
            name = f"· {one_line(string(behaviour.get('name')), limit=100)}: "
            yield from wrap(Text.assemble((name, "label"), safe(string(behaviour.get("description")))), room)


def _word(result: MetricResult, scenario: dict[str, Any]) -> str:
    """Return the verdict on the message itself.

    The last turn's score can also judge the decision to stop there.
    """
    if result.details.get("compared") is True:
        same = string(result.details.get("message")).strip() == string(scenario.get("starting_prompt")).strip()
        return "unread" if result.score is None else "valid" if same else "invalid"
    votes = mapping(result.details.get("votes"))
    valid, invalid = count(votes.get("valid")), count(votes.get("invalid"))
    return "valid" if valid > invalid else "invalid" if invalid else "unread"


def message_words(result: MetricResult, record: CaseRecord) -> list[Line]:
    """Return the verdict on a simulated user's message, and how it was reached: by a comparison or by votes."""
    verdict = _word(result, mapping(record.scenario))
    words = [verdict_mark(verdict)]
    if result.details.get("compared") is True:
        return [*words, Text.styled("compared with the starting prompt", "muted")]
    return [*words, *vote_words(result.details, verdict)]


def _asked(name: str, question: dict[str, Any], opened: bool, view: View) -> Iterator[Line]:
    """Yield the model of the simulated user and its cost, and, if `opened`, the question and its replies."""
    speaker = who(mapping(question.get("judge")), versions([question]))
    parts: list[Line] = [*speaker, *cost_words([question])]
    yield from under(label(name), flow(parts, view.room))
    yield from question_lines(question, opened, view, brief=False)

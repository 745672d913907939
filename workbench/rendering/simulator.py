"""The pane "Simulator": the plan beside the simulated user's messages, their verdicts, and the end."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from workbench.events import MetricResult
from workbench.execution import CaseRecord, Turn
from workbench.json_values import mapping, objects, string
from workbench.rendering.document import Aside, Document, Subject, Target
from workbench.rendering.faces import FACES, SPLIT
from workbench.rendering.judge_texts import cost_words, criterion_head, mark, verdict_mark, vote_words, who
from workbench.rendering.judged import count, is_split, message_text, question_key, shown_in, versions
from workbench.rendering.lines import Line, Segment, flow, hang, hang_text, heading, joined, safe, shortened, wrap
from workbench.rendering.replies import question_lines
from workbench.rendering.rows import View, label, part, remark, under
from workbench.rendering.texts import text_lines
from workbench.text import one_line

BRIEF_SETTING = 6
"""The number of lines of a plan or persona above the conversation while it is folded."""
_ENDS = {
    "stop_signal": ("■", "ended by the user's stop signal"),
    "turn_limit": ("■", "turn limit reached"),
}
_NAMES = (("conversation_plan", "plan"), ("starting_prompt", "starts with"), ("user_persona", "persona"))


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane: the setting beside each message if there is room, else above the conversation."""
    document = Document()
    record, scenario = subject.record, scenario_of(subject)
    if record is not None and (criterion := shown_in(record.metrics, "simulator")):
        document.add(criterion_head(record, record.metrics[criterion], view))
    if not view.aside:
        _add_setting(document, scenario, view)
    _conversation(document, subject, view)
    return document


def scenario_of(subject: Subject) -> dict[str, Any]:
    """Return the scenario of the run, or else that of the file."""
    if subject.record is not None and subject.record.scenario:
        return mapping(subject.record.scenario)
    return mapping(subject.case.scenario) if subject.case is not None else {}


def _beside(scenario: dict[str, Any], width: int) -> Iterator[Line]:
    """Yield the setting that is shown beside each message."""
    yield (Segment("the user's task", "heading"),)
    yield from _setting(scenario, width, full=True)


def _add_setting(document: Document, scenario: dict[str, Any], view: View) -> None:
    """Add the setting above the conversation, as an item if it is long and can be unfolded."""
    key = "simulated/setting"
    room = max(view.width - 2, 20)
    brief = list(_setting(scenario, room, full=view.full))
    folded = any(segment.style == "fold" for line in brief for segment in line)
    lines = list(_setting(scenario, room, full=True)) if view.is_open(key) else brief
    if folded:
        document.add_item(key, hang([], lines, 1), opens=True)
    else:
        document.add(hang([], lines, 1))


def _setting(scenario: dict[str, Any], width: int, *, full: bool) -> Iterator[Line]:
    """Yield plan, starting prompt and persona, each under its name."""
    for key, name in _NAMES:
        lines = list(_setting_part(scenario.get(key), width))
        if not lines:
            continue
        yield (Segment(name, "label"),)
        yield from hang([], lines if full else shortened(lines, BRIEF_SETTING, width), 2)


def _setting_part(value: Any, width: int) -> Iterator[Line]:
    room = max(width - 2, 10)
    if isinstance(value, str) and value.strip():
        yield from wrap([safe(value.strip())], room)
    elif isinstance(value, dict):
        name = one_line(string(value.get("id")), limit=100)
        yield from wrap([Segment(f"{name}  ", "name"), safe(string(value.get("description")))], room)
        for behaviour in objects(value.get("behaviors")):
            segments = [
                Segment(f"· {one_line(string(behaviour.get('name')), limit=100)}: ", "label"),
                safe(string(behaviour.get("description"))),
            ]
            yield from wrap(segments, room)


def _conversation(document: Document, subject: Subject, view: View) -> None:
    record = subject.record
    scenario = scenario_of(subject)
    setting = partial(_beside, scenario)
    document.gap()
    if record is None or record.state == "queued":
        document.add(remark("The conversation has not started.", view))
        return
    asked = {event.turn: mapping(event.question) for event in record.simulated if not event.ended}
    bad = 0
    for index, turn in enumerate(record.turns):
        result = turn.metrics.get(shown_in(turn.metrics, "simulator"))
        document.begin_turn([heading(f"turn {index + 1}", view.width, _verdict(result, scenario))])
        key = f"simulated/{index}"
        document.add_item(
            key,
            _message(turn, asked.get(index, {}), result, scenario, view.is_open(key), view),
            opens=bool(asked.get(index)),
            targets=_targets(record, index),
            aside=setting,
        )
        document.add(_answer(turn, view))
        if not bad and result is not None and result.status == "failed":
            bad = index
    wanted = bad if record.finished else len(record.turns) - 1
    document.opening_item = document.item_named(f"simulated/{wanted}") or 0
    _end(document, record, setting, view)


def _targets(record: CaseRecord, index: int) -> tuple[Target, ...]:
    criterion = shown_in(record.turns[index].metrics, "simulator") if index < len(record.turns) else ""
    return (Target("Judge", (question_key(criterion, index, 0),)),) if criterion else ()


def _verdict(result: MetricResult | None, scenario: dict[str, Any]) -> Line:
    """Return the verdict on a turn's message."""
    if result is None:
        return ()
    marks = [(mark(SPLIT),)] if is_split(result) else []
    return joined([(verdict_mark(_word(result, scenario)),), *marks], "  ", "")


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


def _judged(result: MetricResult | None, scenario: dict[str, Any]) -> list[Line]:
    """Return how the verdict was reached: by a comparison or by votes."""
    if result is None:
        return []
    if result.details.get("compared") is True:
        return [(Segment("compared with the starting prompt", "muted"),)]
    return vote_words(result.details, _word(result, scenario))


def _message(
    turn: Turn,
    question: dict[str, Any],
    result: MetricResult | None,
    scenario: dict[str, Any],
    opened: bool,
    view: View,
) -> Iterator[Line]:
    text = message_text(turn.user)
    yield from hang(
        [Segment(" user", "label")],
        text_lines(text, max(view.width - 9, 10), view, "user"),
        8 if view.width > 30 else 3,
    )
    yield from hang([], flow(_judged(result, scenario), max(view.width - 9, 10)), 8)
    if result is not None and result.reason and result.status != "passed":
        yield from hang_text([], [safe(result.reason, "muted")], view.width - 1, 8)
    if question:
        yield from _asked(question, opened, view)


def _asked(question: dict[str, Any], opened: bool, view: View) -> Iterator[Line]:
    """Yield the model of the simulated user and its cost, or, if `opened`, the question and its replies."""
    if opened:
        yield from question_lines(question, True, view)
    else:
        speaker = who(mapping(question.get("judge")), versions([question]))
        parts: list[Line] = [(Segment("▸ question", "fold"),), *speaker, *cost_words([question])]
        yield from hang([], flow(parts, max(view.width - 9, 10)), 8)


def _answer(turn: Turn, view: View) -> Iterator[Line]:
    actual = turn.actual
    if actual is None:
        yield from hang([Segment(" agent", "label")], [(Segment("…", "muted"),)], 8)
        return
    text = message_text(mapping(actual).get("final_response"))
    yield from hang([Segment(" agent", "label")], text_lines(text, max(view.width - 9, 10), view), 8)


def _end(document: Document, record: CaseRecord, setting: Aside, view: View) -> None:
    """Add the end of the conversation, and the judge's verdict on it."""
    end = next((event for event in record.simulated if event.ended), None)
    document.gap()
    if end is not None:
        glyph, text = _ENDS[end.ended]
        key = "simulated/end"
        lines = [*hang_text([Segment(f" {glyph} ", "label")], [Segment(text, "strong")], view.width, 3)]
        if end.question:
            lines += _asked(mapping(end.question), view.is_open(key), view)
        document.add_item(key, lines, opens=bool(end.question), aside=setting)
    elif record.error is not None:
        document.add(part("ended by", [safe(record.error.message, FACES[record.state].variable)], view))
        unanswered = next((event.question for event in record.simulated if event.turn == len(record.turns)), {})
        if unanswered:
            lines = list(_asked(mapping(unanswered), view.is_open("simulated/end"), view))
            document.add_item("simulated/end", lines, opens=True, aside=setting)
    elif not record.finished:
        document.add(remark("Still running.", view))
    whole = record.metrics.get(shown_in(record.metrics, "simulator"))
    stop = mapping(whole.details.get("stop")) if whole is not None else {}
    if stop:
        verdict = string(stop.get("verdict"))
        votes = flow([(verdict_mark(verdict),), *vote_words(stop, verdict)], view.room)
        document.add(under(label("end judged"), votes))


def applies(subject: Subject, criteria: frozenset[str]) -> bool:
    """Return whether a case has this pane."""
    return bool(scenario_of(subject)) or (subject.record is not None and bool(subject.record.simulated))

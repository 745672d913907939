"""The exact questions to judges and simulated users with their replies, and the user's scenario."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.definition import scenario_lines
from workbench.results.document import Document, Subject
from workbench.results.faces import LABELS, VERDICTS
from workbench.results.judged import (
    cost_words,
    count,
    judge_names,
    mark,
    question_key,
    questions,
    reply_cost,
    verdict_mark,
    verdict_of,
    versions,
    vote_words,
)
from workbench.results.lines import (
    MIN_WIDTH,
    Line,
    View,
    cut_line,
    flow,
    fold,
    hang,
    hang_text,
    heading,
    label,
    safe,
    shortened,
    under,
    wrap,
)
from workbench.results.texts import pretty_lines
from workbench.results.triage import overridden
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain

_INDENT = 3
_BODY = 5
_SETTING_LINES = 12
"""Maximum number of lines of a folded scenario."""
_ABOUT = {
    "final_response_match": "does the answer match the reference?",
    "rubrics": "which rubrics are met?",
    "sentences": "what are the sentences of the text?",
    "claims": "what supports the sentences?",
    "user_message": "does the user's message follow the plan?",
    "simulated_user": "what does the user say next?",
    "score": "which score does your prompt give?",
}


def add_questions(
    document: Document, subject: Subject, result: MetricResult, turn: int | None, view: View, *, brief: bool
) -> list[str]:
    """Add the questions about a turn (None: the case) as items. Folded ones have replies if `brief`. Return keys."""
    keys: list[str] = []
    for place, question in enumerate(questions(result.details)):
        key = question_key(result.name, turn, place)
        number = None if turn is None else turn + 1
        mine = overridden(subject, result.name, number, "verdict", string(question.get("kind")))
        opened = view.is_open(key)
        lines = [*_question_head(question, view, mine), *question_lines(question, opened, view, brief=brief)]
        document.add_item(key, lines, opens=True)
        keys.append(key)
    return keys


def _question_head(question: dict[str, Any], view: View, mine: Line) -> Iterator[Line]:
    """Yield the topic of a question, its verdicts and its cost: `does the answer match the reference?  3 × ✓ valid`."""
    kind = string(question.get("kind"))
    about = _ABOUT.get(kind) or one_line(kind, limit=60) or "a question"
    head: list[Line] = [Text.styled(about, "strong")]
    for verdict, many in Counter(map(verdict_of, objects(question.get("replies")))).items():
        if verdict in VERDICTS:
            head.append(Text.assemble((f"{many} × ", "muted"), verdict_mark(verdict)))
    yield from hang(Text(), flow([*head, *cost_words([question]), mine[:1]], max(view.width - 1, 10)), 1)


def question_lines(question: dict[str, Any], opened: bool, view: View, *, brief: bool = True) -> Iterator[Line]:
    """Yield the size of a question, its text if it is `opened`, and its replies if it is `opened` or `brief`."""
    prompt = string(question.get("prompt"))
    sign = "▾" if opened else "▸"
    size = counted(len(prompt), "character") if prompt else "empty"
    if not opened and not brief:
        size += f", {counted(len(objects(question.get('replies'))), 'reply', 'replies')}"
    style = "label" if opened else "fold"
    line = Text.assemble(" " * _INDENT, (f"{sign} question", style), (f"  {size}", "muted"))
    yield cut_line(line, max(view.width, MIN_WIDTH))
    if opened:
        yield from hang_text(Text(), safe(prompt), view.width, _BODY)
    for reply in objects(question.get("replies")) if opened or brief else ():
        yield from _reply(reply, opened, view)


def _reply(reply: dict[str, Any], opened: bool, view: View) -> Iterator[Line]:
    room = max(view.width - _BODY, 10)
    first, *more = list(_answer(reply)) or [Text()]
    first = Text.assemble((f"reply {count(reply.get('sample')) or '?'}  ", "label"), first)
    facts = (one_line(string(reply.get("model_version")), limit=200), *reply_cost([reply]))
    head = [first, *more, *(Text.styled(text, "muted") for text in facts)]
    yield from hang(Text(), flow(head, max(view.width - _INDENT, 10)), _INDENT)
    fault = mapping(reply.get("fault"))
    if fault:
        yield from hang_text(Text.styled("   ! ", "status-error"), _fault(fault), view.width, _BODY)
    unread = string(reply.get("unread"))
    if unread and unread != string(fault.get("message")):
        words = Text.assemble(("unreadable: ", "status-error"), safe(unread))
        yield from hang_text(Text.styled("   ! ", "status-error"), words, view.width, _BODY)
    text = reply.get("text")
    if isinstance(text, str):
        yield from hang(Text(), _raw(text, opened, room), _BODY)
    elif not fault:
        yield from hang(Text(), [Text.styled("no reply", "muted")], _BODY)


def _answer(reply: dict[str, Any]) -> Iterator[Line]:
    """Yield the parsed content of a reply: a verdict, verdicts of rubrics, labels, or a number of sentences."""
    verdict = reply.get("verdict")
    if word := verdict_of(reply):
        yield verdict_mark(word)
    elif isinstance(verdict, dict):
        found = Counter(string(mapping(item).get("verdict")) for item in verdict.values())
        yield from (Text.assemble((f"{many} × ", "muted"), verdict_mark(name)) for name, many in found.items())
    elif isinstance(verdict, list):
        labels = Counter(item for item in verdict if isinstance(item, str) and item in LABELS)
        if labels and sum(labels.values()) == len(verdict):
            yield from (
                Text.assemble((f"{labels[name]} × ", "muted"), mark(LABELS[name])) for name in LABELS if labels[name]
            )
        else:
            yield Text(counted(len(verdict), "sentence"))
    else:
        yield Text.styled("no verdict" if verdict is None else one_line(str(verdict), limit=60), "muted")


def _fault(fault: dict[str, Any]) -> Text:
    code = one_line(string(fault.get("code")), limit=100)
    kind = f"{one_line(string(fault.get('kind')), limit=40)}{f' {code}' if code else ''}: "
    # Most messages of services begin with the code.
    message = string(fault.get("message")).removeprefix(f"{code}: " if code else "")
    return Text.assemble((kind, "status-error"), plain(message) or "no details")


def _raw(text: str, opened: bool, room: int) -> list[Line]:
    """Return the reply as received. If it is `opened`, long JSON on one line is indented."""
    if opened and text[:1] in "{[" and "\n" not in text and len(text) > room:
        try:
            return pretty_lines(json.loads(text), room)
        except (ValueError, RecursionError):
            pass
    lines = wrap(Text.styled(plain(text) or "(empty)", "" if text else "muted"), room)
    return lines if opened else shortened(lines, 3, room)


_ENDS = {"stop_signal": "■ ended by the user's stop signal", "turn_limit": "■ turn limit reached"}


def add_simulated_user(document: Document, subject: Subject, view: View, question_view: View) -> None:
    """Add the scenario of a simulated user, if any, and its questions. `question_view` unfolds them."""
    record = subject.record
    # The file has the scenario if the run has none.
    scenario = mapping(record.scenario) if record is not None else {}
    if not scenario and subject.case is not None:
        scenario = mapping(subject.case.scenario)
    if not scenario and (record is None or not record.simulated):
        return
    document.gap()
    document.add([heading("simulated user", view.width)])
    key, lines = "simulated/setting", list(scenario_lines(scenario, view))
    if len(lines) > _SETTING_LINES and not view.full:
        more = fold(f" … {counted(len(lines) - _SETTING_LINES, 'more line')}", view.width)
        folded = [*lines[:_SETTING_LINES], more]
        document.add_item(key, lines if view.is_open(key) else folded, opens=True)
    else:
        document.add(lines)
    if record is None:
        return
    for event in (one for one in record.simulated if one.question):
        key = "simulated/end" if event.ended else f"simulated/{event.turn}"
        name = "end" if event.ended else f"turn {event.turn + 1}"
        question = mapping(event.question)
        speaker = judge_names(mapping(question.get("judge")), versions([question]))
        lines = list(under(label(name), flow([*speaker, *cost_words([question])], view.room)))
        lines += question_lines(question, question_view.is_open(key), view, brief=False)
        document.add_item(key, lines, opens=True)


def end_words(record: CaseRecord) -> str:
    """Return how a conversation with a simulated user ended, or "": `■ ended by the user's stop signal`."""
    return next((_ENDS[event.ended] for event in record.simulated if event.ended), "")


def message_words(result: MetricResult, record: CaseRecord) -> list[Line]:
    """Return the verdict on a simulated user's message, with its votes or a note on the comparison."""
    if result.details.get("compared") is True:
        starting = string(mapping(record.scenario).get("starting_prompt")).strip()
        same = string(result.details.get("message")).strip() == starting
        verdict = "unread" if result.score is None else "valid" if same else "invalid"
        return [verdict_mark(verdict), Text.styled("compared with the starting prompt", "muted")]
    # The last turn's score can also judge the decision to stop there. The votes are about the message itself.
    votes = mapping(result.details.get("votes"))
    valid, invalid = count(votes.get("valid")), count(votes.get("invalid"))
    verdict = "valid" if valid > invalid else "invalid" if invalid else "unread"
    return [verdict_mark(verdict), *vote_words(result.details, verdict)]

"""Each rubric with its verdict, its votes and the judge's reason."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.document import Document, Subject, Target
from workbench.results.judge_texts import verdict_mark, vote_words
from workbench.results.judged import count, number, question_key, questions, replies
from workbench.results.lines import Line, flow, hang, hang_text, shortened, wrap
from workbench.results.rows import View, part
from workbench.results.triaged import overridden
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain

BRIEF_REASON = 4
"""The number of lines of a reason that are shown while it is folded."""
_GUTTER = 11
_ORIGINS = {
    "config": "from the criteria",
    "case": "from the case",
    "turn": "from the turn",
    "service": "from the service",
}


def account(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield how many rubrics were met, and which ones no criterion used."""
    yield from _over_the_case(result, view)
    yield from _unused(result, view)


def add_rubrics(document: Document, subject: Subject, index: int, result: MetricResult, view: View) -> list[str]:
    """Add the rubrics of turn `index` as items. Return the keys of those that are not met."""
    problems: list[str] = []
    for place, rubric in enumerate(objects(result.details.get("rubrics"))):
        key = f"rubric/{result.name}/{index}/{place}"
        given = _given(rubric, result)
        opened = view.is_open(key)
        mine = overridden(subject, result.name, index + 1, "rubric", string(rubric.get("rubric_id")))
        lines = [*_rubric(rubric, opened, view, mine), *(_each_vote(given, view) if opened else ())]
        asked = Target("Judges", (question_key(result.name, index, 0),))
        document.add_item(key, lines, opens=bool(given), targets=(asked,))
        if string(rubric.get("verdict")) != "yes":
            problems.append(key)
    return problems


def _over_the_case(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield how many rubrics were met in every turn, if there is more than one."""
    scores = [number(item.get("score")) for item in objects(result.details.get("rubrics"))]
    read = [score for score in scores if score is not None]
    if len(scores) > 1:
        met = sum(score == 1.0 for score in read)
        rest = f", {len(scores) - len(read)} unreadable" if len(read) < len(scores) else ""
        yield from part("rubrics", Text.assemble((f"{met} of {len(scores)}", "strong"), (f" met{rest}", "muted")), view)


def _unused(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the rubrics of the case that no criterion used."""
    names = result.details.get("unused")
    unused = [one_line(name, limit=100) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if unused:
        why = "no criterion uses them, because they have no type"
        yield from part("not used", Text.assemble((f"{', '.join(unused)}: ", "status-not-evaluated"), why), view)


def _rubric(rubric: dict[str, Any], opened: bool, view: View, mine: Line) -> Iterator[Line]:
    """Yield verdict and text, then votes and origin, then the reason."""
    verdict = string(rubric.get("verdict"))
    room = max(view.width - _GUTTER, 10)
    text = plain(string(rubric.get("text")).strip()) or "(no text)"
    name = one_line(string(rubric.get("rubric_id")), limit=100)
    lead = Text.assemble(" ", verdict_mark(verdict))
    strong = "" if verdict == "yes" else "strong"
    yield from hang_text(lead, Text.assemble((text, strong), mine), view.width, _GUTTER)
    votes = vote_words(rubric, verdict)
    origin = _ORIGINS.get(string(rubric.get("origin")), "")
    named: list[Line] = [Text.styled(name, "label")] if name != one_line(text, limit=100) else []
    parts = [*named, *votes, Text.styled(origin, "muted")]
    yield from hang(Text(), flow(parts, room), _GUTTER)
    reason = string(rubric.get("rationale")).strip()
    lines = wrap(Text.styled(plain(reason) or "no reason given", "muted"), room)
    yield from hang(Text(), lines if opened else shortened(lines, BRIEF_REASON, room), _GUTTER)


def _given(rubric: dict[str, Any], result: MetricResult) -> list[tuple[int, dict[str, Any]]]:
    """Return each sample's number and answer for a rubric: `{"verdict", "rationale"}`."""
    name = string(rubric.get("rubric_id"))
    asked = replies(questions(result.details))
    return [(count(reply.get("sample")), mapping(mapping(reply.get("verdict")).get(name))) for reply in asked]


def _each_vote(given: list[tuple[int, dict[str, Any]]], view: View) -> Iterator[Line]:
    for sample, vote in given:
        word = string(vote.get("verdict")) or "missing"
        why = plain(string(vote.get("rationale")).strip())
        text = Text.assemble((f"vote {sample}  ", "label"), verdict_mark(word), f"  {why}")
        yield from hang_text(Text(), text, view.width, _GUTTER)

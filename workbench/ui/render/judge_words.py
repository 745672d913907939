"""Who judged, how the votes fell and what that cost, in the same words on every pane."""

from collections.abc import Iterable, Iterator
from typing import Any

from workbench.events import MetricResult
from workbench.store import CaseRecord
from workbench.text import one_line, plain
from workbench.ui.render.judged import (
    all_asked,
    case_is_split,
    count,
    is_cached,
    is_heuristic,
    judge_of,
    mapping,
    number,
    replies,
    versions,
    words,
)
from workbench.ui.render.lines import Line, Segment, joined, rule
from workbench.ui.render.rows import View, part, remark
from workbench.ui.render.status import badge, score_text
from workbench.ui.status import FACES, HEURISTIC, SPLIT, VERDICTS, Face

_UNKNOWN = Face("·", "", "", 9)


def mark(face: Face) -> Segment:
    """`◐ split`."""
    return Segment(f"{face.glyph} {face.word}", face.variable)


def verdict_mark(verdict: Any) -> Segment:
    """`✓ yes`; of a verdict that is none of ours, its own word."""
    if isinstance(verdict, str) and verdict in VERDICTS:
        return mark(VERDICTS[verdict])
    text = one_line(verdict, limit=40) if isinstance(verdict, str) else ""
    return Segment(f"{_UNKNOWN.glyph} {text or 'no verdict'}", "muted")


def marks(record: CaseRecord, criterion: str) -> list[Line]:
    """What must be said beside a criterion's verdict wherever it stands: that rules judged, that votes disagree, that
    nobody was asked this time."""
    whole = record.metrics.get(criterion)
    found: list[Line] = []
    if whole is not None and is_heuristic(whole):
        found.append((mark(HEURISTIC),))
    if case_is_split(record, criterion):
        found.append((mark(SPLIT),))
    if is_cached(asked.question for asked in all_asked(record, criterion)):
        found.append((Segment("cached", "muted"),))
    return found


def criterion_head(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    """`─ hallucinations_v1 ──── 0.67 < 0.80  ✗ FAIL ─`, and who judged."""
    score = score_text(result)
    ending: Line = (*badge(result.status),)
    if score:
        ending = (Segment(f"{score}  ", FACES[result.status].variable), *ending)
    yield rule((Segment(one_line(result.name, limit=200), "heading"),), ending, view.width)
    yield from judge_lines(record, result, view)


def judge_lines(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    """Who judged a criterion: its name, what the service says it is, a foreign address, and what else must be known;
    then, where the verdict is none, why."""
    judge = judge_of(result)
    asked = [item.question for item in all_asked(record, result.name)]
    if judge:
        yield from part("judge", who(judge, versions(asked)), view)
        if note := words(judge.get("note")):
            glyph = f"{HEURISTIC.glyph} " if judge.get("kind") == "heuristic" else ""
            yield from part("", [Segment(f"{glyph}{plain(note)}", HEURISTIC.variable if glyph else "muted")], view)
    if result.reason and result.status in ("error", "not_evaluated", "not_applicable"):
        yield from part("why", [Segment(plain(result.reason), FACES[result.status].variable)], view)


def who(judge: dict[str, Any], answered_by: Iterable[str]) -> Line:
    """`gemini-2.5-flash · answered by gemini-2.5-flash-SCRIPTED · at http://…`."""
    name = one_line(words(judge.get("model")), limit=200) or "(no name)"
    parts: list[Line] = [(Segment(name, "strong"),)]
    others = [one_line(version, limit=200) for version in answered_by if version != judge.get("model")]
    if others:
        parts.append((Segment("answered by ", "muted"), Segment(", ".join(others[:4]))))
    if base_url := words(judge.get("base_url")):
        parts.append((Segment("at ", "muted"), Segment(one_line(base_url, limit=200), "status-not-evaluated")))
    return joined(parts)


def vote_words(item: dict[str, Any], verdict: str) -> Line:
    """`3 of 3 asked of 5`, `4 of 5 with all asked`, and where votes disagree all of them."""
    votes = {name: count(many) for name, many in mapping(item.get("votes")).items() if count(many) > 0}
    asked, of = count(item.get("asked")), count(item.get("of"))
    told: list[Segment] = []
    if asked:
        rest = f" asked of {of}" if asked < of else " with all asked" if of > 1 else ""
        told.append(Segment(f"{votes.get(verdict, 0)} of {asked}{rest}", "muted"))
    if len(votes) > 1:
        every = ", ".join(f"{many} {one_line(str(name), limit=20)}" for name, many in votes.items())
        told += [Segment("  " if told else ""), mark(SPLIT), Segment(f": {every}", SPLIT.variable)]
    return tuple(told)


def cost_words(asked: Iterable[dict[str, Any]]) -> Line:
    """`3 replies · 1.2 s · 2,310 tokens in, 120 out · 5 attempts · cached`: what some questions took."""
    found = replies(asked)
    told = [f"{len(found)} {'reply' if len(found) == 1 else 'replies'}"]
    told += reply_cost(found)
    return (Segment(" · ".join(told), "muted"),)


def reply_cost(found: list[dict[str, Any]]) -> list[str]:
    """Time, tokens, attempts and where it came from, of one reply or several."""
    told: list[str] = []
    fresh = [reply for reply in found if reply.get("cached") is not True]
    seconds = sum(number(reply.get("seconds")) or 0.0 for reply in fresh)
    if seconds:
        told.append(f"{seconds:.1f} s")
    tokens = [sum(count(reply.get(key)) for reply in found) for key in ("input_tokens", "output_tokens")]
    if any(tokens):
        told.append(f"{tokens[0]:,} tokens in, {tokens[1]:,} out")
    attempts = sum(count(reply.get("attempts")) for reply in fresh)
    if attempts > len(fresh):
        told.append(f"{attempts} attempts")
    cached = len(found) - len(fresh)
    if cached:
        told.append("cached" if cached == len(found) else f"{cached} cached")
    return told


def nothing_yet(record: CaseRecord | None, view: View) -> Iterator[Line]:
    """What a pane of judged results says while there are none."""
    if record is None or record.state == "queued":
        return remark("Nothing yet: the case has not run.", view)
    if not record.finished:
        return remark("Not judged yet.", view)
    return remark("Nothing was judged: the case ended before." if record.error else "Nothing was judged.", view)

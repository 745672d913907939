"""Texts about judges for all panes: the judge, its votes and its cost."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.faces import BY_FUNCTION, SPLIT, VERDICTS, Face
from workbench.results.judged import (
    case_is_split,
    count,
    is_cached,
    is_function,
    judge_of,
    judge_questions,
    number,
    replies,
    versions,
)
from workbench.results.lines import Line, flow, safe
from workbench.results.rows import View, label, part, under
from workbench.store.execution import CaseRecord
from workbench.store.judge_details import votes_differ
from workbench.text.counting import counted
from workbench.text.json_values import mapping, string
from workbench.text.safe_text import one_line

_SHORT = 0.05
"""Shorter times, in seconds, are not shown."""


def mark(face: Face) -> Text:
    """Return `◐ split`."""
    return Text.styled(f"{face.glyph} {face.word}", face.variable)


def verdict_mark(verdict: Any) -> Text:
    """Return `✓ yes`, or an unknown verdict in its own words."""
    if isinstance(verdict, str) and verdict in VERDICTS:
        return mark(VERDICTS[verdict])
    return Text.styled(one_line(verdict, limit=40) if isinstance(verdict, str) and verdict else "no verdict", "muted")


def tags(record: CaseRecord, criteria: Iterable[str]) -> list[Line]:
    """Return the tags that must accompany verdicts of these criteria: a function judged, or votes disagree."""
    names = [name for name in criteria if name in record.metrics]
    found: list[Line] = []
    if any(is_function(record.metrics[name]) for name in names):
        found.append(mark(BY_FUNCTION))
    if any(case_is_split(record, name) for name in names):
        found.append(mark(SPLIT))
    return found


def criterion_tags(record: CaseRecord, criterion: str) -> list[Line]:
    """Return the tags of one criterion. One of them says if all replies came from the cache."""
    cached = is_cached(item.question for item in judge_questions(record, criterion))
    return [*tags(record, [criterion]), *([Text.styled("cached", "muted")] if cached else [])]


def judge_lines(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the judge of a criterion: its name, the models that answered, a foreign address and a note."""
    judge = judge_of(result)
    if judge:
        names = who(judge, versions(item.question for item in judge_questions(record, result.name)))
        yield from under(label("judge"), flow(names, view.room))
        if note := string(judge.get("note")):
            yield from part("", safe(note, "muted"), view)


def who(judge: dict[str, Any], answered_by: Iterable[str]) -> list[Line]:
    """Return `gemini-2.5-flash`, `answered by gemini-2.5-flash-SCRIPTED`, `at http://…`."""
    parts: list[Line] = [Text.styled(one_line(string(judge.get("model")), limit=200) or "(no name)", "strong")]
    others = [one_line(version, limit=200) for version in answered_by if version != judge.get("model")]
    if others:
        parts.append(Text.assemble(("answered by ", "muted"), ", ".join(others[:4])))
    if base_url := string(judge.get("base_url")):
        parts.append(Text.assemble(("at ", "muted"), (one_line(base_url, limit=200), "status-not-evaluated")))
    return parts


def vote_words(item: dict[str, Any], verdict: str) -> list[Line]:
    """Return `3 of 3 votes (up to 5)` or `4 of 5 votes`. If votes disagree or are unreadable, all follow."""
    votes = {name: count(many) for name, many in mapping(item.get("votes")).items() if count(many) > 0}
    asked, of = count(item.get("asked")), count(item.get("of"))
    lines: list[Line] = []
    if asked and votes:
        limit = f" (up to {of})" if asked < of else ""
        lines.append(Text.styled(f"{votes.get(verdict, 0)} of {counted(asked, 'vote')}{limit}", "muted"))
    ordered = sorted(votes.items(), key=lambda vote: -vote[1])
    every = ", ".join(f"{many} {one_line(str(name), limit=20)}" for name, many in ordered)
    if votes_differ(item):
        lines.append(Text.assemble(mark(SPLIT), (f": {every}", SPLIT.variable)))
    elif len(votes) > 1 or (votes and verdict not in votes):
        lines.append(Text.styled(every, "status-error"))
    return lines


def leading_vote(item: dict[str, Any]) -> str:
    """Return the verdict with the most votes, or "" without any."""
    votes = mapping(item.get("votes"))
    return str(max(votes, key=lambda name: count(votes[name]))) if votes else ""


def cost_words(questions: Iterable[dict[str, Any]]) -> list[Line]:
    """Return the cost of some questions: `3 replies`, `1.2 s`, `2,310 → 120 tokens`, `5 attempts`, `cached`."""
    found = replies(questions)
    texts = [counted(len(found), "reply", "replies"), *reply_cost(found)]
    return [Text.styled(text, "muted") for text in texts]


def reply_cost(found: list[dict[str, Any]]) -> list[str]:
    """Return the time, tokens (in → out), attempts and cached count of some replies."""
    texts: list[str] = []
    fresh = [reply for reply in found if reply.get("cached") is not True]
    seconds = sum(number(reply.get("seconds")) or 0.0 for reply in fresh)
    if seconds >= _SHORT:
        texts.append(f"{seconds:.1f} s")
    texts += token_words(*(sum(count(reply.get(key)) for reply in found) for key in ("input_tokens", "output_tokens")))
    attempts = sum(count(reply.get("attempts")) for reply in fresh)
    if attempts > len(fresh):
        texts.append(counted(attempts, "attempt"))
    cached = len(found) - len(fresh)
    if cached:
        texts.append("cached" if cached == len(found) else f"{cached} cached")
    return texts


def tally_words(tally: dict[str, Any]) -> list[Line]:
    """Return the cost of a criterion as counted by the engine: `5 calls`, `2 cached`, `1.2 s`, `2,310 → 120 tokens`."""
    if not tally:
        return []
    texts = [counted(count(tally.get("calls")), "call")]
    if cached := count(tally.get("cached")):
        texts.append(f"{cached:,} cached")
    if (seconds := number(tally.get("seconds")) or 0.0) >= _SHORT:
        texts.append(f"{seconds:.1f} s")
    texts += token_words(count(tally.get("input_tokens")), count(tally.get("output_tokens")))
    return [Text.styled(text, "muted") for text in texts]


def token_words(into: int, out: int) -> list[str]:
    """Return `2,310 → 120 tokens`, or nothing without counts."""
    return [f"{into:,} → {counted(out, 'token')}"] if into or out else []

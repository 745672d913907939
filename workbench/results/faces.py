"""The display of verdicts: glyph, word and colour, scores beside thresholds, and why a verdict is stale.

A status is never shown by colour alone. All panes, the bar and the notices use the table of statuses. Its words are the
lower-case forms of those in plain output.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from rich.text import Text

from workbench.events.events import MetricResult, MetricStatus
from workbench.results.cells import cell_len, cut
from workbench.results.lines import Line, cut_line, joined
from workbench.store.execution import CaseState
from workbench.store.inputs import KINDS, Change, describe_few
from workbench.text.counting import amount, compared, sign
from workbench.text.safe_text import one_line

Status: TypeAlias = CaseState | MetricStatus | Literal["not_run"]
_SUFFIX = re.compile("(_avg)?(_score)?(_v[0-9]+)?$")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Face:
    """A glyph of one cell, a word, and a colour.

    `variable` is the theme's colour variable without its `$`. The worst status has the lowest `rank`. The status of
    several repeats or verdicts is the worst one. A failure is worse than an error, so no error hides a failure.
    """

    glyph: str
    word: str
    variable: str
    rank: int


FACES: dict[Status, Face] = {
    "failed": Face("✗", "fail", "status-failed", 0),
    "error": Face("!", "error", "status-error", 1),
    "not_evaluated": Face("?", "not evaluated", "status-not-evaluated", 2),
    "cancelled": Face("⊘", "cancelled", "status-not-run", 3),
    "running": Face("▶", "running", "status-running", 4),
    "queued": Face("·", "queued", "status-queued", 5),
    "passed": Face("✓", "pass", "status-passed", 6),
    "informational": Face("i", "informational", "status-informational", 7),
    "not_applicable": Face("–", "not applicable", "status-not-applicable", 8),
    "not_run": Face("○", "not run", "status-not-run", 9),
}
DECIDED: tuple[CaseState, ...] = ("passed", "failed", "error", "not_evaluated")
"""The verdicts of a case, in the order in which counts list them."""
COUNTED: tuple[CaseState, ...] = (*DECIDED, "cancelled")
"""The verdicts, and `cancelled` for cases that got none."""

CHECKED: Mapping[Literal["error", "warning"], Face] = {
    "error": Face("▲", "error", "status-error", 0),
    "warning": Face("△", "warning", "status-not-evaluated", 1),
}
"""Problems that `check` found before any run, the worst first."""

LABELS: Mapping[str, Face] = {
    "contradictory": Face("✗", "contradictory", "status-failed", 0),
    "disputed": Face("±", "disputed", "status-error", 1),
    "unsupported": Face("○", "unsupported", "status-not-evaluated", 2),
    "unlabelled": Face("!", "unlabelled", "status-error", 3),
    "supported": Face("✓", "supported", "status-passed", 4),
    "not_applicable": Face("–", "not applicable", "status-not-applicable", 5),
}
"""A judge's labels for sentences, the worst first."""
HOLDS = frozenset({"supported", "not_applicable"})
"""The labels of sentences that count in favour of an answer."""

VERDICTS: Mapping[str, Face] = {
    "no": Face("✗", "no", "status-failed", 0),
    "invalid": Face("✗", "invalid", "status-failed", 0),
    "unread": Face("!", "unread", "status-error", 1),
    "missing": Face("!", "missing", "status-error", 2),
    "unclear": Face("?", "unclear", "status-not-evaluated", 3),
    "yes": Face("✓", "yes", "status-passed", 4),
    "valid": Face("✓", "valid", "status-passed", 4),
}
"""A judge's answers to a question, and the labels for unreadable answers."""

JUDGED: Mapping[str, Face] = {**LABELS, **VERDICTS, "passed": FACES["passed"], "failed": FACES["failed"]}
"""All labels that a judge may give and a user may confirm or override."""

SPLIT = Face("◐", "split", "status-not-evaluated", 0)
"""The votes of a judge disagree."""
TRIAGED = Face("⚑", "triaged", "status-informational", 0)
"""The user triaged this verdict."""
TRIAGED_EARLIER = Face("⚐", "triaged earlier", "status-informational", 1)
"""The user triaged an older answer or verdict of the case."""
STALE = Face("~", "stale", "status-not-evaluated", 0)
"""The verdict was made with inputs that have changed since."""
FLAKY = Face("∿", "flaky", "status-flaky", 1)
"""A case passed in some of its repeats and not in others."""
OTHER_CRITERIA = Face("≠", "other criteria", "status-not-evaluated", 0)
"""The verdict was made under criteria that are not in the file."""
FROZEN = Face("❅", "frozen", "status-informational", 0)
"""Calls of the case were answered from its recording."""
BY_FUNCTION = Face("ƒ", "function", "status-not-evaluated", 0)
"""A function judged, not a language model."""


def badge(status: Status) -> Line:
    """Return the glyph and the word of a status in upper case: `✗ FAIL`."""
    face = FACES[status]
    return Text.styled(f"{face.glyph} {face.word.upper()}", face.variable)


def glyph(status: Status) -> Text:
    """Return the coloured glyph of a status: `✗`."""
    return Text.styled(FACES[status].glyph, FACES[status].variable)


def score_text(result: MetricResult) -> str:
    """Return the score and its threshold: `0.50 < 1.00`, `3` without a threshold, or "" without a score."""
    score, threshold = result.score, result.threshold
    if score is None:
        return ""
    if threshold is None or result.status == "informational":
        return amount(score)
    shown, limit = compared(score, threshold, 2, 2)
    return f"{shown} {sign(score, threshold)} {limit}"


def by_weight(results: Sequence[MetricResult]) -> list[MetricResult]:
    """Return the results sorted by status, the worst first. Results with the same status keep their order."""
    return sorted(results, key=lambda result: FACES[result.status].rank)


def chip(result: MetricResult) -> Line:
    """Return a result on one line: `✗ response_match 0.61 < 0.80`."""
    return Text.assemble(glyph(result.status), f" {short_name(result.name)} ", score_line(result))


def score_line(result: MetricResult) -> Text:
    """Return `0.61 < 0.80`, or the word of the status without a score. Only passed scores have no colour."""
    style = "" if result.status == "passed" else FACES[result.status].variable
    return Text.styled(score_text(result) or FACES[result.status].word, style)


def short_name(criterion: str) -> str:
    """Return `response_match` for `response_match_score`, as safe text."""
    name = one_line(criterion, limit=60)
    return _SUFFIX.sub("", name) or name


def chips(results: Sequence[MetricResult], width: int) -> Line:
    """Return the results on one line of at most `width` cells, the worst first."""
    return cut_line(joined(map(chip, by_weight(results)), "   "), width)


def stale_mark(changes: Collection[Change], room: int) -> str:
    """Return why a verdict is stale in at most `room` cells: `stale: .env GEMINI_MODEL, prompt.txt`, or a shorter form.

    The shorter forms are, in this order: files without folders, only the first change, `~prompt.txt`, `~stale` and `~`.
    """
    short = [_without_folder(change) for change in changes]
    reasons = [describe_few(changes), describe_few(short), describe_few(short, 1)]
    marks = [f"{STALE.word}: {one_line(reason, limit=_LONGEST)}" for reason in reasons]
    first = one_line(describe_few(short[:1]), limit=_LONGEST)
    if room > 10:  # In less space, the word `stale` says more.
        marks.append(f"{STALE.glyph}{cut(first, room - 1)}")
    marks.append(f"{STALE.glyph}{STALE.word}")
    return next((mark for mark in marks if cell_len(mark) <= room), STALE.glyph)


def stale_count(stale: Collection[Iterable[Change]]) -> tuple[str, str]:
    """Return the number of stale cases, with and without their changes: `3 stale: prompt.txt` and `3 stale`.

    `stale` has the changes of each stale case. Without stale cases, both texts are "".
    """
    if not stale:
        return "", ""
    count = f"{len(stale):,} {STALE.word}"
    seen = dict.fromkeys(_without_folder(change) for changes in stale for change in changes)
    return f"{count}: {one_line(describe_few(seen, 2), limit=_LONGEST)}", count


def stale_line(changes: Collection[Change]) -> str:
    """Return `stale: order_desk/prompt.txt, .env GEMINI_MODEL and 2 more` as one safe line."""
    return f"{STALE.word}: {one_line(describe_few(changes), limit=_LONGEST)}"


def _without_folder(change: Change) -> Change:
    if KINDS[change.input].place != "name":
        return change
    return replace(change, name=PurePosixPath(change.name).name)

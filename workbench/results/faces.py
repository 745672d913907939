"""The look of each status: one glyph, one word and one theme variable. A status is never shown by colour alone.

All panes, the bar and the notices use this table. The words are those of the command line in lower case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.events.events import MetricStatus
from workbench.store.execution import CaseState

Status: TypeAlias = CaseState | MetricStatus | Literal["not_run"]


@dataclass(frozen=True, slots=True)
class Face:
    """A glyph of one cell, a word, and a colour.

    `variable` names the theme's colour without its `$`. The worst status has the lowest `rank`: it is
    the one of a case with several repeats, and of a turn with several verdicts. So an error hides no failure.
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
"""The verdicts of a case, in the order of counts."""
COUNTED: tuple[CaseState, ...] = (*DECIDED, "cancelled")
"""The verdicts, and `cancelled` for cases without a verdict."""

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
"""The labels of sentences that count for an answer."""

VERDICTS: Mapping[str, Face] = {
    "no": Face("✗", "no", "status-failed", 0),
    "invalid": Face("✗", "invalid", "status-failed", 0),
    "unread": Face("!", "unread", "status-error", 1),
    "missing": Face("!", "missing", "status-error", 2),
    "unclear": Face("?", "unclear", "status-not-evaluated", 3),
    "yes": Face("✓", "yes", "status-passed", 4),
    "valid": Face("✓", "valid", "status-passed", 4),
}
"""A judge's answers to a question, and the labels of unreadable answers."""

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

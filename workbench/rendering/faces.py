"""How a status looks: one glyph, one word, one theme variable. Never colour alone.

Both panes, the bar and the notices read these, so that one status has one face. The words are the headless front end's,
in small letters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.events import MetricStatus
from workbench.store import CaseState

Status: TypeAlias = CaseState | MetricStatus | Literal["not_run"]


@dataclass(frozen=True, slots=True)
class Face:
    """`glyph` is one cell wide; `variable` names the theme's colour without its `$`; `rank` sorts the worst first."""

    glyph: str
    word: str
    variable: str
    rank: int


FACES: dict[Status, Face] = {
    "error": Face("!", "error", "status-error", 0),
    "failed": Face("✗", "fail", "status-failed", 1),
    "not_evaluated": Face("?", "not evaluated", "status-not-evaluated", 2),
    "cancelled": Face("⊘", "cancelled", "status-not-run", 3),
    "running": Face("▶", "running", "status-running", 4),
    "queued": Face("·", "queued", "status-queued", 5),
    "passed": Face("✓", "pass", "status-passed", 6),
    "informational": Face("i", "for information", "status-informational", 7),
    "not_applicable": Face("–", "not applicable", "status-not-applicable", 8),
    "not_run": Face("○", "not run", "status-not-run", 9),
}
DECIDED: tuple[CaseState, ...] = ("passed", "failed", "error", "not_evaluated")
"""The verdicts of a case in the order in which counts are written."""
COUNTED: tuple[CaseState, ...] = (*DECIDED, "cancelled")
"""The same with what was stopped before it had one."""

CHECKED: Mapping[Literal["error", "warning"], Face] = {
    "error": Face("▲", "error", "status-error", 0),
    "warning": Face("△", "warning", "status-not-evaluated", 1),
}
"""What `check` found before any run, the worst first."""

LABELS: Mapping[str, Face] = {
    "contradictory": Face("✗", "contradictory", "status-failed", 0),
    "disputed": Face("±", "disputed", "status-error", 1),
    "unsupported": Face("○", "unsupported", "status-not-evaluated", 2),
    "unlabelled": Face("!", "unlabelled", "status-error", 3),
    "supported": Face("✓", "supported", "status-passed", 4),
    "not_applicable": Face("–", "not applicable", "status-not-applicable", 5),
}
"""What a judge said of a sentence, the worst first."""
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
"""What a judge said to a question, and what was made of it where that could not be read."""

JUDGED: Mapping[str, Face] = {**LABELS, **VERDICTS, "passed": FACES["passed"], "failed": FACES["failed"]}
"""All that a judge may say and a user may confirm or override."""

SPLIT = Face("◐", "split", "status-not-evaluated", 0)
"""The votes of a judge disagree."""
TRIAGED = Face("⚑", "triaged", "status-informational", 0)
"""The user said what the verdict is worth."""
TRIAGED_EARLIER = Face("⚐", "triaged earlier", "status-informational", 1)
"""The same of an earlier answer or verdict: there is another one since."""
STALE = Face("~", "stale", "status-not-evaluated", 0)
"""The verdict was made with other inputs than those of now."""
FLAKY = Face("∿", "flaky", "status-flaky", 1)
"""A case passed in some of its repeats and not in others."""
OTHER_CRITERIA = Face("≠", "other criteria", "status-not-evaluated", 0)
"""The verdict was made under criteria that are not in the file."""
HEURISTIC = Face("≈", "heuristic", "status-not-evaluated", 0)
"""Rules judged, not a language model."""

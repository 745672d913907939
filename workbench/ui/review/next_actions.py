"""The rows of a review's last page: what to do with each kind of verdict."""

from collections.abc import Mapping

from workbench.editing.triage.entry import CHOICES, choice_label
from workbench.results.review.last_page import Row
from workbench.ui.actions import key_label
from workbench.ui.review.model import Outcome

_NEXT = {
    "agent bug": ("copy_id", "copy as Markdown (for an issue or a coding agent)", "copy as Markdown"),
    "expectation wrong": ("accept", "review and accept what these agents did", "accept what they did"),
    "judge wrong": ("", "see how far judges agree with you", "judge agreement"),
    "errors": ("rerun", "run again after the cause is fixed", "run again"),
    "flaky": ("repeat", "repeat each until its pass rate is certain", "repeat until certain"),
    "skipped": ("review", "go through these again", "go through again"),
}
"""Kind of verdict → the action with its key, its words, and its words where room is short."""
_LABELS = {"passed": "pass now"}
_ORDER = [*(choice.name for choice in CHOICES), "errors", "passed", "skipped"]


def rows_of(outcome: Outcome, keys: Mapping[str, tuple[str, ...]], *, passes: bool = False) -> list[Row]:
    """Return the rows, the most frequent verdicts first and skipped cases last. `passes`: the cases had passed."""
    kinds = sorted(outcome.counts().items(), key=lambda item: (item[0] == "skipped", -item[1], _ORDER.index(item[0])))
    rows = []
    for kind, number in kinds:
        action, words, short = _NEXT.get(kind, ("", "", ""))
        label = "false pass" if passes and kind == "agent bug" else _LABELS.get(kind) or choice_label(kind)
        if kind == "errors" and number == 1:
            label = "error"
        key = key_label(keys[action][0]) if action and keys[action] else ""
        rows.append(Row(kind, number, label, key, words, short))
    return rows

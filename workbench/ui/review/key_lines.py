"""The lines of keys below a page of a review, and the rows of its last page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from workbench.editing.triage.entry import BY_NAME, CHOICES, choice_label
from workbench.results.evidence_frame import WIDE
from workbench.results.lines import Line, cut_line
from workbench.results.review import Row, key_row, key_words, width_of
from workbench.ui.actions import key_label
from workbench.ui.review.model import Outcome
from workbench.ui.triage.question import Option

LOW = 16
"""Terminals with fewer lines than this show only one line of keys."""
_BY_KEY = {
    "a": "agent_bug",
    "x": "expectation_wrong",
    "d": "judge_wrong",
    "f": "flaky",
    "w": "wont_fix",
    "p": "verdict_correct",
}
"""The action for each letter of a verdict."""


@dataclass(frozen=True, slots=True)
class Offered:
    """The actions that are possible for the current case.

    `options` are the possible verdicts. If there are none, `instead` says why, as safe text. `left` is the number of
    cases of the cause without a verdict, or of errors that can be skipped together. It is 0 if only one case can be
    decided or skipped at a time. `cases` is the number of cases of the cause. `whole`: the next verdict is for all that
    are left. `in_pane`: a pane covers the page. `can_accept`: the actual behavior can be accepted as expected.
    `exists`: the case is still in its file.
    """

    options: Sequence[Option]
    instead: str = ""
    left: int = 0
    cases: int = 0
    whole: bool = False
    in_pane: bool = False
    can_accept: bool = True
    exists: bool = True


class KeyLines:
    """The lines of keys. `keys` is the user's keymap."""

    def __init__(self, keys: Mapping[str, tuple[str, ...]]) -> None:
        self._keys = keys

    def choice_key(self, option: Option) -> str:
        """Return the key of a verdict, as shown on the screen."""
        return self._key(_BY_KEY[option.key])

    def case(self, offered: Offered, width: int, height: int) -> list[Line]:
        """Return the lines of keys for a case."""
        wide, rule = width >= WIDE, Text.styled("─" * width, "rule")
        verdicts, more = self._verdicts(offered, width), self._more(offered, width)
        if height < LOW:
            return [verdicts]
        return [rule, verdicts, more, *([rule] if wide else []), self._moves(offered, width)]

    def last(self, width: int, height: int, *, can_undo: bool) -> list[Line]:
        """Return the lines of keys for the last page."""
        parts = [self._of("enter", "do selected action" if width >= WIDE else "do it")]
        parts += [self._of("undo", "undo last" if width >= WIDE else "undo")] if can_undo else []
        parts += [self._of("previous_problem", "back"), self._of("back", "close"), self._of("keys", "help")]
        row = key_row(parts, width)
        return [row] if height < LOW else [Text.styled("─" * width, "rule"), row]

    def skip_instead(self) -> str:
        """Return the message after a verdict key on a case that allows no verdict."""
        return f"no verdict possible: {self._key('next_problem')} skips this case"

    def undo(self) -> Line:
        """Return the key for undo with its label."""
        return self._of("undo", "undo")

    def _verdicts(self, offered: Offered, width: int) -> Line:
        if not offered.options:
            return cut_line(Text.styled(f" {offered.instead}", "muted"), width)
        scope: Line = Text.styled(f"all {offered.left:,}:" if offered.whole else "1 case:", "label")
        words = [option.word for option in offered.options]
        short = [_short(option) for option in offered.options]
        fault: Line = Text.styled("wrong:", "label") if short != words else Text()
        forms = ([scope, *self._choices(offered, words)], self._choices(offered, words))
        row = next((form for form in forms if width_of(form) <= width), [fault, *self._choices(offered, short)])
        return key_row(row, width)

    def _choices(self, offered: Offered, words: Sequence[str]) -> list[Line]:
        return [self._of(_BY_KEY[one.key], word) for one, word in zip(offered.options, words, strict=True)]

    def _more(self, offered: Offered, width: int) -> Line:
        wide = width >= WIDE
        parts: list[Line] = []
        if offered.can_accept:
            parts.append(self._of("accept", f"accept {'actual ' if wide else ''}1"))
        if offered.exists:
            parts.append(self._of("edit", "edit case" if wide else "edit"))
        if offered.options:
            parts.append(self._of("triage", "note"))
        if offered.left:
            many = f"all {offered.left:,}" if offered.left == offered.cases else f"{offered.left:,} left"
            many = f"verdict on {many} of this cause" if wide else f"{many} of cause"
            words = "one case" if offered.whole else many
            if not offered.options:
                words = f"skip all {offered.left:,}{' errors' if wide else ''}"
            parts.append(self._of("whole_cause", words))
        if not wide and offered.exists:
            parts.append(self._of("run", "run"))
        return key_row(parts, width)

    def _moves(self, offered: Offered, width: int) -> Line:
        wide = width >= WIDE
        skip, back = self._of("next_problem", "skip"), self._of("previous_problem", "back")
        panes: Line = Text.assemble(("1-4", "hint"), (" panes", "label"))
        help_ = self._of("keys", "help")
        if offered.in_pane:
            return key_row([skip, panes, self._of("back", "back to the evidence"), help_], width)
        if not wide:
            return key_row([skip, back, panes, self._of("back", "leave"), help_], width)
        scroll: Line = Text.assemble((f"{self._key('move_down')} {self._key('move_up')}", "hint"), (" scroll", "label"))
        run = self._of("run", "run again") if offered.exists else Text()
        return key_row([scroll, skip, back, panes, run, self._of("back", "leave"), help_], width)

    def _of(self, action: str, label: str) -> Line:
        """Return a key with its label, or an empty line if the user's keymap has no key for the action."""
        key = self._key(action)
        return key_words(key, label) if key else Text()

    def _key(self, action: str) -> str:
        keys = self._keys[action]
        return key_label(keys[0]) if keys else ""


def _short(option: Option) -> str:
    choice = BY_NAME[option.value]
    return option.word if option.word != choice.label else choice.short


_NEXT = {
    "agent bug": ("copy_id", "copy as Markdown (for an issue or a coding agent)", "copy as Markdown"),
    "expectation wrong": ("accept", "review and accept what these agents did", "accept what they did"),
    "judge wrong": ("", "see how often judges agree with you", "judge agreement"),
    "errors": ("rerun", "run again after the cause is fixed", "run again"),
    "flaky": ("repeat", "repeat each until its pass rate is certain", "repeat until certain"),
    "skipped": ("review", "review these again", "review again"),
}
"""For each kind of verdict: the follow-up action with its key, its label, and its short label."""
_LABELS = {"passed": "pass now"}
_ORDER = [*(choice.name for choice in CHOICES), "errors", "passed", "skipped"]


def rows_of(outcome: Outcome, keys: Mapping[str, tuple[str, ...]], *, passes: bool = False) -> list[Row]:
    """Return the rows of the last page: the most frequent verdicts first, skipped cases last.

    `passes`: the reviewed cases had passed.
    """
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

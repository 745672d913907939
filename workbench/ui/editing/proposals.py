"""The dialog in which the user reviews changes of several cases, and diffs of files."""

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widgets import Static

from workbench.criteria.json_difference import ABSENT, shown
from workbench.editing.accept_turn import Hunk
from workbench.editing.saving import change_of
from workbench.editing.whole_cases import Choice, Proposal
from workbench.results.cells import cut_sibling
from workbench.results.document import Document
from workbench.results.evidence_turn import hunk_lines
from workbench.results.lines import View
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain
from workbench.ui.actions import footer
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.tree.labels import NEIGHBOURS
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import KeyLine, bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_KINDS = 100
"""Maximum number of kinds of changes listed on the screen."""


_LOOKS = {"-": "$diff-missing", "+": "$diff-extra", "@": "$status-muted", " ": ""}
_HUNKS = 20
"""Maximum number of differences shown of a case or turn."""
CONTEXT = 3
MAX_LINES = 400
"""Maximum number of lines in a preview. One more line gives the number of lines left out."""
_LONG = 400
"""Maximum length, in characters, of a line shown in full. A longer line shows only the part around the change."""
_AROUND = 60
_COMPARED = 4_000
"""Maximum number of lines that are compared line by line."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff. `text` is safe. The sign `@` marks a heading, such as `line 12`."""

    sign: Literal["-", "+", " ", "@"]
    text: str


def file_diff(before: bytes, after: bytes) -> list[DiffLine]:
    """Return the diff of two contents of a file, with context, or [] if they are equal.

    Only the lines between the common start and the common end are compared.
    """
    if before == after:
        return []
    start, old, new = _changed(before, after)
    first = before.count(b"\n", 0, start) + 1
    if max(map(len, (*old, *new)), default=0) > _LONG:
        lines = [DiffLine("@", f"line {first}, around the change"), *_cut_out(before, after)]
    elif max(len(old), len(new)) > _COMPARED:
        lines = [DiffLine("@", f"line {first}"), *(DiffLine("-", plain(line, limit=_LONG)) for line in old)]
        lines += [DiffLine("+", plain(line, limit=_LONG)) for line in new]
    else:
        lines = _dedented(list(_unified(old, new, first)))
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [DiffLine("@", f"… {counted(len(lines) - MAX_LINES, 'more line')}")]
    return lines


def _changed(before: bytes, after: bytes) -> tuple[int, list[str], list[str]]:
    """Return the offset where the changed lines and their context begin, and these lines of both contents."""
    start, gone, _ = _span(before, after)
    end = start + len(gone)
    for _ in range(CONTEXT + 1):
        start = before.rfind(b"\n", 0, max(start - 1, 0)) + 1
    for _ in range(CONTEXT + 1):
        found = before.find(b"\n", end)
        end = len(before) if found < 0 else found + 1
    tail = len(before) - end
    return start, _lines(before[start:end]), _lines(after[start : len(after) - tail])


def _dedented(lines: list[DiffLine]) -> list[DiffLine]:
    texts = [line.text for line in lines if line.sign != "@" and line.text.strip()]
    unit = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    return [line if line.sign == "@" else DiffLine(line.sign, line.text[unit:]) for line in lines]


def _span(before: bytes, after: bytes) -> tuple[int, bytes, bytes]:
    """Return the offset of the changed bytes, and these bytes in both contents."""
    change = change_of(Path(), before, after)
    return change.start, change.old, change.new


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").removesuffix("\n").split("\n") if content else []


def _unified(old: list[str], new: list[str], first: int) -> Iterator[DiffLine]:
    for number, line in enumerate(unified_diff(old, new, lineterm="", n=CONTEXT)):
        if number < 2:
            continue
        sign, text = line[:1], line[1:]
        if sign == "@":
            row = int(text.split()[1].lstrip("-").split(",")[0])
            yield DiffLine("@", f"line {max(first + row - 1, 1)}")
        elif sign in ("-", "+", " "):
            yield DiffLine(sign, plain(text.rstrip("\r"), limit=_LONG))  # type: ignore[arg-type]


def _cut_out(before: bytes, after: bytes) -> Iterator[DiffLine]:
    start, old, new = _span(before, after)
    from_, to = max(start - _AROUND, 0), start + len(old)
    left = before[from_:start].decode("utf-8", "ignore")
    right = before[to : to + _AROUND].decode("utf-8", "ignore")
    for sign, part in (("-", old), ("+", new)):
        text = f"…{left}{part.decode('utf-8', 'ignore')}{right}…"
        for line in text.split("\n"):
            yield DiffLine("-" if sign == "-" else "+", plain(line, limit=4_000))


BOX_OF_RULE: Piece = ("[~] ", "passed")
"""Checkbox of a difference for which a rule is chosen that accepts it."""


def checkbox(chosen: int, total: int) -> Piece:
    """Return a checkbox that shows whether all, some or none of `total` changes are chosen."""
    if not chosen:
        return "[ ] ", "muted"
    return ("[x] ", "passed") if chosen == total else ("[-] ", "accent")


def show_hunks(body: Body, parts: Iterable[Any]) -> None:
    """Show the hunks among the parts as the pane Evidence does. Without hunks, hide the body.

    The body becomes as high as its content.
    """
    shares = body.planned()
    view = View(max(shares.width, 24), narrow=shares.narrow)
    found = [part for part in parts if isinstance(part, Hunk)][:_HUNKS]
    document = Document(line for hunk in found for line in hunk_lines(hunk, view))
    body.styles.height = len(document.lines) + 1  # With the line above it.
    body.display = bool(found)
    body.show(document, 0)


def shown_change(lines: Sequence[DiffLine]) -> Content:
    """Return the diff of a file in colors, or a hint on choosing if nothing is chosen."""
    if not lines:
        return Content.styled("Choose differences with space to see how the file changes.", "$status-muted")
    return Content.assemble(*((f"{line.sign.replace('@', '⋯')} {line.text}\n", _LOOKS[line.sign]) for line in lines))


_Row = TypeVar("_Row")


class ChangeList(RowsOf[_Row]):
    """A tree of changes that can be chosen. The first row is the root."""

    def toggle(self, line: _Row) -> None:
        """Choose all changes of a line, or deselect them if all are chosen."""
        raise NotImplementedError


_List = TypeVar("_List", bound=ChangeList[Any])


class ChangesScreen(RowsScreen[ScreenResultType], Generic[_List, ScreenResultType]):
    """A dialog in which the user chooses changes. It shows a list, the current change, and the diff of the file."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("accept")]
    where = "accept"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual's declaration

    def __init__(self, changes: _List, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(changes, keys)
        self.list = changes
        self._detail = Body()
        self._detail.add_class("detail")
        self._detail.can_focus = False
        self._preview = Static("", markup=False)
        self.text = self._scroll = VerticalScroll(self._preview, classes="change", can_focus=False)

    def on_mount(self) -> None:
        """Focus the list."""
        self.list.rows_changed()
        self.list.focus()

    def action_mark(self) -> None:
        """Choose or deselect the changes of the current or clicked row."""
        self.list.toggle(self.list.row)
        self._show_change()

    on_row_view_picked = action_mark

    def action_mark_all(self) -> None:
        """Choose or deselect all changes."""
        self.list.toggle(self.list.rows[0])
        self._show_change()

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the current change for its new size."""
        event.stop()
        self._show_hunks()

    def _show_hunks(self) -> None:
        raise NotImplementedError

    def _show_change(self) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the list: all cases (`proposal` is None), one case (`part` is -1), or one part of it."""

    proposal: Proposal | None = None
    part: int = -1


class ProposalList(ChangeList[Line]):
    """The tree of cases and their changed parts."""

    def __init__(self, proposals: Sequence[Proposal], *, all_chosen: bool) -> None:
        lines = [Line()]
        for proposal in proposals:
            lines += [Line(proposal), *(Line(proposal, number) for number in range(len(proposal.parts)))]
        super().__init__(lines)
        self._proposals = proposals
        self._total = sum(len(proposal.parts) for proposal in proposals)
        self.chosen: dict[Proposal, set[int]] = {
            proposal: set(range(len(proposal.parts))) if all_chosen else set() for proposal in proposals
        }

    @property
    def kinds(self) -> list[tuple[str, int, int]]:
        """The kinds of changes as (safe text, number chosen, total number), most frequent first."""
        total: Counter[str] = Counter()
        chosen: Counter[str] = Counter()
        for proposal, numbers in self.chosen.items():
            for number, part in enumerate(proposal.parts):
                words = one_line(part.what, limit=120)
                total[words] += 1
                chosen[words] += number in numbers
        return [(words, chosen[words], count) for words, count in total.most_common()]

    @property
    def choice(self) -> dict[Proposal, Collection[Any]]:
        """The chosen parts by case. Cases with no chosen part are left out."""
        found = self.chosen.items()
        return {one: [one.parts[number] for number in sorted(numbers)] for one, numbers in found if numbers}

    def toggle(self, line: Line) -> None:
        """Choose all parts of a line, or deselect them if all are chosen."""
        wanted = self._below(line)
        drop = all(numbers <= self.chosen[one] for one, numbers in wanted.items())
        for one, numbers in wanted.items():
            self.chosen[one] = self.chosen[one] - numbers if drop else self.chosen[one] | numbers
        self.refresh()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return checkbox, name and change of a line."""
        line = self.rows[position]
        if line.proposal is None:
            count = sum(map(len, self.chosen.values()))
            return [self._box(line), ("all cases", "strong")], [(f"{count:,} of {self._total:,}", "muted")]
        proposal = line.proposal
        if line.part < 0:
            file = one_line(proposal.file.name.partition(".")[0], limit=30)
            right: list[Piece] = [(file, "muted")] if width > 50 else []
            room = max(width - 8 - (len(file) if right else 0), 8)
            near = self.rows[max(position - NEIGHBOURS, 0) : position + NEIGHBOURS]
            others = (one_line(other.proposal.name) for other in near if other.proposal is not None)
            name = cut_sibling(one_line(proposal.name), room, others)
            return [("  ", ""), self._box(line), (name, "strong")], right
        part = proposal.parts[line.part]
        is_state = isinstance(part, Hunk) and part.kind == "state"
        turn = "" if part.turn is None or is_state else f"turn {part.turn + 1} "
        left: list[Piece] = [("    ", ""), self._box(line), (turn, "muted"), (one_line(part.what, limit=120), "")]
        if not isinstance(part, Hunk):
            sides = [shown(value, limit=40) for value in (part.old, part.new) if value is not ABSENT]
            left.append((f"  {' → '.join(sides)}", "muted"))
        return left, []

    def _below(self, line: Line) -> dict[Proposal, set[int]]:
        """Return the indexes of the parts of a line, by case."""
        proposals = self._proposals if line.proposal is None else [line.proposal]
        return {one: {line.part} if line.part >= 0 else set(range(len(one.parts))) for one in proposals}

    def _box(self, line: Line) -> Piece:
        below = self._below(line)
        chosen = sum(len(numbers & self.chosen[one]) for one, numbers in below.items())
        return checkbox(chosen, sum(map(len, below.values())))


class SeveralScreen(ChangesScreen[ProposalList, Choice | None]):
    """The dialog to review changes of several cases. Its result is the chosen parts, or None if the user cancels.

    `title` and `note` are safe text. The note says what is left out, and why.
    """

    def __init__(
        self,
        title: str,
        proposals: Sequence[Proposal],
        keys: Mapping[str, tuple[str, ...]],
        *,
        note: str = "",
        all_chosen: bool = False,
    ) -> None:
        super().__init__(ProposalList(proposals, all_chosen=all_chosen), keys)
        self._title, self._note = title, note

    def compose(self) -> ComposeResult:
        """Lay out the cases, the change of the current one, and the keys."""
        with Vertical(classes="dialog accept") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("enter saves the chosen changes · esc closes")
            with Horizontal(classes="sides"):
                with Vertical(classes="choice"):
                    yield self.list
                    yield self._detail
                yield self._scroll
            yield self.message
            yield KeyLine(footer("accept", without=("criteria",)), self.keys_of)

    def on_mount(self) -> None:
        """Show the list, and what is left out."""
        self.list.when_moved = self._show_change
        super().on_mount()
        self._show_change()
        self.say(self._note, warning=True)

    def action_criteria(self) -> None:
        """Explain that rules can be chosen only for a single case."""
        self.say("rules are for the differences of one case: press esc, then A on that case")

    def action_enter(self) -> None:
        """Close the dialog and return the chosen parts."""
        choice = self.list.choice
        if choice:
            self.dismiss(choice)
        else:
            self.say("nothing chosen: space chooses the line, a chooses everything", warning=True)

    def _show_hunks(self) -> None:
        line = self.list.row
        parts = () if line.proposal is None else line.proposal.parts
        show_hunks(self._detail, parts if line.part < 0 else parts[line.part : line.part + 1])

    def _show_change(self) -> None:
        self._show_hunks()
        line = self.list.row
        if line.proposal is None:
            count, cases = sum(map(len, self.list.chosen.values())), len(self.list.choice)
            words = f"{counted(count, 'change')} in {counted(cases, 'case')} chosen"
            self._preview.update(_summary(words, self.list.kinds))
            return
        # Without a choice, show what choosing the line would change.
        numbers = self.list.chosen[line.proposal] or ({line.part} if line.part >= 0 else None)
        parts = [line.proposal.parts[number] for number in sorted(numbers or range(len(line.proposal.parts)))]
        start_work(self, partial(self._compare, line, line.proposal, parts), "preview", exclusive=True)

    async def _compare(self, line: Line, proposal: Proposal, parts: Sequence[Any]) -> None:
        lines = await asyncio.to_thread(_difference, proposal, parts)
        if line is self.list.row:
            self._preview.update(shown_change(lines))
            self._scroll.scroll_home(animate=False)


def _summary(words: str, kinds: Sequence[tuple[str, int, int]]) -> Content:
    """Return how many changes of each kind are chosen, such as `12 of 15 refund: change amount`."""
    counts = [f"{chosen:,} of {count:,}" for _, chosen, count in kinds[:_KINDS]]
    width = max(map(len, counts), default=0)
    parts: list[tuple[str, str]] = [(f"{words}\n", "$status-muted")]
    for count, (kind, _, _) in zip(counts, kinds, strict=False):
        parts += [(f"{count:>{width}}", "$label"), (f"  {kind}\n", "")]
    return Content.assemble(*parts)


def _difference(proposal: Proposal, parts: Sequence[Any]) -> list[Any]:
    return list(file_diff(_text(proposal.before), _text(proposal.after(parts))))


def _text(case: Any) -> bytes:
    return (json.dumps(case, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")

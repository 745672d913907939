"""The dialog in which the user reviews changes of several cases, and diffs of files."""

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from itertools import islice
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

    Only the lines between the common start and the common end are compared. If one of them is long, as in a file with
    only one line, the diff has the text around the change.
    """
    if before == after:
        return []
    change = change_of(Path(), before, after)
    start, end = change.start, change.start + len(change.old)
    for _ in range(CONTEXT + 1):
        start = before.rfind(b"\n", 0, max(start - 1, 0)) + 1
        end = before.find(b"\n", end) + 1 or len(before)
    old, new = _lines(before[start:end]), _lines(after[start : len(after) - len(before) + end])
    first = before.count(b"\n", 0, start) + 1
    if max(map(len, (*old, *new)), default=0) > _LONG:
        left = before[max(change.start - _AROUND, 0) : change.start]
        right = before[change.start + len(change.old) :][:_AROUND]
        lines = [DiffLine("@", f"line {first}, around the change")]
        sides: list[tuple[Literal["-", "+"], bytes]] = [("-", change.old), ("+", change.new)]
        for sign, part in sides:
            around = "".join(bytes_.decode("utf-8", "ignore") for bytes_ in (left, part, right))
            lines += [DiffLine(sign, plain(line, limit=4_000)) for line in f"…{around}…".split("\n")]
    elif max(len(old), len(new)) > _COMPARED:
        lines = [DiffLine("@", f"line {first}"), *(DiffLine("-", plain(line, limit=_LONG)) for line in old)]
        lines += [DiffLine("+", plain(line, limit=_LONG)) for line in new]
    else:
        lines = _unified(old, new, first)
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [DiffLine("@", f"… {counted(len(lines) - MAX_LINES, 'more line')}")]
    return lines


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").removesuffix("\n").split("\n") if content else []


def _unified(old: list[str], new: list[str], first: int) -> list[DiffLine]:
    """Return a diff without the indent that all lines share. `first` is the number of the first line."""
    found = []
    for line in islice(unified_diff(old, new, lineterm="", n=CONTEXT), 2, None):
        sign, text = line[:1], line[1:]
        if sign == "@":
            row = int(text.split()[1].lstrip("-").split(",")[0])
            found.append(DiffLine("@", f"line {max(first + row - 1, 1)}"))
        else:
            found.append(DiffLine(sign, plain(text.rstrip("\r"), limit=_LONG)))  # type: ignore[arg-type]
    texts = [line.text for line in found if line.sign != "@" and line.text.strip()]
    unit = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    return [line if line.sign == "@" else DiffLine(line.sign, line.text[unit:]) for line in found]


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
    """A tree of changes that can be chosen. The first row is the root. `chosen` are the chosen changes."""

    def __init__(self, rows: Sequence[_Row], chosen: Iterable[Any] = ()) -> None:
        super().__init__(rows)
        self.chosen: frozenset[Any] = frozenset(chosen)

    def below(self, line: _Row) -> Sequence[Any]:
        """Return the changes of a line."""
        raise NotImplementedError

    def toggle(self, line: _Row) -> None:
        """Choose all changes of a line, or deselect them if all are chosen."""
        below = frozenset(self.below(line))
        self.chosen = self.chosen - below if below <= self.chosen else self.chosen | below
        self.refresh()

    def box(self, line: _Row) -> Piece:
        """Return the checkbox of a line."""
        below = self.below(line)
        return checkbox(len(self.chosen.intersection(below)), len(below))


_List = TypeVar("_List", bound=ChangeList[Any])


class ChangesScreen(RowsScreen[ScreenResultType], Generic[_List, ScreenResultType]):
    """A dialog in which the user chooses changes. It shows a list, the current change, and the diff of the file.

    `frame` is the frame of the dialog. `outcome` is shown below the sides. `without` are actions that do nothing here.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("accept")]
    where = "accept"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual's declaration

    def __init__(
        self, changes: _List, keys: Mapping[str, tuple[str, ...]], frame: Vertical, without: Sequence[str] = ()
    ) -> None:
        super().__init__(changes, keys)
        self.list = changes
        self._frame = frame
        self._detail = Body()
        self._detail.add_class("detail")
        self._detail.can_focus = False
        self._preview = Static("", markup=False)
        self.text = self._scroll = VerticalScroll(self._preview, classes="change", can_focus=False)
        self._outcome = Static("", classes="outcome", markup=False)
        self._key_line = KeyLine(footer("accept", without=without), keys)

    def compose(self) -> ComposeResult:
        """Lay out the changes, the current one, the diff and the keys."""
        with self._frame:
            yield Horizontal(Vertical(self.list, self._detail, classes="choice"), self._scroll, classes="sides")
            yield self._outcome
            yield self.message
            yield self._key_line

    def on_mount(self) -> None:
        """Focus the list."""
        self.list.rows_changed()
        self.list.focus()

    def action_choose(self) -> None:
        """Choose or deselect the changes of the current or clicked row."""
        self.list.toggle(self.list.row)
        self._show_change()

    on_row_view_picked = action_choose

    def action_choose_all(self) -> None:
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
        self._total = len(self.below(lines[0]))
        if all_chosen:
            self.toggle(lines[0])

    @property
    def kinds(self) -> list[tuple[str, int, int]]:
        """The kinds of changes as (safe text, number chosen, total number), most frequent first."""
        total: Counter[str] = Counter()
        chosen: Counter[str] = Counter()
        for one in self.below(self.rows[0]):
            words = one_line(self.parts(one)[0].what, limit=120)
            total[words] += 1
            chosen[words] += one in self.chosen
        return [(words, chosen[words], count) for words, count in total.most_common()]

    @property
    def choice(self) -> dict[Proposal, Collection[Any]]:
        """The chosen parts by case. Cases with no chosen part are left out."""
        parts = {one: self.parts(Line(one), chosen=True) for one in self._proposals}
        return {one: chosen for one, chosen in parts.items() if chosen}

    def parts(self, line: Line, *, chosen: bool = False) -> list[Any]:
        """Return the parts of a line, or only the chosen ones."""
        found = (one for one in self.below(line) if not chosen or one in self.chosen)
        return [one.proposal.parts[one.part] for one in found if one.proposal is not None]

    def below(self, line: Line) -> Sequence[Line]:
        """Return the lines of the parts of a line."""
        if line.part >= 0:
            return [line]
        proposals = self._proposals if line.proposal is None else [line.proposal]
        return [Line(one, number) for one in proposals for number in range(len(one.parts))]

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return checkbox, name and change of a line."""
        line = self.rows[position]
        if line.proposal is None:
            count = f"{len(self.chosen):,} of {self._total:,}"
            return [self.box(line), ("all cases", "strong")], [(count, "muted")]
        proposal = line.proposal
        if line.part < 0:
            file = one_line(proposal.file.name.partition(".")[0], limit=30)
            right: list[Piece] = [(file, "muted")] if width > 50 else []
            room = max(width - 8 - (len(file) if right else 0), 8)
            near = self.rows[max(position - NEIGHBOURS, 0) : position + NEIGHBOURS]
            others = (one_line(other.proposal.name) for other in near if other.proposal is not None)
            name = cut_sibling(one_line(proposal.name), room, others)
            return [("  ", ""), self.box(line), (name, "strong")], right
        part = proposal.parts[line.part]
        is_state = isinstance(part, Hunk) and part.kind == "state"
        turn = "" if part.turn is None or is_state else f"turn {part.turn + 1} "
        left: list[Piece] = [("    ", ""), self.box(line), (turn, "muted"), (one_line(part.what, limit=120), "")]
        if not isinstance(part, Hunk):
            sides = [shown(value, limit=40) for value in (part.old, part.new) if value is not ABSENT]
            left.append((f"  {' → '.join(sides)}", "muted"))
        return left, []


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
        frame = Vertical(classes="dialog accept")
        frame.border_title = Content(title)
        frame.border_subtitle = Content("enter saves the chosen changes · esc closes")
        super().__init__(ProposalList(proposals, all_chosen=all_chosen), keys, frame, ["criteria"])
        self._outcome.display = False
        self._note = note

    def on_mount(self) -> None:
        """Show the list, and what is left out."""
        self.list.when_moved = self._show_change
        super().on_mount()
        self._show_change()
        self.say(self._note, warning=True)

    def action_pick_rule(self) -> None:
        """Explain that rules can be chosen only for a single case."""
        self.say("rules are for the differences of one case: press esc, then A on that case")

    def action_enter(self) -> None:
        """Close the dialog and return the chosen parts."""
        choice = self.list.choice
        if choice:
            self.dismiss(choice)
        else:
            self.say("nothing chosen: press space for the line, or a for everything", warning=True)

    def _show_hunks(self) -> None:
        line = self.list.row
        show_hunks(self._detail, self.list.parts(line) if line.proposal is not None else ())

    def _show_change(self) -> None:
        self._show_hunks()
        line = self.list.row
        if line.proposal is None:
            words = f"{counted(len(self.list.chosen), 'change')} in {counted(len(self.list.choice), 'case')} chosen"
            self._preview.update(_summary(words, self.list.kinds))
            return
        # Without a choice, show what choosing the line would change.
        parts = self.list.parts(Line(line.proposal), chosen=True) or self.list.parts(line)
        start_work(self, partial(self._compare, line, line.proposal, parts), "preview", exclusive=True)

    async def _compare(self, line: Line, proposal: Proposal, parts: Sequence[Any]) -> None:
        lines = await asyncio.to_thread(lambda: file_diff(_text(proposal.before), _text(proposal.after(parts))))
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


def _text(case: Any) -> bytes:
    return (json.dumps(case, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")

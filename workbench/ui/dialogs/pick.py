"""Dialogs that ask for one of several items, as in the palette, or for a name."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from workbench.results.cells import cell_len, cut, fit
from workbench.text.safe_text import one_line
from workbench.ui.actions import Where, actions_in, key_label
from workbench.ui.dialogs.items import Item, Search, searching
from workbench.ui.widgets.basics import PlainInput
from workbench.ui.widgets.rows import Piece, RowsOf

Ask: TypeAlias = Callable[[ModalScreen[Any]], Awaitable[Any]]
"""A function that opens a dialog and returns its result."""


class PickList(RowsOf[Item]):
    """A list of items."""

    def show_items(self, items: Sequence[Item], cursor: int = 0) -> None:
        """Replace the items and put the cursor on the item at position `cursor`."""
        self.rows = items
        self._cursor = cursor
        self.rows_changed()
        self.scroll_to(y=0, animate=False)
        self.move_to(cursor)
        self.show_cursor()
        self.when_moved()

    @property
    def item(self) -> Item | None:
        """The item under the cursor, or None on a heading and in an empty list."""
        return self.row if self.rows and not self.row.heading else None

    def can_stop(self, position: int) -> bool:
        """Return whether the row is not a heading."""
        return not self.rows[position].heading

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return kind and label as the left side, and `why_not` and the hint as the right side."""
        item = self.rows[position]
        if item.heading:
            return [(item.label, "label")], []
        kind = [(item.kind + "  ", "label")] if item.kind else []
        # A long reason leaves room for the label.
        hint = "  ".join(text for text in (cut(item.why_not, width // 2), item.hint) if text)
        right = [(hint, "label")] if hint else []
        return [*kind, (item.label, "muted" if item.why_not else "")], right


class PickScreen(ModalScreen[Any]):
    """A dialog that returns the value of the picked item, or None after esc.

    Without a `placeholder`, it has no search field, for questions with few answers. `q` then closes it, too. `nothing`
    is shown if no item matches. For a preview, `on_move` is called with the value under the cursor, or None. The cursor
    starts on the item with the value `current`, if there is one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss"),
        Binding("down,ctrl+n", "move('down')"),
        Binding("up,ctrl+p", "move('up')"),
        Binding("pagedown", "move('page_down')"),
        Binding("pageup", "move('page_up')"),
        # The search field takes these, if there is one.
        Binding("enter", "pick"),
        Binding("j", "move('down')"),
        Binding("k", "move('up')"),
        Binding("q", "dismiss"),
    ]

    def __init__(
        self,
        title: str,
        search: Search,
        *,
        placeholder: str = "type to find",
        nothing: str = "nothing matches",
        on_move: Callable[[Any], None] | None = None,
        current: Any = None,
    ) -> None:
        super().__init__()
        self._title, self._search, self._nothing, self._on_move = title, search, nothing, on_move
        self._placeholder, self._current = placeholder, current

    def compose(self) -> ComposeResult:
        """Lay out the search field, the list and the help line."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            yield PlainInput(placeholder=self._placeholder)
            yield PickList()
            yield Static("", classes="help", markup=False)

    def on_mount(self) -> None:
        """Show all items with the cursor on the current one. Focus the search field, if there is one."""
        items = self._search("")
        values = [item.value for item in items]
        cursor = values.index(self._current) if self._current is not None and self._current in values else 0
        self._list.add_class("-active")
        self._list.can_focus = False
        self._list.when_moved = self._moved
        self._list.show_items(items, cursor)
        # There is nothing to find in an empty list.
        field, dialog = self.query_one(PlainInput), self.query_one(".dialog")
        dialog.set_class(not items, "-empty")
        dialog.set_class(not self._placeholder, "-few")
        field.display = bool(self._placeholder and items)
        field.disabled = not field.display
        if field.display:
            field.focus()

    def on_input_changed(self, event: PlainInput.Changed) -> None:
        """Show the items that match the typed text."""
        self._list.show_items(self._search(event.value))

    def _moved(self) -> None:
        item = self._list.item
        self.query_one(".help", Static).update(Content(item.help if item else self._nothing))
        acts = item is not None and item.value is not None
        self.query_one(".dialog").border_subtitle = Content("enter chooses · esc closes" if acts else "esc closes")
        if self._on_move is not None:
            self._on_move(item.value if item else None)

    def action_move(self, direction: str) -> None:
        """Move the cursor in the list while the field keeps the focus."""
        self._list.move(direction)

    def action_pick(self) -> None:
        """Pick the item under the cursor, or the clicked one."""
        item = self._list.item
        if item is not None:
            self.dismiss(item.value)

    on_input_submitted = on_row_view_picked = action_pick

    @property
    def _list(self) -> PickList:
        return self.query_one(PickList)


def key_items(where: Where, keys: Mapping[str, tuple[str, ...]]) -> list[Item]:
    """Return an item for each action of a place, if it has a key. The value of an item is the call of its action."""
    rows = [row for row in actions_in(where) if keys[row.id]]
    labels = [" ".join(map(key_label, keys[row.id])) for row in rows]
    width = max(map(cell_len, labels), default=0)
    return [
        Item(row.help, row.call, kind=fit(shown, width), also=f"{row.label} {row.also}")
        for row, shown in zip(rows, labels, strict=True)
    ]


def show_keys(screen: Screen[Any], where: Where, keys: Mapping[str, tuple[str, ...]], title: str = "keys") -> None:
    """List the keys that work on a screen. Picking one runs its action."""

    def picked(call: str | None) -> None:
        if call is not None:
            screen.call_later(screen.run_action, call)

    screen.app.push_screen(PickScreen(title, searching(key_items(where, keys))), picked)


class NameScreen(ModalScreen[str | None]):
    """A dialog that asks for a name and returns it, or None after esc.

    `question` is the title, as safe text. `proposed` is the initial text of the field. `fault` returns the problem of a
    name, or "" to accept it. `ways` replaces the line of keys, if it is not "".
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss")]

    def __init__(self, question: str, fault: Callable[[str], str], proposed: str = "", ways: str = "") -> None:
        super().__init__()
        self._question, self._fault, self._proposed = question, fault, proposed
        self._ways = ways or "enter accepts · esc closes"

    def compose(self) -> ComposeResult:
        """Lay out the field and its help."""
        with Vertical(classes="dialog -small") as dialog:
            dialog.border_title = Content(self._question)
            yield PlainInput(self._proposed)
            yield Static(self._ways, classes="help", markup=False)

    def on_mount(self) -> None:
        """Select the proposed name, which typing then replaces."""
        self.query_one(PlainInput).select_all()

    def on_input_changed(self) -> None:
        """Replace the message about a fault with the keys."""
        self.query_one(".help", Static).update(Content(self._ways))

    def on_input_submitted(self) -> None:
        """Accept the name, or show what is wrong with it."""
        name = self.query_one(PlainInput).value.strip()
        try:
            fault = self._fault(name)
        except OSError as error:  # The system refuses the name, for example because it is too long.
            fault = error.strerror or str(error)
        if fault:
            self.query_one(".help", Static).update(Content(one_line(fault)))
        else:
            self.dismiss(name)

"""The dialog before faults are tried: what will run, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.ui.actions import footer
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.keys import bindings, bindings_of


@dataclass(frozen=True, slots=True)
class Offer:
    """A description of what would run. `lines` are safe texts, `heading` is the first one."""

    heading: str
    live: Sequence[str]
    """The lines if tools are called."""
    frozen: Sequence[str]
    """The lines if tools are answered from the recordings, or () if no case has one."""
    more: Sequence[str] = ()
    """Lines that hold in both modes."""


class FaultDialog(ModalScreen[bool | None]):
    """Its result says whether tools are frozen, or is None if the user left. `title` is safe text."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("back", "close", "keys"), *bindings_of("try_faults")]

    def __init__(self, title: str, offer: Offer, frozen: bool, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._title, self._offer, self._keys = title, offer, keys
        self._frozen = frozen and bool(offer.frozen)
        self._text = Static("", classes="text", markup=False)
        self._line = KeyLine(footer("try_faults"), keys)

    def compose(self) -> ComposeResult:
        """Lay out the text and the keys."""
        with Vertical(classes="dialog -faults") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("esc closes")
            yield self._text
            yield self._line

    def on_mount(self) -> None:
        """Show what would run."""
        self._show()

    def _show(self) -> None:
        offer = self._offer
        lines = [*(offer.frozen if self._frozen else offer.live), *offer.more]
        parts: list[str | tuple[str, str]] = [(offer.heading, "bold")]
        for line in lines:
            parts.append(f"\n{line}")
        self._text.update(Content.assemble(*parts))

    # Keys

    def action_enter(self) -> None:
        """Start."""
        self.dismiss(self._frozen)

    def action_freeze(self) -> None:
        """Switch between live and frozen tools."""
        if self._offer.frozen:
            self._frozen = not self._frozen
            self._show()
        else:
            self._line.say("no case here has a recording: K freezes cases", warning=True)

    def action_keys(self) -> None:
        """Show the keys that work here."""
        show_keys(self, "try_faults", self._keys)

    def action_back(self) -> None:
        """Close the dialog."""
        self.dismiss(None)

    action_close = action_back

"""The dialog that sets up a try: what to compare, and how often each case runs."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Label, Static

from workbench.files.folders import expanded
from workbench.project.variants.variant import Wanted
from workbench.ui.running.dialogs import FieldsDialog
from workbench.ui.widgets.basics import PlainInput

RUNS = 3
"""Default number of runs of each case in each variant."""
_MOST = 100
_HOW = "enter tries them · tab next field · esc closes"
_FIELDS = {
    "against": ("against", "HEAD", "a git revision, HEAD if empty"),
    "models": ("models", "", "model names, for ADK agents: one variant for each"),
    "values": ("variables", "NAME=VALUE", "environment variables of the agents: one variant for each"),
    "swaps": ("files", "FILE=OTHER", "FILE gets the content of OTHER: one variant for each"),
    "folders": ("folders", "NAME=DIR", "folders with other versions of the project: one variant for each"),
    "runs": ("runs", "", "how often each case runs in each variant"),
}
"""Name of a field → its label, its format, and its help."""
_PAIRS = ("values", "swaps", "folders")


@dataclass(frozen=True, slots=True)
class Choice:
    """The variants to try. `typed` is the text of each field, to fill the dialog again."""

    wanted: Wanted
    runs: int
    typed: tuple[tuple[str, str], ...] = ()


class TryDialog(FieldsDialog[Choice]):
    """A dialog that asks which variants to try. `title` is safe text. `before` is an earlier choice to start from."""

    def __init__(self, title: str, before: Choice | None = None) -> None:
        super().__init__()
        self._title = title
        typed = dict(before.typed) if before is not None else {"against": "HEAD", "runs": str(RUNS)}
        self._fields = {
            name: PlainInput(typed.get(name, ""), placeholder=form) for name, (_, form, _) in _FIELDS.items()
        }

    def compose(self) -> ComposeResult:
        """Lay out the fields and the help line."""
        with Vertical(classes="dialog -small -try") as dialog:
            dialog.border_title = Content(self._title)
            for name, field in self._fields.items():
                with Horizontal():
                    yield Label(_FIELDS[name][0])
                    yield field
            yield Static(_HOW, classes="help", markup=False)

    def on_mount(self) -> None:
        """Select the revision, which typing then replaces."""
        self._fields["against"].select_all()

    def on_descendant_focus(self) -> None:
        """Show the help of the focused field."""
        self._explain()

    def on_input_changed(self) -> None:
        """Show why the input is not valid, or else the help of the focused field."""
        if isinstance(found := self.read(), str):
            self.say(found)
        else:
            self._explain()

    def _explain(self) -> None:
        about = next((_FIELDS[name][2] for name, field in self._fields.items() if field.has_focus), "")
        several = " Separate them with spaces." if self.focused in [self._fields[one] for one in _SEVERAL] else ""
        self.say(f"{about}.{several}\n{_HOW}" if about else _HOW)

    def read(self) -> Choice | str:
        """Return the variants to try, or a message if the input is not valid."""
        values = {name: field.value.strip() for name, field in self._fields.items()}
        runs = values["runs"]
        if not (runs.isdecimal() and 1 <= int(runs) <= _MOST):
            return f"runs must be a number from 1 to {_MOST:,}"
        try:
            words = {name: shlex.split(values[name]) for name in _SEVERAL}
        except ValueError:
            return "a quotation mark is not closed"
        pairs: dict[str, list[tuple[str, str]]] = {}
        for name in _PAIRS:
            parts = [word.partition("=") for word in words[name]]
            if not all(left and sign and right for left, sign, right in parts):
                return f"write {_FIELDS[name][0]} as {_FIELDS[name][1]}"
            paths = name != "values"
            pairs[name] = [(left, str(expanded(right)) if paths else right) for left, _, right in parts]
        wanted = Wanted(
            values["against"] or None,
            tuple(pairs["swaps"]),
            tuple(pairs["values"]),
            tuple(words["models"]),
            tuple(pairs["folders"]),
            here=Path.cwd(),
        )
        return Choice(wanted, int(runs), tuple(values.items()))


_SEVERAL = ("models", *_PAIRS)
"""Fields that take several words."""

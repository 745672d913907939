"""The dialog before a try: what to compare with, the variants, and how often to run each case."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Label, Static

from workbench.files.folders import expanded
from workbench.project.variants.variant import Wanted
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.running.dialogs import FieldsDialog
from workbench.ui.widgets.basics import PlainInput

RUNS = 3
"""How often each case runs in each variant, unless the user chooses otherwise."""
_MOST = 100
_HOW = "enter tries them · tab next field · esc closes"
_FIELDS = {
    "against": ("against", "HEAD", "a git revision; HEAD if it is empty"),
    "models": ("models", "", "names of models, for ADK agents: each is a variant"),
    "values": ("variables", "NAME=VALUE", "each is a variant in which the agents have this variable"),
    "swaps": ("files", "FILE=OTHER", "each is a variant in which FILE has the content of OTHER"),
    "folders": ("folders", "NAME=DIR", "each is a variant with the files of another folder"),
    "runs": ("runs", "", "how often each case runs in each variant"),
}
"""Field → its label, its form, and what it is for."""
_PAIRS = ("values", "swaps", "folders")


@dataclass(frozen=True, slots=True)
class Choice:
    """What to try, and what was typed for it. `typed` fills the dialog again."""

    wanted: Wanted
    runs: int
    typed: tuple[tuple[str, str], ...] = ()


class TryDialog(FieldsDialog[Choice]):
    """A dialog that returns what to try. `title` is safe text."""

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
        """Select the revision, so that typing replaces it."""
        self._fields["against"].select_all()

    def on_descendant_focus(self) -> None:
        """Show what the field is for."""
        self._explain()

    def on_input_changed(self) -> None:
        """Show what is wrong with the input, or what the field is for."""
        found = self.read()
        if isinstance(found, str):
            self.say(found)
        else:
            self._explain()

    def _explain(self) -> None:
        about = next((_FIELDS[name][2] for name, field in self._fields.items() if field.has_focus), "")
        several = " Separate several by blanks." if self.focused in [self._fields[one] for one in _SEVERAL] else ""
        self.say(f"{about}.{several}\n{_HOW}" if about else _HOW)

    def read(self) -> Choice | str:
        """Return what to try, or what is wrong with the input."""
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
                return f"{_FIELDS[name][0]} have the form {_FIELDS[name][1]}"
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


def title_of(cases: int) -> str:
    """Return the title of the dialog for this number of cases, as safe text."""
    return one_line(f"try variants on {counted(cases, 'case')}")

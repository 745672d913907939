"""The criteria of the run to come: which are on, at which threshold, compared how."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.actions import footer
from workbench.metrics.registry import known
from workbench.text import one_line
from workbench.ui.cells import fit
from workbench.ui.draft import Draft, Setting, configs, next_match_type, raised
from workbench.ui.keys import bindings, bindings_of
from workbench.ui.saving import save
from workbench.ui.tree.labels import label
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.rows import Piece, RowView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workbench.agents.criteria_choice import CriteriaChoice
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.saving import Saver

_ONCE = "Changes hold for one run, unless they are saved into the file."


@dataclass(frozen=True, slots=True)
class Line:
    """A heading with the config and why it holds, or one of its criteria."""

    choice: "CriteriaChoice"
    setting: Setting | None = None


class OptionsList(RowView):
    """The criteria of each config under the name of its file. `typed` is a threshold being typed at the cursor."""

    def __init__(self, choices: "Sequence[CriteriaChoice]", draft: Draft, root: Path) -> None:
        super().__init__()
        self._choices, self._draft, self._root = configs(choices), draft, root
        self._lines: list[Line] = []
        self.typed = ""

    def take(self) -> None:
        """Reads the draft again."""
        self._lines = []
        for choice in self._choices:
            self._lines.append(Line(choice))
            self._lines += [Line(choice, setting) for setting in self._draft.settings(choice.config)]
        self.rows_changed()
        self.move_to(self.cursor)

    @property
    def line(self) -> Line | None:
        """The line under the cursor."""
        return self._lines[self.cursor] if self._lines else None

    def row_count(self) -> int:
        return len(self._lines)

    def can_stop(self, position: int) -> bool:
        return self._lines[position].setting is not None

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        line = self._lines[position]
        setting = line.setting
        if setting is None:
            return [(self._heading(line.choice), "label")], []
        box = ("[x] ", "passed") if setting.on else ("[ ] ", "muted")
        left: list[Piece] = [box, (label(setting.name), "" if setting.on else "muted")]
        if setting.changed:
            left.append((" changed", "accent"))
        typing = self.typed and position == self.cursor
        threshold = f"≥ {self.typed}▏" if typing else f"≥ {setting.threshold:.2f}" if setting.on else ""
        way = setting.match_type or "" if setting.on and width > 52 else ""
        return left, [(f"{fit(one_line(way), 10)} {fit(one_line(threshold), 7)}", "")]

    def _heading(self, choice: "CriteriaChoice") -> str:
        path = choice.config.path
        if path is None:
            return one_line(choice.reason)
        return one_line(path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path))


Ending: TypeAlias = Literal["run", "saved"]


class OptionsScreen(ModalScreen[Ending | None]):
    """Changes the draft as it goes. Ends with "run" if the run is to start now, with "saved" if files were written,
    None if it was left: the changes stay for the run to come."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter", "back"),
        *bindings_of("options"),
    ]

    def __init__(
        self,
        entries: "Sequence[EvalsetEntry]",
        draft: Draft,
        cases: int,
        root: Path,
        keys: "Mapping[str, tuple[str, ...]]",
        saver: "Callable[[], Saver]",
    ) -> None:
        super().__init__()
        self._entries, self._draft, self._cases, self._keys, self._saver = entries, draft, cases, keys, saver
        self._list = OptionsList([entry.criteria for entry in entries], draft, root)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            noun = "case" if self._cases == 1 else "cases"
            dialog.border_title = Content(f"criteria of the run to come: {self._cases:,} {noun}")
            dialog.border_subtitle = Content("0…9 threshold · enter runs · esc keeps it so")
            yield self._list
            yield Static("", classes="help -tall", markup=False)
            yield KeyLine(footer("options"), self._keys)

    def on_mount(self) -> None:
        self._list.when_moved = self._moved
        self._list.take()
        self._list.focus()
        self._explain()

    def _moved(self) -> None:
        self._list.typed = ""
        self._explain()

    def on_row_view_picked(self) -> None:
        self.action_option_toggle()

    def on_key(self, event: Key) -> None:
        if event.character and event.character in "0123456789.":
            event.stop()
            self._list.typed = (self._list.typed + event.character)[:6]
            self._list.refresh()
        elif event.key == "backspace" and self._list.typed:
            event.stop()
            self._list.typed = self._list.typed[:-1]
            self._list.refresh()

    def action_move_down(self) -> None:
        self._list.move("down")

    def action_move_up(self) -> None:
        self._list.move("up")

    def action_page_down(self) -> None:
        self._list.move("page_down")

    def action_page_up(self) -> None:
        self._list.move("page_up")

    def action_top(self) -> None:
        self._list.move("top")

    def action_bottom(self) -> None:
        self._list.move("bottom")

    def action_enter(self) -> None:
        if not self._take_typed():
            self.dismiss("run")

    def action_back(self) -> None:
        if self._list.typed:
            self._list.typed = ""
            self._list.refresh()
        else:
            self.dismiss(None)

    def action_option_toggle(self) -> None:
        self._change(lambda setting: replace(setting, on=not setting.on))

    def action_option_more(self) -> None:
        self._change(lambda setting: raised(setting, 1))

    def action_option_less(self) -> None:
        self._change(lambda setting: raised(setting, -1))

    def action_option_match(self) -> None:
        self._change(next_match_type)

    def action_option_save(self) -> None:
        self.run_worker(self._save(), group="save", exclusive=True)

    async def _save(self) -> None:
        from workbench.authoring.saving import ChangedOnDiskError
        from workbench.ui.editing.wording import in_words

        try:
            written = await asyncio.to_thread(save, self._entries, self._draft, self._saver())
        except (ChangedOnDiskError, OSError, ValueError) as error:
            self._say(in_words(error))
            self._list.take()
            return
        if written:
            self.dismiss("saved")
        else:
            self._say("nothing is changed")

    def action_option_reset(self) -> None:
        self._draft.clear()
        self._list.take()

    def _take_typed(self) -> bool:
        """Takes the threshold that was typed; False if none was."""
        if not self._list.typed:
            return False
        typed, self._list.typed = self._list.typed, ""
        try:
            number = float(typed)
        except ValueError:
            self._say(f"{typed} is not a number")
            self._list.refresh()
        else:
            self._change(lambda setting: replace(setting, threshold=number, on=True))
        return True

    def _change(self, change: "Callable[[Setting], Setting]") -> None:
        line = self._list.line
        if line is None or line.setting is None:
            return
        self._draft.change(line.choice.config, change(line.setting))
        self._list.take()

    def _explain(self) -> None:
        line = self._list.line
        info = known().get(line.setting.name) if line and line.setting else None
        self._say(f"{info.measures}\n{_ONCE}" if info else _ONCE)

    def _say(self, text: str) -> None:
        self.query_one(".help", Static).update(Content(text))

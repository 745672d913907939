"""The options of the next run: which criteria are on, their thresholds, match types and judges."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste

from workbench.actions import footer
from workbench.counting import counted
from workbench.metrics.registry import known
from workbench.text import one_line
from workbench.ui.criteria.value_field import IN_NUMBERS
from workbench.ui.draft import Draft, Setting, next_match_type, raised
from workbench.ui.editing.name import NameScreen
from workbench.ui.items import Item, searching
from workbench.ui.judge_setting import asked, fault_of
from workbench.ui.keys import bindings_of
from workbench.ui.saving import save
from workbench.ui.screens.options_list import Line, OptionsList
from workbench.ui.screens.pick import PickScreen
from workbench.ui.screens.rows_screen import RowsScreen
from workbench.ui.tree.labels import label
from workbench.ui.widgets.footer import KeyLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.saving import Saver

_ONCE = "Changes hold for the next run only; s saves them into the file."
_LONGEST = 12
"""Characters of a threshold while it is typed."""

Ending: TypeAlias = Literal["run", "applied", "saved"]


class OptionsScreen(RowsScreen[Ending | None]):
    """Changes a copy of the draft. Ends with "run" if the changes are applied and the run starts now, with "applied"
    if they only wait for the next run, with "saved" if files were written; with None if they were discarded."""

    BINDINGS: ClassVar[list[BindingType]] = [
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
        self._applied, self._draft = draft, draft.copy()
        self._list = OptionsList([entry.criteria for entry in entries], self._draft, root)
        super().__init__(self._list, keys)
        self._entries, self._cases, self._saver = entries, cases, saver
        self._typed_at: Line | None = None
        """The line that a threshold is being typed for."""
        self.message.set_classes("help -tall")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"criteria for the next run: {counted(self._cases, 'case')}")
            dialog.border_subtitle = Content("0…9 threshold · enter runs · esc discards")
            yield self._list
            yield self.message
            yield KeyLine(footer("options"), self.keys_of)

    def on_mount(self) -> None:
        self._list.when_moved = self._moved
        self._list.take()
        self._list.focus()
        self._explain()

    def _moved(self) -> None:
        # Whoever types a threshold and goes on to the next line means it.
        if self._take_typed():
            self._explain()

    def on_row_view_picked(self) -> None:
        self.action_option_toggle()

    # Typing a threshold

    def on_key(self, event: Key) -> None:
        if event.character and event.character in IN_NUMBERS:
            event.stop()
            self._type(self._list.typed + event.character)
        elif event.key == "backspace" and self._list.typed:
            event.stop()
            self._type(self._list.typed[:-1])

    def on_paste(self, event: Paste) -> None:
        event.stop()
        text = event.text.strip()
        if text and IN_NUMBERS.issuperset(text):
            self._type(self._list.typed + text)
        else:
            self.say(f"not a number: {one_line(text, limit=40)}")

    def _type(self, text: str) -> None:
        if self._list.line is None or self._list.line.setting is None:
            return
        if len(text) > _LONGEST:
            self.say(f"a threshold has {_LONGEST} characters at most")
            return
        self._typed_at = self._list.line
        self._list.typed = text
        self._list.refresh()

    def _take_typed(self) -> bool:
        """Take the threshold that was typed, if any. Return False and say why if it is not a number."""
        typed, self._list.typed = self._list.typed, ""
        line, self._typed_at = self._typed_at, None
        if not typed or line is None or line.setting is None:
            return True
        self._list.refresh()
        try:
            number = float(typed)
        except ValueError:
            self.say(f"{typed} is not a number: {label(line.setting.name)} is unchanged")
            return False
        self._change_line(line, lambda setting: replace(setting, threshold=number, on=True))
        return True

    # Leaving

    def action_enter(self) -> None:
        if self._list.typed:
            self._take_typed()
        else:
            self._apply("run")

    def action_option_apply(self) -> None:
        if self._take_typed():
            self._apply("applied")

    def _apply(self, ending: Ending) -> None:
        self._applied.take(self._draft)
        self.dismiss(ending)

    def action_back(self) -> None:
        if self._list.typed:
            self._list.typed = ""
            self._list.refresh()
        else:
            self.dismiss(None)

    # Changing a criterion

    def action_option_toggle(self) -> None:
        self._change(lambda setting: replace(setting, on=not setting.on))

    def action_option_more(self) -> None:
        self._change(lambda setting: raised(setting, 1))

    def action_option_less(self) -> None:
        self._change(lambda setting: raised(setting, -1))

    def action_option_match(self) -> None:
        self._change(next_match_type)

    def action_option_judge(self) -> None:
        if not self._take_typed():
            return
        line = self._list.line
        if line is None or line.setting is None or line.setting.judge is None:
            self.say("no judge is asked for this one")
            return
        self.run_worker(self._choose_judge(line.setting), exclusive=True)

    async def _choose_judge(self, setting: Setting) -> None:
        name = label(setting.name)
        items = [Item(one_line(model), model, help=words) for model, words in self._list.judges().items()]
        items.append(Item("another …", "", help="gemini-…, provider/model (LiteLLM), python:package.module:function"))
        current = setting.judge.model if setting.judge else None
        screen = PickScreen(f"who judges {name}?", searching(items), current=current)
        model = await self.app.push_screen_wait(screen)
        if model == "":
            model = await self.app.push_screen_wait(NameScreen(f"who judges {name}?", fault_of, current or ""))
        if model:
            self._change(lambda one: replace(one, on=True, judge=one.judge and replace(one.judge, model=model)))

    def action_option_oftener(self) -> None:
        self._ask(1)

    def action_option_less_often(self) -> None:
        self._ask(-1)

    def _ask(self, more: int) -> None:
        line = self._list.line
        if line is None or line.setting is None or line.setting.judge is None or line.setting.judge.samples is None:
            self.say("there is no judge here that is asked several times")
            return
        self._change(lambda one: replace(one, on=True, judge=one.judge and asked(one.judge, more)))

    # Saving

    def action_option_save(self) -> None:
        if self._take_typed():
            self.run_worker(self._save(), group="save", exclusive=True)

    async def _save(self) -> None:
        from workbench.authoring.saving import ChangedOnDiskError
        from workbench.ui.editing.wording import in_words

        try:
            written = await asyncio.to_thread(save, self._entries, self._draft, self._saver())
        except (ChangedOnDiskError, OSError, ValueError) as error:
            self.say(in_words(error))
            self._list.take()
            return
        if written:
            self._apply("saved")
        else:
            self.say("nothing is changed")

    def action_option_reset(self) -> None:
        self._list.typed = ""
        self._draft.clear()
        self._list.take()

    # What is shown

    def _change(self, change: "Callable[[Setting], Setting]") -> None:
        if self._take_typed() and self._list.line is not None:
            self._change_line(self._list.line, change)

    def _change_line(self, line: Line, change: "Callable[[Setting], Setting]") -> None:
        if line.setting is None:
            return
        self._draft.change(line.choice.config, change(line.setting))
        self._list.take()
        self._explain()

    def _explain(self) -> None:
        line = self._list.line
        setting = line.setting if line else None
        info = known().get(setting.name) if setting else None
        judge = setting.judge if setting else None
        told = f"\njudge: {one_line(str(judge))} · e another" if judge else ""
        told += " · ] [ asked more, fewer times" if judge and judge.samples is not None else ""
        self.say(f"{info.measures}{told}\n{_ONCE}" if info else _ONCE)

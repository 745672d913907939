"""Palette, keys, themes, copying, leaving."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from workbench.actions import ACTIONS, COPY, DIGITS, EDIT, FIND, GENERAL, MARK, RUN, Action, key_label
from workbench.rendering.cells import fit
from workbench.text import one_line, plain
from workbench.ui import fuzzy
from workbench.ui.clipboard import copy
from workbench.ui.host import Host
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.run_actions import RunActions, cases
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.pick_list import Item

_CASES_FOUND = 50
_PALETTE = (RUN, FIND, EDIT, MARK, COPY, GENERAL)
"""What the palette holds, in its order: not the keys that only move."""


class GeneralActions(RunActions):
    """What is about the program itself."""

    host: Host

    # Finding actions

    def action_palette(self) -> None:
        rows = sorted(filter(self._in_palette, ACTIONS), key=lambda row: _PALETTE.index(row.group))
        do = [Item(row.label, ("do", row.id), self._keys_of(row), row.help) for row in rows]
        themes = self._theme_items()
        chosen = searching([*do, *themes])

        def search(query: str) -> Sequence[Item]:
            found = chosen(query)
            return [*found, *self._find_cases(query)] if len(query.strip()) > 1 else found

        self._pick(PickScreen("palette", search, placeholder="an action, a theme or a case", on_move=self._preview))

    def action_keys(self) -> None:
        items: list[Item] = [Item(fault, heading=True) for fault in self.host.key_faults]
        group = ""
        for row in ACTIONS:
            if row.where == "main" and self.keys[row.id]:
                if row.group != group:
                    group = row.group
                    items.append(Item(group, heading=True))
                items.append(Item(row.help, ("do", row.id), kind=fit(self._keys_of(row), 11), help=row.help))
        self._pick(PickScreen("keys", searching(items)))

    def action_theme(self) -> None:
        current = ("theme", self.app.theme)
        self._pick(PickScreen("theme", searching(self._theme_items()), on_move=self._preview, current=current))

    def action_notices(self) -> None:
        store = self.session.store
        notices = [notice for notice in store.notices if not (notice.forecast and store.run.finished)]
        items = [
            Item(
                one_line(notice.message), hint=notice.level, help=plain(f"{notice.message}\n{notice.hint}", limit=2000)
            )
            for notice in notices
        ]
        self.app.push_screen(PickScreen("notices of the last run", searching(items), nothing="the last run had none"))

    # Copying

    def action_copy_id(self) -> None:
        found = self._id_under_cursor()
        if found is not None:
            self._copy(*found)

    def action_copy(self) -> None:
        row = self.tree_view.row
        if self.right.shows_case and (self.in_right or row is None):
            found = self.right.detail.copy_text()
        elif row is not None and row.case >= 0 and (case := self.session.case(row.evalset, row.case)) is not None:
            found = (f"the JSON of {case.eval_id}", json.dumps(case.raw, ensure_ascii=False, indent=2))
        else:
            found = self._id_under_cursor()
        if found is not None:
            self._copy(*found)

    def _copy(self, what: str, text: str) -> None:
        copied = copy(what, text, self.host.copy)
        if copied.file is None:
            self.say(copied.message)
        else:
            self.notify(one_line(copied.message), timeout=10, markup=False)

    def _id_under_cursor(self) -> tuple[str, str] | None:
        row = self.tree_view.row
        workspace = self.session.workspace
        if row is None or workspace is None:
            return None
        if row.kind == "all":
            return "the folder", str(workspace.target)
        if row.kind == "agent":
            name = self.tree_view.model.groups[row.agent]
            folders = (str(agent.folder) for agent in workspace.agents if agent.name == name)
            return next((("the folder of " + name, folder) for folder in folders), None)
        entry = self.session.entry(row.evalset)
        if row.case < 0:
            return "the path of the evalset", entry.relative
        return "the id", entry.document.cases[row.case].eval_id

    # Leaving

    def action_quit(self) -> None:
        selected = self.get_selected_text()
        if selected:
            self._copy("the selection", selected)
            self.clear_selection()
        elif (self.session.running or self.session.starting) and not self.session.asked_to_quit:
            self.session.asked_to_quit = True
            left = sum(not record.finished for record in self.session.store.current_records())
            self.say(f"{cases(left)} still running: once more cancels them and leaves", warning=True)
        else:
            self.run_worker(self._leave(), group="leave", exclusive=True)

    async def _leave(self) -> None:
        if self.session.running or self.session.starting:
            self.say("cancelling …", warning=True)
        await asyncio.to_thread(self.runs.close)
        self.flush()
        self.app.exit(0)

    # Inside

    def _pick(self, screen: PickScreen) -> None:
        self.app.push_screen(screen, self._picked)

    def _picked(self, value: Any) -> None:
        self.host.preview_theme(None)
        match value:
            case ("do", str(name)):
                self.call_later(self.run_action, name)
            case ("theme", str(name)):
                self.host.keep_theme(name)
            case ("case", (int(evalset), int(case))):
                self.tree_view.go_to(Row("case", self.tree_view.model.outline.group_of[evalset], evalset, case))
                self.go_left()

    def _preview(self, value: Any) -> None:
        self.host.preview_theme(value[1] if isinstance(value, tuple) and value[0] == "theme" else None)

    def _in_palette(self, row: Action) -> bool:
        return row.where == "main" and row.group in _PALETTE and row.id not in ("palette", "theme")

    def _keys_of(self, row: Action) -> str:
        if row.keys == DIGITS:
            return "1 … 9"
        return " ".join(map(key_label, self.keys[row.id]))

    def _theme_items(self) -> list[Item]:
        return [
            Item(name, ("theme", name), kind="theme", help="Shows as you move; enter keeps it.")
            for name in self.host.theme_names
        ]

    def _find_cases(self, query: str) -> list[Item]:
        entries = self.tree_view.model.entries
        pairs = [(evalset, case.index) for evalset, entry in enumerate(entries) for case in entry.document.cases]
        texts = [case.eval_id for entry in entries for case in entry.document.cases]
        items = []
        for number in fuzzy.best(query, texts, _CASES_FOUND):
            entry = entries[pairs[number][0]]
            place = f"{label(entry.agent.name)} › " if entry.agent else ""
            items.append(
                Item(label(texts[number]), ("case", pairs[number]), kind="case", help=place + label(entry.relative))
            )
        return items

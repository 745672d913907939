"""Whole files: a new evalset, a new test file, and one of an old format made one of today's."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.counting import counted
from workbench.text import one_line, plain
from workbench.ui.screens.case_actions import CaseActions
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.tree.labels import label
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.migrate import Migration


class FileActions(CaseActions):
    """Files come into being beside what is under the cursor."""

    def action_new_evalset(self) -> None:
        self.run_worker(self._new_file("new evalset", ".evalset.json"), group="edit", exclusive=True)

    def action_new_test_file(self) -> None:
        self.run_worker(self._new_file("new test file", ".test.json"), group="edit", exclusive=True)

    def action_migrate(self) -> None:
        row = self.tree_view.row
        entry = self.session.entry(row.evalset) if row is not None and row.evalset >= 0 else None
        if entry is None:
            self.say("put the cursor on an evalset first")
        elif entry.document.format == "current":
            self.say("it is of today's schema already")
        else:
            self.run_worker(self._migrate(entry), group="edit", exclusive=True)

    async def _new_file(self, what: str, suffix: str) -> None:
        from workbench.authoring.evalset_file import name_fault, new_evalset
        from workbench.ui.editing.name import NameScreen

        if self.session.workspace is None:
            return
        folder = self._folder()

        def fault(name: str) -> str:
            taken = (folder / f"{name}{suffix}").exists()
            return name_fault(name) or (f"{name}{suffix} is there already" if taken else "")

        name = await self.app.push_screen_wait(NameScreen(f"{what} in {label(folder.name)}: its name", fault))
        if name is None:
            return
        file = folder / f"{name}{suffix}"
        if await self.put(f"{what} {file.name}", {file: (None, new_evalset(name))}):
            self.go_to_case(file, "")
            self.say(f"{one_line(file.name)} is there: + makes its first case")

    def _folder(self) -> Path:
        """The folder of the evalset under the cursor, or of the agent; else the one that is open."""
        workspace, row = self.session.workspace, self.tree_view.row
        assert workspace is not None
        if row is not None and row.evalset >= 0:
            return self.session.entry(row.evalset).file.parent
        if row is not None and row.kind == "agent":
            name = self.tree_view.model.groups[row.agent]
            for agent in workspace.agents:
                if agent.name == name:
                    return agent.folder
        return workspace.target if workspace.target.is_dir() else workspace.target.parent

    async def _migrate(self, entry: "EvalsetEntry") -> None:
        from workbench.model.evalset import BrokenFileError

        picked, session = True, None
        if entry.document.format == "old_test":
            picked, session = await self._pick_session(entry)
        if not picked:
            return
        try:
            before = await asyncio.to_thread(entry.file.read_bytes)
            migration = await asyncio.to_thread(_migration, entry, session)
        except (BrokenFileError, ValueError, OSError) as error:
            self.tell(error)
            return
        if await self._agreed(entry, migration):
            content = migration.text.encode("utf-8", "surrogatepass")
            await self.put(f"migrate {entry.file.name}", {entry.file: (before, content)})

    async def _pick_session(self, entry: "EvalsetEntry") -> tuple[bool, Path | None]:
        """The initial session of a list of turns: a file beside it, or none. (False, None) if the user went back."""
        files = sorted(entry.file.parent.glob("*session*.json"))
        if not files:
            return True, None
        items = [Item(label(file.name), (True, file), help="Its state goes into the case.") for file in files]
        items.append(Item("without an initial session", (True, None)))
        screen = PickScreen("the session with which the turns begin", searching(items))
        found: tuple[bool, Path | None] | None = await self.app.push_screen_wait(screen)
        return found or (False, None)

    async def _agreed(self, entry: "EvalsetEntry", migration: "Migration") -> bool:
        turns = counted(migration.turns, "turn")
        cases = counted(migration.cases, "case")
        items = [
            Item(f"write it: {cases}, {turns}", True, help="The file itself becomes the new one; u brings it back."),
            Item("leave it as it is", False),
        ]
        if migration.left_behind:
            items.append(Item("has no place in today's schema:", heading=True))
            for fault in migration.left_behind:
                what = one_line(f"line {fault.line}: {fault.json_path}", limit=200)
                items.append(Item(what, False, help=one_line(f"{fault.message}. {_LEAVES}")))
        lines = migration.text.splitlines()
        items.append(Item("the new file:", heading=True))
        items += [Item(plain(line, limit=400), False, help=_LEAVES) for line in lines[:_SHOWN]]
        if len(lines) > _SHOWN:
            items.append(Item(f"… {counted(len(lines) - _SHOWN, 'more line')}", False, help=_LEAVES))
        return bool(await self.app.push_screen_wait(PickScreen(f"migrate {label(entry.relative)}", searching(items))))


_LEAVES = "Enter here leaves the file as it is."
_SHOWN = 400
"""Lines of a new file that can be looked at before it is written."""


def _migration(entry: "EvalsetEntry", session: Path | None) -> "Migration":
    from workbench.authoring.migrate import migrate
    from workbench.model.evalset import read_initial_session
    from workbench.model.opening import name_of

    initial = read_initial_session(session) if session is not None else None
    return migrate(entry.file, name=name_of(entry.file), initial_session=initial)

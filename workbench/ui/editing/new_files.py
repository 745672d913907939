"""New files: evalsets, test files, and files converted from an old format."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.session.view import Controller, View
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.migrate import Migration


class NewFiles(Controller):
    """Creation of files beside the current evalset, and conversion of old ones."""

    def __init__(self, view: View, files: Files) -> None:
        super().__init__(view)
        self._files = files

    def new_evalset(self) -> None:
        """Create an empty evalset."""
        self.view.work(self._new_file("new evalset", ".evalset.json"), "edit")

    def new_test_file(self) -> None:
        """Create an empty test file."""
        self.view.work(self._new_file("new test file", ".test.json"), "edit")

    def migrate(self) -> None:
        """Convert the evalset under the cursor from an old format."""
        row = self.current_evalset()
        if row is None:
            return
        entry = self.session.entry(row.evalset)
        if entry.document.editable:
            self.view.say("the evalset needs no conversion")
        else:
            self.view.work(self._migrate(entry), "edit")

    async def _new_file(self, what: str, suffix: str) -> None:
        from workbench.editing.evalset_file import new_evalset

        if self.session.workspace is None:
            return
        folder = self.folder()
        file = await self.ask_name(f"name of the {what} in {label(folder.name)}", folder, suffix)
        if file is None:
            return
        content = new_evalset(file.name.removesuffix(suffix))
        if await self._files.put(f"{what} {file.name}", {file: (None, content)}):
            self._files.go_to_case(file, "")
            self.view.say(f"created {one_line(file.name)}: + creates its first case")

    async def ask_name(self, question: str, folder: Path, suffix: str) -> Path | None:
        """Ask for the name of a new file in a folder. Return None if the user left."""
        from workbench.editing.evalset_file import name_fault

        def fault(name: str) -> str:
            taken = (folder / f"{name}{suffix}").exists()
            return name_fault(name) or (f"{name}{suffix} already exists" if taken else "")

        name = await self.view.name_for(question, fault)
        return None if name is None else folder / f"{name}{suffix}"

    def folder(self) -> Path:
        """Return the folder of the current evalset or agent, else the open folder."""
        workspace, row = self.session.workspace, self.view.rows.cursor
        assert workspace is not None
        if row is not None and row.evalset >= 0:
            return self.session.entry(row.evalset).file.parent
        if row is not None and row.kind == "agent":
            name = self.view.rows.groups[row.agent]
            for agent in workspace.agents:
                if agent.name == name:
                    return agent.folder
        return workspace.target if workspace.target.is_dir() else workspace.target.parent

    async def _migrate(self, entry: "EvalsetEntry") -> None:
        from workbench.files.evalset import BrokenFileError

        picked, session = True, None
        if entry.document.format == "old_test":
            picked, session = await self._pick_session(entry)
        if not picked:
            return
        try:
            before = await asyncio.to_thread(entry.file.read_bytes)
            migration = await asyncio.to_thread(_migration, entry, session)
        except (BrokenFileError, ValueError, OSError) as error:
            self._files.show_error(error)
            return
        if await self._agreed(entry, migration):
            content = migration.text.encode("utf-8", "surrogatepass")
            await self._files.put(f"migrate {entry.file.name}", {entry.file: (before, content)})

    async def _pick_session(self, entry: "EvalsetEntry") -> tuple[bool, Path | None]:
        """Ask for the initial session of a list of turns: a file beside it, or none.

        Return (True, file or None), or (False, None) if the user left.
        """
        files = sorted(entry.file.parent.glob("*session*.json"))
        if not files:
            return True, None
        items = [Item(label(file.name), (True, file), help="The case gets its state.") for file in files]
        items.append(Item("no initial session", (True, None)))
        title = "choose the initial session of the turns"
        found: tuple[bool, Path | None] | None = await self.view.pick(title, items)
        return found or (False, None)

    async def _agreed(self, entry: "EvalsetEntry", migration: "Migration") -> bool:
        turns = counted(migration.turns, "turn")
        cases = counted(migration.cases, "case")
        items = [
            Item(f"convert: {cases}, {turns}", True, help="Overwrites the file. Undo with u."),
            Item("go back", False),
        ]
        if migration.left_behind:
            items.append(Item("lost, because the current schema has no field for it:", heading=True))
            for fault in migration.left_behind:
                what = one_line(f"line {fault.line}: {fault.json_path}", limit=200)
                items.append(Item(what, False, help=one_line(f"{fault.message}. {_CANCELS}")))
        lines = migration.text.splitlines()
        items.append(Item("the new file:", heading=True))
        items += [Item(plain(line, limit=400), False, help=_CANCELS) for line in lines[:_SHOWN]]
        if len(lines) > _SHOWN:
            items.append(Item(f"… {counted(len(lines) - _SHOWN, 'more line')}", False, help=_CANCELS))
        return bool(await self.view.pick(f"migrate {label(entry.relative)}", items))


_CANCELS = "Enter on this line leaves the file unchanged."
_SHOWN = 400
"""Maximum number of lines of the new file that are shown."""


def _migration(entry: "EvalsetEntry", session: Path | None) -> "Migration":
    from workbench.editing.migrate import migrate
    from workbench.files.evalset import read_initial_session
    from workbench.files.opening import name_of

    initial = read_initial_session(session) if session is not None else None
    return migrate(entry.file, name=name_of(entry.file), initial_session=initial)

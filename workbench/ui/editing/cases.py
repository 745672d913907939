"""Actions on whole cases and files: new, duplicate, rename, move, delete, and conversion of old files."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line, plain
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.screen.controller import Controller
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Row, parts_of

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.evalset_file import EvalsetFile
    from workbench.editing.migration import Migration
    from workbench.editing.saving import Contents
    from workbench.files.faults import Location
    from workbench.ui.screen.view import View

_CANCELS = "Enter on this line leaves the file unchanged."
_SHOWN = 400
"""Maximum number of lines of the new file that are shown."""


class Cases(Controller):
    """Actions that create, rename, copy, move and delete cases, and create and convert files. Each is one undo step."""

    def __init__(self, view: "View", files: Files, edit: Edit) -> None:
        super().__init__(view)
        self._files, self._edit = files, edit

    def new_case(self) -> None:
        """Ask for an ID, create a case in the evalset under the cursor, and edit it."""
        self._in_evalset(partial(self._new, scenario=False))

    def new_scenario(self) -> None:
        """Create a scenario: a case in which a simulated user talks to the agent."""
        self._in_evalset(partial(self._new, scenario=True))

    def rename(self) -> None:
        """Change the ID of the case under the cursor."""
        if (row := self.current_case()) is not None:
            self.view.work(partial(self._rename, row), "edit")

    def duplicate(self) -> None:
        """Duplicate the marked or current cases."""
        self._with_cases(self._duplicate)

    def delete(self) -> None:
        """Delete the marked or current cases. Ask first if there are several."""
        self._with_cases(self._delete)

    def move_cases(self) -> None:
        """Move the marked or current cases to another evalset."""
        self._with_cases(self._move_to)

    def _in_evalset(self, work: "Callable[[Row], Coroutine[Any, Any, None]]") -> None:
        if (row := self.current_evalset()) is not None:
            self.view.work(partial(work, row), "edit")

    def _with_cases(self, work: "Callable[[list[tuple[int, int]]], Coroutine[Any, Any, None]]") -> None:
        if pairs := self.marked_or_current():
            self.view.work(partial(work, pairs), "edit")

    async def _new(self, row: Row, *, scenario: bool) -> None:
        from workbench.editing.case_edit import new_case
        from workbench.editing.whole_cases import added
        from workbench.files.spelling import key_for
        from workbench.text.json_values import value_at

        entry = self.session.entry(row.evalset)
        # The rows have other numbers if the folder is read again while the dialog is open.
        after = self._files.chosen(row.evalset, [row.case]) if row.case >= 0 else None
        evalset = await self._files.evalset_file(entry)
        if evalset is None:
            return
        name = await self.view.name_for(
            f"ID of the new case in {label(entry.file.name)}", lambda name: _id_fault(name, evalset)
        )
        if name is None:
            return
        app, user = await asyncio.to_thread(_session_of, entry, max(row.case, 0))
        case = new_case(name, app=app, user=user, camel=evalset.camel, scenario=scenario)
        if await self._files.change_cases(
            [entry], lambda opened: (f"new case {name}", added(opened, entry.file, case, after=after))
        ):
            self._files.go_to_case(entry.file, name)
            if (row_of_case := self.view.rows.cursor) is not None:
                at: Location = ("conversation_scenario",)
                if not scenario:
                    turn = value_at(case, ("conversation", 0))
                    at = ("conversation", 0, key_for(turn, "user_content", camel=False))
                await self._edit.edit_row(row_of_case, at=at, editing=True)

    async def _rename(self, row: Row) -> None:
        from workbench.editing.whole_cases import renamed

        entry, chosen = self.session.entry(row.evalset), self._files.chosen(row.evalset, [row.case])
        evalset = await self._files.evalset_file(entry)
        if evalset is None:
            return
        (old,) = chosen.names
        shown = one_line(old).strip()

        def fault(name: str) -> str:
            return "" if name == shown else _id_fault(name, evalset)

        name = await self.view.name_for(f"new ID of {label(old)}", fault, old)
        if name is None or name == shown:
            return
        if await self._files.change_cases(
            [entry], lambda opened: (f"rename {old} to {name}", renamed(opened, chosen, name))
        ):
            self._files.go_to_case(entry.file, name)

    async def _duplicate(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.editing.whole_cases import OpenedFiles, duplicated

        chosen = [self._files.chosen(*part) for part in parts_of(pairs)]
        names: list[str] = []

        def change(opened: OpenedFiles) -> "tuple[str, Contents]":
            contents, names[:] = duplicated(opened, chosen)
            return f"duplicate as {_listed(names)}", contents

        if await self._files.change_cases([self.session.entry(evalset) for evalset, _ in parts_of(pairs)], change):
            self._files.go_to_case(chosen[0].file, names[0])

    async def _delete(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.editing.whole_cases import deleted

        chosen = [self._files.chosen(*part) for part in parts_of(pairs)]
        entries = [self.session.entry(evalset) for evalset, _ in parts_of(pairs)]
        names = [name for one in chosen for name in one.names]
        if len(pairs) > 1:
            items = [Item("delete", True, help=f"{one_line(_listed(names))}\nUndo with u."), Item("keep", False)]
            if not await self.view.pick(f"delete {counted(len(pairs), 'case')}?", items):
                return
        if await self._files.change_cases(
            entries, lambda opened: (f"delete {_listed(names)}", deleted(opened, chosen))
        ):
            self._files.go_near(chosen[0].file, chosen[0].numbers[0])

    async def _move_to(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.editing.whole_cases import moved_to

        (number, cases), *others = parts_of(pairs)
        if others:
            self.view.say("move cases of one evalset at a time")
            return
        source, chosen = self.session.entry(number), self._files.chosen(number, cases)
        target = await self._pick_target(source, len(cases))
        if target is None:
            return
        label_of_edit = f"move {_listed(chosen.names)} to {target.file.name}"
        if await self._files.change_cases(
            [source, target], lambda opened: (label_of_edit, moved_to(opened, chosen, target.file))
        ):
            self._files.go_to_case(target.file, chosen.names[0])

    async def _pick_target(self, source: "EvalsetEntry", count: int) -> "EvalsetEntry | None":
        """Return the evalset of the same format that the user picks, or None. Those of the same agent come first."""
        others = [entry for entry in self.session.opened.evalsets if entry.file != source.file]
        others.sort(key=lambda entry: entry.agent != source.agent)
        items = [
            Item(label(entry.relative), entry, hint=counted(len(entry.document.cases), "case"), help=_agent_of(entry))
            for entry in others
            if entry.document.editable and entry.document.format == source.document.format
        ]
        title, nothing = f"move {counted(count, 'case')} to", "no other evalset of this format here"
        found: EvalsetEntry | None = await self.view.pick(title, items, nothing=nothing)
        return found

    def new_evalset(self) -> None:
        """Create an empty evalset."""
        self.view.work(partial(self._new_file, "new evalset", ".evalset.json"), "edit")

    def new_test_file(self) -> None:
        """Create an empty test file."""
        self.view.work(partial(self._new_file, "new test file", ".test.json"), "edit")

    def migrate(self) -> None:
        """Convert the evalset under the cursor from an old format."""
        row = self.current_evalset()
        if row is None:
            return
        entry = self.session.entry(row.evalset)
        if entry.document.editable:
            self.view.say("the evalset needs no conversion")
        else:
            self.view.work(partial(self._migrate, entry), "edit")

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
        """Ask for the name of a new file, and return its path in `folder`. Return None if the user cancels."""
        from workbench.editing.evalset_file import name_fault

        def fault(name: str) -> str:
            taken = (folder / f"{name}{suffix}").exists()
            return name_fault(name) or (f"{name}{suffix} already exists" if taken else "")

        name = await self.view.name_for(question, fault)
        return None if name is None else folder / f"{name}{suffix}"

    def folder(self) -> Path:
        """Return the folder of the current evalset or agent, else the open folder."""
        workspace, row = self.session.opened, self.view.rows.cursor
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

        session: Path | None = None
        if entry.document.format == "old_test" and (files := sorted(entry.file.parent.glob("*session*.json"))):
            items = [Item(label(file.name), (file,), help="The case gets this session's state.") for file in files]
            items.append(Item("no initial session", (None,)))
            picked = await self.view.pick("choose the initial session", items)
            if picked is None:
                return
            (session,) = picked
        try:
            before = await asyncio.to_thread(entry.file.read_bytes)
            migration = await asyncio.to_thread(_migration, entry, session)
        except (BrokenFileError, ValueError, OSError) as error:
            self._files.show_error(error, "not converted")
            return
        if await self._agreed(entry, migration):
            content = migration.text.encode("utf-8", "surrogatepass")
            await self._files.put(f"migrate {entry.file.name}", {entry.file: (before, content)})

    async def _agreed(self, entry: "EvalsetEntry", migration: "Migration") -> bool:
        size = f"{counted(migration.cases, 'case')}, {counted(migration.turns, 'turn')}"
        items = [Item(f"convert: {size}", True, help="Overwrites the file. Undo with u."), Item("go back", False)]
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


def _id_fault(name: str, evalset: "EvalsetFile") -> str:
    if not name:
        return "a case needs an ID"
    return f"{name} is already in this file" if name in evalset.ids else ""


def _listed(names: list[str]) -> str:
    return few(one_line(name, limit=40) for name in names)


def _agent_of(entry: "EvalsetEntry") -> str:
    return f"agent: {label(entry.agent.name)}" if entry.agent else one_line(entry.agent_reason)


def _session_of(entry: "EvalsetEntry", number: int) -> tuple[str, str]:
    """Return the app name and user ID of a case's session, by default the agent's name (else `app`) and `user`."""
    from workbench.files.evalset import case_or_none

    case = case_or_none(entry.document, number) if entry.document.cases else None
    session = (case.session_input if case else None) or {}
    app = session.get("app_name") or (entry.agent.folder.name if entry.agent else "app")
    return str(app), str(session.get("user_id") or "user")


def _migration(entry: "EvalsetEntry", session: Path | None) -> "Migration":
    from workbench.editing.migration import migrate
    from workbench.files.evalset import read_initial_session
    from workbench.files.opening import name_of

    initial = read_initial_session(session) if session is not None else None
    return migrate(entry.file, name=name_of(entry.file), initial_session=initial)

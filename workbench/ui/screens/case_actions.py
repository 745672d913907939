"""Whole cases: new, duplicated, renamed, moved, deleted; of several at once where they are marked."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.text import one_line
from workbench.ui.screens.edit_actions import EditActions
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.evalset_file import EvalsetFile

Contents: TypeAlias = Mapping[Path, tuple[bytes | None, bytes | None]]
"""File → what it holds and what it is to hold."""


class CaseActions(EditActions):
    """What is done to a case is done to all marked ones, as one edit that is undone at once."""

    def action_new_case(self) -> None:
        self._in_evalset(lambda row: self._new(row, scenario=False))

    def action_new_scenario(self) -> None:
        self._in_evalset(lambda row: self._new(row, scenario=True))

    def action_rename(self) -> None:
        row = self.tree_view.row
        if row is None or row.case < 0:
            self.say("put the cursor on a case first")
            return
        self.run_worker(self._rename(row), group="edit", exclusive=True)

    def action_duplicate(self) -> None:
        self._with_cases(self._duplicate)

    def action_delete(self) -> None:
        self._with_cases(self._delete)

    def action_move_cases(self) -> None:
        self._with_cases(self._move_to)

    def _in_evalset(self, work: "Callable[[Row], object]") -> None:
        row = self.tree_view.row
        if row is None or row.evalset < 0:
            self.say("put the cursor on an evalset, or a case in it, first")
            return
        self.run_worker(work(row), group="edit", exclusive=True)  # type: ignore[arg-type]

    def _with_cases(self, work: "Callable[[list[tuple[int, int]]], object]") -> None:
        model, row = self.tree_view.model, self.tree_view.row
        pairs = sorted(model.marks)
        if not pairs and row is not None and row.case >= 0:
            pairs = [(row.evalset, row.case)]
        if not pairs:
            self.say("put the cursor on a case, or mark some with space, first")
            return
        self.run_worker(work(pairs), group="edit", exclusive=True)  # type: ignore[arg-type]

    # One case

    async def _new(self, row: Row, *, scenario: bool) -> None:
        from workbench.authoring.case_parts import new_case
        from workbench.authoring.evalset_file import id_of
        from workbench.ui.editing.name import NameScreen

        entry = self.session.entry(row.evalset)
        evalset = await self.evalset_file(entry)
        if evalset is None:
            return
        name = await self.app.push_screen_wait(
            NameScreen(f"new case in {label(entry.file.name)}: its id", lambda name: _id_fault(name, evalset))
        )
        if name is None:
            return
        app, user = await asyncio.to_thread(_session_of, entry, max(row.case, 0))
        case = new_case(name, app=app, user=user, camel=evalset.camel, scenario=scenario)
        place = row.case + 1 if row.case >= 0 else len(evalset.ids)
        contents = await self.prepared(lambda: {entry.file: (evalset.content, evalset.added(place, [case]))})
        if contents is not None and await self.put(f"new case {id_of(case)}", contents):
            self.go_to_case(entry.file, name)
            if (at := self.tree_view.row) is not None:
                place_of_text = ("conversation_scenario",) if scenario else ("conversation", 0)
                await self.edit_row(at, at=(*place_of_text, *(() if scenario else (_user_key(case),))), editing=True)

    async def _rename(self, row: Row) -> None:
        from workbench.authoring.case_edit import with_value
        from workbench.authoring.spelling import key_in
        from workbench.ui.editing.name import NameScreen

        entry = self.session.entry(row.evalset)
        evalset = await self.evalset_file(entry)
        if evalset is None or row.case >= len(evalset.ids):
            return
        old, case = evalset.ids[row.case], evalset.case(row.case)
        shown = one_line(old).strip()

        def fault(name: str) -> str:
            return "" if name == shown else _id_fault(name, evalset)

        name = await self.app.push_screen_wait(NameScreen(f"another id for {label(old)}", fault, old))
        if name is None or name == shown:
            return
        wanted = with_value(case, (key_in(case, "eval_id") or "eval_id",), name)
        contents = await self.prepared(lambda: {entry.file: (evalset.content, evalset.changed(row.case, wanted))})
        if contents is not None and await self.put(f"rename {old} to {name}", contents):
            self.go_to_case(entry.file, name)

    # Several

    async def _duplicate(self, pairs: list[tuple[int, int]]) -> None:
        files: dict[Path, tuple[bytes | None, bytes | None]] = {}
        names: list[str] = []
        first: Path | None = None
        for number, cases in self.entries_of(pairs).items():
            entry = self.session.entry(number)
            evalset = await self.evalset_file(entry)
            if evalset is None:
                return
            content, added = await asyncio.to_thread(evalset.with_copies, set(cases))
            files[entry.file] = (evalset.content, content)
            first = first or entry.file
            names += added
        if await self.put(f"duplicate as {_listed(names)}", files) and first is not None:
            self.go_to_case(first, names[0])

    async def _delete(self, pairs: list[tuple[int, int]]) -> None:
        names = [self._id_of(pair) for pair in pairs]
        if len(pairs) > 1 and not await self._sure(f"delete {len(pairs)} cases?", _listed(names)):
            return
        files: dict[Path, tuple[bytes | None, bytes | None]] = {}
        for number, cases in self.entries_of(pairs).items():
            entry = self.session.entry(number)
            evalset = await self.evalset_file(entry)
            if evalset is None:
                return
            files[entry.file] = (evalset.content, await asyncio.to_thread(evalset.without, cases))
        file, case = self.session.entry(pairs[0][0]).file, pairs[0][1]
        if await self.put(f"delete {_listed(names)}", files):
            self._stand_near(file, case)

    async def _move_to(self, pairs: list[tuple[int, int]]) -> None:
        by_evalset = self.entries_of(pairs)
        if len(by_evalset) > 1:
            self.say("cases of one evalset at a time, please")
            return
        ((number, cases),) = by_evalset.items()
        source = self.session.entry(number)
        target = await self._pick_target(source, len(cases))
        if target is None:
            return
        from workbench.authoring.evalset_file import moved

        one, other = await self.evalset_file(source), await self.evalset_file(target)
        if one is None or other is None:
            return

        def change() -> Contents:
            left, right = moved(one, cases, other)
            return {target.file: (other.content, right), source.file: (one.content, left)}

        names = [self._id_of(pair) for pair in pairs]
        contents = await self.prepared(change)
        if contents is not None and await self.put(f"move {_listed(names)} to {target.file.name}", contents):
            self.go_to_case(target.file, names[0])

    async def _pick_target(self, source: "EvalsetEntry", count: int) -> "EvalsetEntry | None":
        """Another evalset; those of the same agent first."""
        assert self.session.workspace is not None
        others = [entry for entry in self.session.workspace.evalsets if entry.file != source.file]
        others.sort(key=lambda entry: entry.agent != source.agent)
        items = [
            Item(label(entry.relative), entry, hint=f"{len(entry.document.cases)} cases", help=_agent_of(entry))
            for entry in others
            if entry.document.format == "current"
        ]
        noun = "case" if count == 1 else "cases"
        screen = PickScreen(f"move {count} {noun} to", searching(items), nothing="there is no other evalset")
        found: EvalsetEntry | None = await self.app.push_screen_wait(screen)
        return found

    async def _sure(self, question: str, help_line: str) -> bool:
        items = [
            Item("delete them", True, help=f"{one_line(help_line)}\nu brings them back"),
            Item("keep them", False),
        ]
        return bool(await self.app.push_screen_wait(PickScreen(question, searching(items))))

    # What all of them need

    async def evalset_file(self, entry: "EvalsetEntry") -> "EvalsetFile | None":
        """A file as it is on the disk, ready to be changed; None (and a notice) if it cannot be, or is not what is
        shown."""
        from workbench.authoring.evalset_file import EvalsetFile
        from workbench.model.json_edit import EditError

        if entry.document.format != "current":
            self.say_old_format()
            return None
        try:
            evalset = EvalsetFile(await asyncio.to_thread(entry.file.read_bytes))
        except (EditError, OSError) as error:
            self.tell(error)
            return None
        if list(evalset.ids) != [case.eval_id for case in entry.document.cases]:
            await self.reopen(entry.file)
            self.say(f"{one_line(entry.file.name)} has changed on the disk and was read again", warning=True)
            return None
        return evalset

    async def prepared(self, change: "Callable[[], Contents]") -> "Contents | None":
        """What a change makes of the files, worked out in a thread; None (and a notice) if it cannot be made."""
        try:
            return await asyncio.to_thread(change)
        except ValueError as error:
            self.tell(error)
            return None

    async def put(self, what: str, contents: "Contents") -> bool:
        """Writes files as one edit and shows them; False (and a notice) if nothing was written."""
        from workbench.authoring.saving import ChangedOnDiskError
        from workbench.ui.editing.drafts import write

        try:
            await asyncio.to_thread(write, await self.saver(), what, contents)
        except ChangedOnDiskError as error:
            self.tell(error)
            await self.reopen(error.file)
            return False
        except OSError as error:
            self.tell(error)
            return False
        self.warn_if_fleeting()
        await self.reopen(*contents)
        self.say(one_line(f"done: {what}; u takes it back"))
        return True

    def go_to_case(self, file: Path, eval_id: str) -> None:
        """Puts the cursor on a case of a file by its id."""
        for number, entry in enumerate(self.tree_view.model.entries):
            if entry.file == file:
                case = next((case.index for case in entry.document.cases if case.eval_id == eval_id), -1)
                self._stand_on(number, case)

    def _stand_near(self, file: Path, case: int) -> None:
        """Puts the cursor where a case was that is gone."""
        for number, entry in enumerate(self.tree_view.model.entries):
            if entry.file == file:
                self._stand_on(number, min(case, len(entry.document.cases) - 1))

    def _stand_on(self, evalset: int, case: int) -> None:
        group = self.tree_view.model.outline.group_of[evalset]
        self.tree_view.go_to(Row("case" if case >= 0 else "evalset", group, evalset, case))
        self.show_row()

    def _id_of(self, pair: tuple[int, int]) -> str:
        return self.session.entry(pair[0]).document.cases[pair[1]].eval_id


def _id_fault(name: str, evalset: "EvalsetFile") -> str:
    if not name:
        return "a case needs an id"
    return f"{name} is in this file already" if name in evalset.ids else ""


def _listed(names: list[str]) -> str:
    shown = ", ".join(one_line(name, limit=40) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _agent_of(entry: "EvalsetEntry") -> str:
    return f"of {label(entry.agent.name)}" if entry.agent else one_line(entry.agent_reason)


def _user_key(case: object) -> str:
    from workbench.authoring.case_rows import value_at
    from workbench.authoring.spelling import key_in

    return key_in(value_at(case, ("conversation", 0)), "user_content") or "user_content"


def _session_of(entry: "EvalsetEntry", number: int) -> tuple[str, str]:
    """The app and user of a case beside the new one, else the agent's name."""
    from workbench.model.evalset import case_or_none

    case = case_or_none(entry.document, number) if entry.document.cases else None
    session = (case.session_input if case else None) or {}
    app = session.get("app_name") or (entry.agent.folder.name if entry.agent else "app")
    return str(app), str(session.get("user_id") or "user")

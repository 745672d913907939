"""Actions on whole cases: new, duplicate, rename, move and delete."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.session.view import Controller, View
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.evalset_file import EvalsetFile
    from workbench.editing.saving import Contents


class Cases(Controller):
    """Actions on the marked or current cases. Each is one edit, so one undo reverts it."""

    def __init__(self, view: View, files: Files, edit: Edit) -> None:
        super().__init__(view)
        self._files, self._edit = files, edit

    def new_case(self) -> None:
        """Create a case in the evalset under the cursor."""
        self._in_evalset(lambda row: self._new(row, scenario=False))

    def new_scenario(self) -> None:
        """Create a case that a simulated user plays."""
        self._in_evalset(lambda row: self._new(row, scenario=True))

    def rename(self) -> None:
        """Change the ID of the case under the cursor."""
        if (row := self.current_case()) is not None:
            self.view.work(self._rename(row), "edit")

    def duplicate(self) -> None:
        """Copy the marked or current cases."""
        self._with_cases(self._duplicate)

    def delete(self) -> None:
        """Delete the marked or current cases."""
        self._with_cases(self._delete)

    def move_cases(self) -> None:
        """Move the marked or current cases to another evalset."""
        self._with_cases(self._move_to)

    def _in_evalset(self, work: "Callable[[Row], Awaitable[None]]") -> None:
        if (row := self.current_evalset()) is not None:
            self.view.work(work(row), "edit")

    def _with_cases(self, work: "Callable[[list[tuple[int, int]]], Awaitable[None]]") -> None:
        if pairs := self.marked_or_current():
            self.view.work(work(pairs), "edit")

    # One case

    async def _new(self, row: Row, *, scenario: bool) -> None:
        from workbench.editing.case_edit import new_case
        from workbench.editing.whole_cases import added

        entry = self.session.entry(row.evalset)
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
        after = self._files.chosen(row.evalset, [row.case]) if row.case >= 0 else None
        if await self._files.change_cases(
            [entry], lambda opened: (f"new case {name}", added(opened, entry.file, case, after=after))
        ):
            self._files.go_to_case(entry.file, name)
            if (at := self.view.rows.cursor) is not None:
                place_of_text = ("conversation_scenario",) if scenario else ("conversation", 0)
                await self._edit.edit_row(
                    at, at=(*place_of_text, *(() if scenario else (_user_key(case),))), editing=True
                )

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

    # Several cases

    async def _duplicate(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.editing.whole_cases import OpenedFiles, duplicated

        by_evalset = self._files.entries_of(pairs)
        chosen = [self._files.chosen(*one) for one in by_evalset.items()]
        names: list[str] = []

        def change(opened: OpenedFiles) -> "tuple[str, Contents]":
            contents, names[:] = duplicated(opened, chosen)
            return f"duplicate as {_listed(names)}", contents

        if await self._files.change_cases([*map(self.session.entry, by_evalset)], change):
            self._files.go_to_case(chosen[0].file, names[0])

    async def _delete(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.editing.whole_cases import deleted

        by_evalset = self._files.entries_of(pairs)
        chosen = [self._files.chosen(*one) for one in by_evalset.items()]
        names = [name for one in chosen for name in one.names]
        if len(pairs) > 1 and not await self._sure(f"delete {counted(len(pairs), 'case')}?", _listed(names)):
            return
        if await self._files.change_cases(
            [*map(self.session.entry, by_evalset)],
            lambda opened: (f"delete {_listed(names)}", deleted(opened, chosen)),
        ):
            self._files.go_near(chosen[0].file, chosen[0].numbers[0])

    async def _move_to(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.editing.whole_cases import moved_to

        by_evalset = self._files.entries_of(pairs)
        if len(by_evalset) > 1:
            self.view.say("move cases of one evalset at a time")
            return
        ((number, cases),) = by_evalset.items()
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
        """Ask for another evalset. List those of the same agent first."""
        assert self.session.workspace is not None
        others = [entry for entry in self.session.workspace.evalsets if entry.file != source.file]
        others.sort(key=lambda entry: entry.agent != source.agent)
        items = [
            Item(label(entry.relative), entry, hint=counted(len(entry.document.cases), "case"), help=_agent_of(entry))
            for entry in others
            if entry.document.editable and entry.document.format == source.document.format
        ]
        title, nothing = f"move {counted(count, 'case')} to", "no other evalset here"
        found: EvalsetEntry | None = await self.view.pick(title, items, nothing=nothing)
        return found

    async def _sure(self, question: str, help_line: str) -> bool:
        items = [
            Item("delete", True, help=f"{one_line(help_line)}\nUndo with u."),
            Item("keep", False),
        ]
        return bool(await self.view.pick(question, items))


def _id_fault(name: str, evalset: "EvalsetFile") -> str:
    if not name:
        return "a case needs an ID"
    return f"{name} is already in this file" if name in evalset.ids else ""


def _listed(names: list[str]) -> str:
    return few(one_line(name, limit=40) for name in names)


def _agent_of(entry: "EvalsetEntry") -> str:
    return f"agent: {label(entry.agent.name)}" if entry.agent else one_line(entry.agent_reason)


def _user_key(case: object) -> str:
    from workbench.files.spelling import key_for
    from workbench.text.json_values import value_at

    return key_for(value_at(case, ("conversation", 0)), "user_content", camel=False)


def _session_of(entry: "EvalsetEntry", number: int) -> tuple[str, str]:
    """Return app and user of the neighboring case, else the agent's name and `user`."""
    from workbench.files.evalset import case_or_none

    case = case_or_none(entry.document, number) if entry.document.cases else None
    session = (case.session_input if case else None) or {}
    app = session.get("app_name") or (entry.agent.folder.name if entry.agent else "app")
    return str(app), str(session.get("user_id") or "user")

"""Whole cases: new, duplicated, renamed, moved, deleted; of several at once where they are marked."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.counting import counted
from workbench.text import one_line
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.writing_actions import Contents, WritingActions
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.evalset_file import EvalsetFile


class CaseActions(WritingActions):
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
        from workbench.authoring.whole_cases import added
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
        after = self.chosen(row.evalset, [row.case]) if row.case >= 0 else None
        if await self.change_cases(
            [entry], lambda opened: (f"new case {name}", added(opened, entry.file, case, after=after))
        ):
            self.go_to_case(entry.file, name)
            if (at := self.tree_view.row) is not None:
                place_of_text = ("conversation_scenario",) if scenario else ("conversation", 0)
                await self.edit_row(at, at=(*place_of_text, *(() if scenario else (_user_key(case),))), editing=True)

    async def _rename(self, row: Row) -> None:
        from workbench.authoring.whole_cases import renamed
        from workbench.ui.editing.name import NameScreen

        entry, chosen = self.session.entry(row.evalset), self.chosen(row.evalset, [row.case])
        evalset = await self.evalset_file(entry)
        if evalset is None:
            return
        (old,) = chosen.names
        shown = one_line(old).strip()

        def fault(name: str) -> str:
            return "" if name == shown else _id_fault(name, evalset)

        name = await self.app.push_screen_wait(NameScreen(f"another id for {label(old)}", fault, old))
        if name is None or name == shown:
            return
        if await self.change_cases([entry], lambda opened: (f"rename {old} to {name}", renamed(opened, chosen, name))):
            self.go_to_case(entry.file, name)

    # Several

    async def _duplicate(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.authoring.whole_cases import Opened, duplicated

        by_evalset = self.entries_of(pairs)
        chosen = [self.chosen(*one) for one in by_evalset.items()]
        names: list[str] = []

        def change(opened: Opened) -> tuple[str, Contents]:
            contents, names[:] = duplicated(opened, chosen)
            return f"duplicate as {_listed(names)}", contents

        if await self.change_cases([*map(self.session.entry, by_evalset)], change):
            self.go_to_case(chosen[0].file, names[0])

    async def _delete(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.authoring.whole_cases import deleted

        by_evalset = self.entries_of(pairs)
        chosen = [self.chosen(*one) for one in by_evalset.items()]
        names = [name for one in chosen for name in one.names]
        if len(pairs) > 1 and not await self._sure(f"delete {counted(len(pairs), 'case')}?", _listed(names)):
            return
        if await self.change_cases(
            [*map(self.session.entry, by_evalset)],
            lambda opened: (f"delete {_listed(names)}", deleted(opened, chosen)),
        ):
            self.stand_near(chosen[0].file, chosen[0].numbers[0])

    async def _move_to(self, pairs: list[tuple[int, int]]) -> None:
        from workbench.authoring.whole_cases import moved_to

        by_evalset = self.entries_of(pairs)
        if len(by_evalset) > 1:
            self.say("cases of one evalset at a time, please")
            return
        ((number, cases),) = by_evalset.items()
        source, chosen = self.session.entry(number), self.chosen(number, cases)
        target = await self._pick_target(source, len(cases))
        if target is None:
            return
        label_of_edit = f"move {_listed(chosen.names)} to {target.file.name}"
        if await self.change_cases(
            [source, target], lambda opened: (label_of_edit, moved_to(opened, chosen, target.file))
        ):
            self.go_to_case(target.file, chosen.names[0])

    async def _pick_target(self, source: "EvalsetEntry", count: int) -> "EvalsetEntry | None":
        """Another evalset; those of the same agent first."""
        assert self.session.workspace is not None
        others = [entry for entry in self.session.workspace.evalsets if entry.file != source.file]
        others.sort(key=lambda entry: entry.agent != source.agent)
        items = [
            Item(label(entry.relative), entry, hint=counted(len(entry.document.cases), "case"), help=_agent_of(entry))
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

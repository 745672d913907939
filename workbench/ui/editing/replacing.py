"""Find and replace in the marked cases, or in all cases at and below the cursor."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.results.cells import cut_name
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.screen.controller import Controller

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.editing.case_edit import Replacement, Where
    from workbench.editing.whole_cases import CaseSelection
    from workbench.ui.screen.view import View

Pair = tuple[int, int]
_RULES: "Mapping[Where, str]" = {
    "text": "Messages, answers, plans, rubrics. Any part matches.",
    "tool name": "Expected calls and their answers. Only whole names match.",
    "argument": "Arguments of expected calls. 12.5 also finds the number.",
}
_NAMED = 3
"""Number of places shown as examples for each part of a case."""
_BEFORE, _WIDTH, _NAME = 12, 50, 22
"""Lengths, in characters, of an example: before the match, in all, and of the case's name."""


class _Found(NamedTuple):
    """A case on disk that contains the text, and the matches by part of the case."""

    case: "CaseSelection"
    before: Any
    places: "dict[Where, list[Replacement]]"


class Replace(Controller):
    """The action "find and replace". The user reviews the changes before they are saved as one edit."""

    def __init__(self, view: "View", files: Files) -> None:
        super().__init__(view)
        self._files = files

    def replace(self) -> None:
        """Ask for a text, show where it occurs, ask for the new text, and save the changes that the user chooses."""
        if self.workspace() is None:
            return
        if pairs := self.view.targets("replace"):
            self.view.work(partial(self._replace, pairs), "edit")
        else:
            self.view.say("no cases here")

    async def _replace(self, pairs: Sequence[Pair]) -> None:
        from workbench.editing.case_edit import PARTS, replaced, replacements
        from workbench.editing.whole_cases import Proposal, written
        from workbench.ui.editing.proposals import SeveralScreen

        cases, workspace = counted(len(pairs), "case"), self.session.opened
        old = await self.view.name_for(f"find in {cases}", lambda text: "" if text else "type what to find")
        if old is None:
            return
        shown = one_line(old, limit=30)
        found, note = await asyncio.to_thread(self._find, workspace, pairs, old)
        items = [_item(part, old, found) for part in PARTS if any(part in one.places for one in found)]
        if not items:
            self.view.say("; ".join(filter(None, (f"{shown} was not found in {cases}", note))), warning=True)
            return
        where: Where | None = await self.view.pick(f"{shown}: replace it where?", items, placeholder="")
        if where is None:
            return
        empty = "" if where == "text" else f"a {where} cannot be empty"
        new = await self.view.name_for(f"replace {shown} with", lambda text: "" if text else empty, old)
        if new is None or new == old:
            return
        proposals = [
            Proposal(one.case, one.before, changes, partial(replaced, one.before))
            for one in found
            if where in one.places and (changes := replacements(one.before, where, old, new))
        ]
        title = f"replace {shown} with {one_line(new, limit=30) or 'nothing'} › {counted(len(proposals), 'case')}"
        choice = await self.view.ask(SeveralScreen(title, proposals, self.view.keys, note=note, all_chosen=True))
        if choice is None:
            return
        label = f"replace {old} with {new} in {counted(len(choice), 'case')}"
        files = {proposal.file for proposal in choice}
        entries = [entry for entry in workspace.evalsets if entry.file in files]
        await self._files.change_cases(entries, lambda opened: (label, written(opened, choice)))

    def _find(self, workspace: "Workspace", pairs: Sequence[Pair], old: str) -> tuple[list[_Found], str]:
        """Return the cases that contain a text, and a note about files that cannot be edited. Runs in a thread."""
        from workbench.editing.case_edit import PARTS, replacements

        found: list[_Found] = []
        left_out: Counter[str] = Counter()
        for _, chosen, before in self._files.cases_on_disk(workspace, pairs, left_out):
            places = {part: places for part in PARTS if (places := replacements(before, part, old, ""))}
            if places:
                found.append(_Found(chosen, before, places))
        return found, "; ".join(f"not searched: {why}" for why in left_out)


def _item(part: "Where", old: str, found: Sequence[_Found]) -> Item:
    cases = [one for one in found if part in one.places]
    places = [(one.case.names[0], place) for one in cases for place in one.places[part]]
    shown = [_in_short(name, str(place.old), old) for name, place in places[:_NAMED]]
    hint = f"{counted(len(places), 'place')} in {counted(len(cases), 'case')}"
    return Item(part, part, hint=hint, help="\n".join([*shown, _RULES[part]]))


def _in_short(name: str, text: str, old: str) -> str:
    """Return the text around a match: `late_parcel: …Your refund of 13.50 euros …`."""
    start = max(text.find(old) - _BEFORE, 0)
    return one_line(f"{cut_name(one_line(name), _NAME)}: {'…' if start else ''}{text[start:]}", limit=_WIDTH)

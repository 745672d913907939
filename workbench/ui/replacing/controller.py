"""Find and replace in the marked cases, or in all cases at and below the cursor."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.counting import counted
from workbench.text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.session.view import Controller, View

if TYPE_CHECKING:
    from workbench.authoring.bulk import Proposal
    from workbench.authoring.replacing import Where

Pair = tuple[int, int]
_HELP = {
    "text": "Messages, answers, plans and rubrics. Any part of a text may match.",
    "tool name": "The names of expected calls and of their answers. Only whole names match.",
    "argument": "Values in the arguments of expected calls. Any part of a text matches, and 12.5 the number 12.5.",
}


class Replace(Controller):
    """Find and replace. The changes are reviewed before they are saved as one edit."""

    def __init__(self, view: View, files: Files) -> None:
        super().__init__(view)
        self._files = files

    def replace(self) -> None:
        """Ask what to replace, show the changes, and save the chosen ones."""
        if self.workspace() is None:
            return
        if pairs := self.view.targets("replace"):
            self.view.work(self._replace(pairs), "edit")
        else:
            self.view.say("no cases here")

    async def _replace(self, pairs: Sequence[Pair]) -> None:
        from workbench.authoring.bulk import written
        from workbench.authoring.replacing import PARTS
        from workbench.ui.accepting.several import SeveralScreen

        cases = counted(len(pairs), "case")
        items = [Item(part, part, help=_HELP[part]) for part in PARTS]
        where: Where | None = await self.view.pick(f"find and replace in {cases}: where?", items)
        if where is None:
            return
        old = await self.view.name_for(f"find this {where}", lambda text: "" if text else "type what to find")
        if old is None:
            return
        shown = one_line(old, limit=30)
        new = await self.view.name_for(f"replace {shown} with", lambda text: _fault(where, text), old)
        if new is None or new == old:
            return
        proposals, note = await asyncio.to_thread(self._proposals, pairs, where, old, new)
        if not proposals:
            self.view.say("; ".join(filter(None, (f"{shown} is in none of the {cases}", note))), warning=True)
            return
        title = f"replace {shown} with {one_line(new, limit=30) or 'nothing'} › {counted(len(proposals), 'case')}"
        choice = await self.view.ask(SeveralScreen(title, proposals, self.view.keys, note=note, all_chosen=True))
        if choice is None:
            return
        label = f"replace {old} with {new} in {counted(len(choice), 'case')}"
        files = {proposal.file for proposal in choice}
        entries = [entry for entry in self.view.rows.entries if entry.file in files]
        await self._files.change_cases(entries, lambda opened: (label, written(opened, choice)))

    def _proposals(self, pairs: Sequence[Pair], where: "Where", old: str, new: str) -> "tuple[list[Proposal], str]":
        """Return the changes of each case, and a note about files that cannot be edited. Runs in a thread."""
        from workbench.authoring.bulk import Proposal
        from workbench.authoring.replacing import replaced, replacements

        found: list[Proposal] = []
        left_out: Counter[str] = Counter()
        for _, chosen, before in self._files.cases_on_disk(pairs, left_out):
            if parts := replacements(before, where, old, new):
                found.append(Proposal(chosen, before, parts, partial(replaced, before)))
        return found, "; ".join(f"not searched: {why}" for why in left_out)


def _fault(where: "Where", text: str) -> str:
    return "" if text or where == "text" else f"a {where} cannot be empty"

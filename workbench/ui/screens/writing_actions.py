"""Files read as they are by now, worked out anew and written; and the cursor where the change was made."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.text import one_line
from workbench.ui.screens.edit_actions import EditActions
from workbench.ui.tree.outline import Row
from workbench.ui.tree.query import Query

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.evalset_file import EvalsetFile
    from workbench.authoring.whole_cases import Opened

Contents: TypeAlias = Mapping[Path, tuple[bytes | None, bytes | None]]
"""File → what it holds and what it is to hold."""
_TRIES = 5
"""How often somebody else may be quicker."""


class WritingActions(EditActions):
    """What actions on whole cases and files need."""

    async def evalset_file(self, entry: "EvalsetEntry") -> "EvalsetFile | None":
        """A file as it is on the disk, ready to be changed; None (and a notice) if it cannot be."""
        from workbench.authoring.evalset_file import EvalsetFile
        from workbench.model.json_edit import EditError

        if entry.document.format != "current":
            self.say_old_format()
            return None
        try:
            return EvalsetFile(await asyncio.to_thread(entry.file.read_bytes))
        except (EditError, OSError) as error:
            self.tell(error)
            return None

    async def change_cases(
        self, entries: "Sequence[EvalsetEntry]", change: "Callable[[Opened], tuple[str, Contents]]"
    ) -> bool:
        """Makes a change of evalsets as they are by now: what it is called, and what they become. Where somebody else
        writes one meanwhile it is worked out anew. False (and a notice) if nothing was written."""
        from workbench.authoring.saving import ChangedOnDiskError

        for tries in range(_TRIES):
            opened = {entry.file: await self.evalset_file(entry) for entry in entries}
            ready = {file: evalset for file, evalset in opened.items() if evalset is not None}
            if len(ready) < len(opened):
                return False
            try:
                what, contents = await asyncio.to_thread(change, ready)
                return await self.put(what, contents, again=tries < _TRIES - 1)
            except ValueError as error:
                self.tell(error)
                await self.reopen(*ready)
                return False
            except ChangedOnDiskError:
                continue
        return False

    async def put(self, what: str, contents: "Contents", *, again: bool = False) -> bool:
        """Writes files as one edit and shows them; False (and a notice) if nothing was written.

        Raises:
            ChangedOnDiskError: with `again`, where somebody else has changed one of them.
        """
        from workbench.authoring.saving import ChangedOnDiskError
        from workbench.ui.editing.drafts import write

        try:
            await asyncio.to_thread(write, await self.saver(), what, contents)
        except ChangedOnDiskError as error:
            if again:
                raise
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

    # Where the cursor goes

    def go_to_case(self, file: Path, eval_id: str) -> None:
        """Puts the cursor on a case of a file by its id. A filter that would hide it is taken back: whoever made or
        named a case wants to see that one, and goes on with it."""
        for number, entry in enumerate(self.tree_view.model.entries):
            if entry.file == file:
                case = next((case.index for case in entry.document.cases if case.eval_id == eval_id), -1)
                if not self._stand_on(number, case) and self.cases.clear_filter():
                    self.tree_view.set_query(Query())
                    self._stand_on(number, case)

    def stand_near(self, file: Path, case: int) -> None:
        """Puts the cursor where a case was that is gone."""
        for number, entry in enumerate(self.tree_view.model.entries):
            if entry.file == file:
                self._stand_on(number, min(case, len(entry.document.cases) - 1))

    def _stand_on(self, evalset: int, case: int) -> bool:
        """Whether that row is to be seen."""
        group = self.tree_view.model.outline.group_of[evalset]
        row = Row("case" if case >= 0 else "evalset", group, evalset, case)
        self.tree_view.go_to(row)
        self.show_row()
        return self.tree_view.row == row

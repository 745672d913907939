"""What the last run would be under the configs in the editor, and what is told of the row with the cursor."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from textual.content import Content as Text
from textual.widgets import Static

from workbench.authoring.criteria_change import Content
from workbench.ui.criteria.entry import ConfigEdit
from workbench.ui.criteria.form_list import FormList
from workbench.ui.criteria.look_ahead import LookAhead, Seen
from workbench.ui.criteria.row_help import about, outlook_of_all


class Say(Protocol):
    """Shows safe text in the line that says what came of it."""

    def __call__(self, text: str, *, warning: bool = False) -> None: ...


class Outlooks:
    """`about` shows what is told of the row with the cursor, `cases` how whole cases would end. `run` starts a
    coroutine in the background.
    """

    def __init__(
        self,
        edits: Sequence[ConfigEdit],
        rows: FormList,
        say: Say,
        run: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._edits, self._list, self._say = edits, rows, say
        self._looks = [LookAhead(edit.what_if, run, partial(self._take, n)) for n, edit in enumerate(edits)]
        self.about = Static("", markup=False)
        self.cases = Static("", classes="cases", markup=False)

    def look(self, file: int, content: Content) -> None:
        """Work out what the last run would be if a config said `content`."""
        self._looks[file].at(self._edits[file].changes.draft, content)

    def look_at_all(self) -> None:
        """Work it out for every config as it is in the editor."""
        for file, edit in enumerate(self._edits):
            self.look(file, edit.changes.result)

    def show(self) -> None:
        """Show what is known of the row with the cursor."""
        row = self._list.row_or_none
        seen = self._edits[row.file if row is not None else 0].seen
        self.cases.update(Text(outlook_of_all(seen.outlook) if seen.outlook is not None else ""))
        if row is None:
            self.about.update(Text("No criterion: nothing is judged. n adds one."))
            return
        rows = [one for one in self._list.all_rows if one.file == row.file]
        self.about.update(Text("\n".join([*seen.told_of(row), about(row, rows)])))

    def _take(self, file: int, seen: Seen) -> None:
        if seen.trouble:
            self._say(seen.trouble, warning=True)
            return
        self._edits[file].seen = seen
        self._list.marks[file] = seen.marks([row for row in self._list.all_rows if row.file == file])
        self._list.refresh()
        self.show()

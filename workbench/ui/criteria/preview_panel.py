"""The panel of the criteria editor with previews, and the explanation of the row under the cursor."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from textual.content import Content as Text
from textual.widgets import Static

from workbench.authoring.criteria_change import Content
from workbench.ui.criteria.editor_mode import ConfigEdit
from workbench.ui.criteria.form_list import FormList
from workbench.ui.criteria.preview import Preview, Previewer
from workbench.ui.criteria.row_help import about, fitting, outlook_of_all


class Say(Protocol):
    """A function that shows a safe message."""

    def __call__(self, text: str, *, warning: bool = False) -> None:
        """Show safe text, as a warning or not."""


class About(Static):
    """An explanation in whole sentences, as many as there is room for."""

    def __init__(self) -> None:
        super().__init__("", classes="about", markup=False)
        self._text = ""

    def explain(self, text: str) -> None:
        """Show this safe text."""
        self._text = text
        self.refresh()

    def render(self) -> Text:
        """Return what fits."""
        return Text(fitting(self._text, *self.content_size))


class PreviewPanel:
    """The previews of the configs in the editor.

    The widget `about` explains the row under the cursor, and `cases` shows how whole cases would end. `run` starts a
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
        self._previewers = [Previewer(edit.what_if, run, partial(self._take, n)) for n, edit in enumerate(edits)]
        self.about = About()
        self.cases = Static("", classes="cases", markup=False)

    def update(self, file: int, content: Content) -> None:
        """Preview a config with this content."""
        self._previewers[file].start(self._edits[file].changes.draft, content)

    def update_all(self) -> None:
        """Preview all configs as they are in the editor."""
        for file, edit in enumerate(self._edits):
            self.update(file, edit.changes.result)

    def show(self) -> None:
        """Explain the row under the cursor, with its preview."""
        row = self._list.row_or_none
        preview = self._edits[row.file if row is not None else 0].preview
        self.cases.update(Text(outlook_of_all(preview.outlook) if preview.outlook is not None else ""))
        if row is None:
            self.about.explain("No criteria, so nothing is judged. + adds one.")
            return
        rows = [one for one in self._list.all_rows if one.file == row.file]
        self.about.explain("\n".join([*preview.lines_of(row), about(row, rows)]))

    def _take(self, file: int, preview: Preview) -> None:
        if preview.trouble:
            self._say(preview.trouble, warning=True)
            return
        self._edits[file].preview = preview
        self._list.marks[file] = preview.marks([row for row in self._list.all_rows if row.file == file])
        self._list.refresh()
        self.show()

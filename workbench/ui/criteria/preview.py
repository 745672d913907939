"""Previews of edited configs, computed in a thread: their faults, and the results of the last run under them."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from textual.content import Content as Text
from textual.widgets import Static

from workbench.editing.criteria_change import ConfigDraft, Content, faults_of_draft
from workbench.editing.criteria_form import FormRow
from workbench.editing.what_if import Outlook, WhatIf, is_free
from workbench.files.criteria import parse_config
from workbench.files.faults import Fault, Location, json_path
from workbench.files.json_text.json_edit import EditError
from workbench.text.safe_text import one_line
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.criteria.form_list import FormList
from workbench.ui.criteria.row_help import about, fitting, outlook_of_all, outlook_of_criterion
from workbench.ui.editing.conflicts import save_error_message


@dataclass(frozen=True)
class Preview:
    """The preview of a config. `trouble` says in safe text why there is none."""

    outlook: Outlook | None = None
    faults: Sequence[Fault] = ()
    trouble: str = ""

    def faults_of(self, row: FormRow) -> list[Fault]:
        """Return the faults of a row's value."""
        return [fault for fault in self.faults if concerns_row(row, fault)]

    def lines_of(self, row: FormRow) -> list[str]:
        """Return safe lines about a row: its faults, and results of the last run if stored scores decide them."""
        lines = [fault_line(fault) for fault in self.faults_of(row)]
        if row.kind == "threshold" or (row.criterion and is_free(row.criterion)):
            lines += outlook_of_criterion(self.outlook, row.criterion)
        return lines

    def marks(self, rows: Sequence[FormRow]) -> Mapping[Location, str]:
        """Return the styles of rows that have faults, by location."""
        return {
            row.location: "failed" if any(fault.severity == "error" for fault in found) else "not-evaluated"
            for row in rows
            if (found := self.faults_of(row))
        }


@dataclass
class ConfigEdit:
    """A config in the editor. `name` is safe text. `obstacle` says in safe text why the config cannot be saved."""

    changes: FormChanges
    what_if: WhatIf
    name: str = ""
    obstacle: str = ""
    preview: Preview = field(default_factory=Preview)


class Previewer:
    """A worker that computes one preview at a time, always of the newest content.

    A key held down therefore builds no queue. `run` starts a coroutine in the background. `done` gets each preview.
    """

    def __init__(self, what_if: WhatIf, run: Callable[[Any], object], done: Callable[[Preview], None]) -> None:
        self._what_if, self._run, self._done = what_if, run, done
        self._next: tuple[ConfigDraft, Content] | None = None
        self._busy = False

    def start(self, draft: ConfigDraft, content: Content) -> None:
        """Preview a content as soon as the current preview is done."""
        self._next = draft, content
        if not self._busy:
            self._busy = True
            self._run(self._work())

    async def _work(self) -> None:
        try:
            while self._next is not None:
                (draft, content), self._next = self._next, None
                self._done(await asyncio.to_thread(self._preview, draft, content))
        finally:
            self._busy = False

    def _preview(self, draft: ConfigDraft, content: Content) -> Preview:
        try:
            config = parse_config(draft.file, draft.bytes_of(content))
            return Preview(self._what_if.under(config), faults_of_draft(draft, content))
        except EditError as error:
            return Preview(trouble=save_error_message(error))


def fault_line(fault: Fault) -> str:
    """Return a fault as one safe line."""
    mark = "!" if fault.severity == "error" else "?"
    return f"{mark} {one_line(fault.message)}. {one_line(fault.hint)}".rstrip(". ")


def concerns_row(row: FormRow, fault: Fault) -> bool:
    """Return whether a fault concerns the value of a row. Faults of a whole criterion concern its first row."""
    here = json_path(row.location)
    inside = fault.json_path.startswith((f"{here}.", f"{here}["))
    if row.kind == "threshold":
        return fault.json_path in (here, json_path(row.unit))
    return bool(row.location) and (fault.json_path == here or (inside and row.kind in ("json", "lines", "kept")))


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

"""Previews of an edited config: its faults, and the results of the last run under it. Computed in a thread."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.authoring.config_file import ConfigDraft, faults_of_draft
from workbench.authoring.criteria_change import Content
from workbench.authoring.criteria_form import FormRow
from workbench.authoring.what_if import Outlook, WhatIf, is_free
from workbench.model.criteria import parse_config
from workbench.model.faults import Fault, Location, json_path
from workbench.model.json_edit import EditError
from workbench.text import one_line
from workbench.ui.criteria.row_help import outlook_of_criterion
from workbench.ui.editing.save_errors import save_error_message


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

"""What the last run would be under what stands in the form, and what is wrong with it: worked out off the loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.authoring.config_file import ConfigDraft, faults_of_draft
from workbench.authoring.criteria_change import Content
from workbench.authoring.criteria_form import FormRow
from workbench.authoring.what_if import Outlook, WhatIf
from workbench.metrics.registry import effect_of
from workbench.model.criteria import parse_config
from workbench.model.faults import Fault
from workbench.model.json_edit import EditError
from workbench.model.places import Location, json_path
from workbench.text import one_line
from workbench.ui.criteria.row_help import outlook_of_criterion
from workbench.ui.editing.save_errors import save_error_message


@dataclass(frozen=True)
class Seen:
    """What came of one look. `trouble` says in safe words why there is no more of it."""

    outlook: Outlook | None = None
    faults: Sequence[Fault] = ()
    trouble: str = ""

    def faults_of(self, row: FormRow) -> list[Fault]:
        """Those that are about the value of a row."""
        return [fault for fault in self.faults if stands_at(row, fault)]

    def told_of(self, row: FormRow) -> list[str]:
        """Its faults, and for what can be worked out again what the last run would be, in safe lines."""
        lines = [told(fault) for fault in self.faults_of(row)]
        if row.kind == "threshold" or (row.criterion and effect_of(row.criterion, row.field.name) == "decide"):
            lines += outlook_of_criterion(self.outlook, row.criterion)
        return lines

    def marks(self, rows: Sequence[FormRow]) -> Mapping[Location, str]:
        """The looks of rows that have faults, by location."""
        return {
            row.location: "failed" if any(fault.severity == "error" for fault in found) else "not-evaluated"
            for row in rows
            if (found := self.faults_of(row))
        }


class LookAhead:
    """One look at a time, and after it only the newest content, so that a key held down builds no queue. `run` starts
    a coroutine in the background; `seen` gets what came of each look.
    """

    def __init__(self, what_if: WhatIf, run: Callable[[Any], object], seen: Callable[[Seen], None]) -> None:
        self._what_if, self._run, self._seen = what_if, run, seen
        self._wanted: tuple[ConfigDraft, Content] | None = None
        self._looking = False

    def at(self, draft: ConfigDraft, content: Content) -> None:
        """Looks at a content as soon as the look before is done."""
        self._wanted = draft, content
        if not self._looking:
            self._looking = True
            self._run(self._look())

    async def _look(self) -> None:
        try:
            while self._wanted is not None:
                (draft, content), self._wanted = self._wanted, None
                self._seen(await asyncio.to_thread(self._worked_out, draft, content))
        finally:
            self._looking = False

    def _worked_out(self, draft: ConfigDraft, content: Content) -> Seen:
        try:
            config = parse_config(draft.file, draft.bytes_of(content))
            return Seen(self._what_if.under(config), faults_of_draft(draft, content))
        except EditError as error:
            return Seen(trouble=save_error_message(error))


def told(fault: Fault) -> str:
    """A fault in one safe line."""
    mark = "!" if fault.severity == "error" else "?"
    return f"{mark} {one_line(fault.message)}. {one_line(fault.hint)}".rstrip(". ")


def stands_at(row: FormRow, fault: Fault) -> bool:
    """Whether a fault is about the value of a row; one about a whole criterion is about its first row."""
    here = json_path(row.location)
    inside = fault.json_path.startswith((f"{here}.", f"{here}["))
    if row.kind == "threshold":
        return fault.json_path in (here, json_path(row.unit))
    return bool(row.location) and (fault.json_path == here or (inside and row.kind in ("json", "kept")))

"""Which cases came out otherwise than the time before, and with which files each of the two times."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.events import CaseRef, Event, RunStarted
from workbench.store import CaseRecord, Store
from workbench.ui.status import FACES

Moment = Mapping[Path, str]
"""The files as they were: path → hash of their content."""


@dataclass(frozen=True)
class FileChange:
    """A file between two verdicts: its name, and its text before and after (None: not kept, or no text)."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Change:
    """What a case was before its newest verdict. `files` are those that differ between the two; None: nobody was
    watching them."""

    before: CaseRecord
    files: tuple[FileChange, ...] | None = None


class ChangedVerdicts:
    """Follows a store: `about_to` is called with each event before the store applies it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[CaseRef, CaseRecord] = {}
        self._moments: dict[CaseRef, Moment | None] = {}
        self.moment_of: dict[CaseRef, Moment] = {}
        """The files with which a case's newest verdict was made, where somebody watched them."""

    def about_to(self, event: Event, *, goes_on: bool = False) -> None:
        """A run begins: what its cases are now is what they will have been. `goes_on`: it is a further part of what one
        save asked for, so that what changed in the first part stays listed."""
        if not isinstance(event, RunStarted):
            return
        if not goes_on:
            self._before.clear()
        for planned in event.cases:
            record = self._store.records.get(planned.case)
            if record is not None and record.finished:
                self._before[planned.case] = record
                self._moments[planned.case] = self.moment_of.get(planned.case)

    def before(self, record: CaseRecord) -> CaseRecord | None:
        """What the case was before this; None if it never ran."""
        earlier = self._before.get(record.ref)
        return None if earlier is record else earlier

    def moments(self, ref: CaseRef) -> tuple[Moment | None, Moment | None]:
        """The files with which the verdict before, and the newest one, were made."""
        return self._moments.get(ref), self.moment_of.get(ref)

    def refs(self) -> list[CaseRef]:
        """The executions whose verdict is another one now, regressions first, then in the order in which they ran."""
        found = [ref for ref in self._before if self._differs(ref)]
        return sorted(found, key=lambda ref: not self.is_regression(ref))

    def is_regression(self, ref: CaseRef) -> bool:
        """Whether the case came out worse than before."""
        now, before = self._store.records[ref].state, self._before[ref].state
        return FACES[now].rank < FACES[before].rank

    def _differs(self, ref: CaseRef) -> bool:
        now = self._store.records.get(ref)
        return now is not None and now.finished and now.state != self._before[ref].state


def file_changes(
    before: Moment | None, after: Moment | None, names: Mapping[Path, str], text: Callable[[str], str | None]
) -> tuple[FileChange, ...] | None:
    """How the files `names` (path → name) differ between two moments; None where one of them is not known."""
    if before is None or after is None:
        return None
    paths: Iterable[Path] = [path for path in names if before.get(path, "") != after.get(path, "")]
    return tuple(FileChange(names[path], text(before.get(path, "")), text(after.get(path, ""))) for path in paths)

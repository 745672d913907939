"""Exporters: the file formats for stored runs."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from workbench.editing.triage.entry import Entry, standing
from workbench.editing.triage.triage_file import BrokenTriageError, read_triage
from workbench.events.events import CaseName
from workbench.files.plugins import ExtensionPoint
from workbench.files.prices import Prices
from workbench.store.execution import Execution
from workbench.store.history.run_list import Trend, pass_rates
from workbench.store.rates import case_keys
from workbench.store.store import Store


@dataclass(frozen=True)
class RunContext:
    """Data about a run that is stored elsewhere: pass rates of past runs with the same cases, and triage.

    `triage` has the entries by evalset file and case. `trouble` has a message for each triage file or
    entry that could not be read.
    """

    trend: Trend = field(default_factory=Trend)
    triage: Mapping[CaseName, tuple[Entry, ...]] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()

    def triage_of(self, record: Execution) -> list[Entry]:
        """Return the triage entries about a record's current answer and verdicts, newest first."""
        found = self.triage.get(record.ref.name, ())
        if not found:
            return []
        mine = [entry for entry in found if entry.triage and standing(entry, record) == "now"]
        return sorted(mine, key=lambda entry: entry.at, reverse=True)


def read_run_context(store: Store, state: Path) -> RunContext:
    """Read the context of the newest run in a store. If its evalset files are missing, there is no triage."""
    files = {record.ref.evalset_file for record in store.current_records()}
    triage: dict[CaseName, tuple[Entry, ...]] = {}
    trouble: list[str] = []
    for name in sorted(filter(_is_inside, files)):
        try:
            found = read_triage(Path(store.run.root, name))
        except (BrokenTriageError, OSError, ValueError) as error:
            trouble.append(str(error))
            continue
        trouble += found.trouble
        for entry in found.entries:
            key = name, entry.about.case
            triage[key] = (*triage.get(key, ()), entry)
    # Leave out runs that are newer than the exported one.
    records = list(store.current_records())
    wanted = case_keys({record.ref.name for record in records}, records)
    trend = pass_rates(state, wanted, until=store.run.started)
    return RunContext(trend, triage, tuple(trouble))


def _is_inside(name: str) -> bool:
    """Return whether a path stays below the root. Reports can contain any path."""
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


Pieces: TypeAlias = Iterable[bytes]
"""The content of a file in pieces. The whole content may be too large for the memory."""


@dataclass(frozen=True)
class ExportedRun:
    """The run to export: the newest run in `store`.

    `versions` are the versions of packages that the run used, as far as known. `state` is the folder with the project's
    other runs, or None to ignore them. `warn` is called with each message in `RunContext.trouble`.
    """

    store: Store
    versions: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    state: Path | None = None
    warn: Callable[[str], None] = lambda message: None

    @cached_property
    def context(self) -> RunContext:
        """Pass rates of past runs, and the user's triage."""
        found = RunContext() if self.state is None else read_run_context(self.store, self.state)
        for trouble in found.trouble:
            self.warn(trouble)
        return found


@dataclass(frozen=True)
class Exporter:
    """A file format for exported runs.

    `summary` is its line of help. `ending` is the suffix of a single file. `write` returns the content of the file, or
    several files by name. `many_files` says whether there can be several; `-o` then names a folder. `needs` are the
    packages that the exporter imports.
    """

    name: str
    summary: str
    ending: str
    write: Callable[[ExportedRun], Pieces | Mapping[str, Pieces]]
    many_files: bool = False
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Return the names of needed packages that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]

    def files(self, run: ExportedRun) -> Mapping[str, Pieces]:
        """Return the files to write, by name."""
        written = self.write(run)
        if isinstance(written, Mapping):
            return written
        # The run ID in a report may contain any character.
        name = re.sub(r"[^\w.-]", "_", run.store.run.run_id).lstrip(".") or "run"
        return {f"{name}{self.ending}": written}


EXPORTERS: Final = ExtensionPoint("exporters", Exporter)

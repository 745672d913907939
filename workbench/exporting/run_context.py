"""Data exported with a run: pass rates of past runs, and the user's triage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from workbench.authoring.triage.entry import Entry
from workbench.authoring.triage.judged import standing
from workbench.authoring.triage.triage_file import BrokenTriageError, read_triage
from workbench.events import CaseName
from workbench.execution import Execution
from workbench.history.pass_rates import Trend, pass_rates
from workbench.history.votes import case_keys
from workbench.store import Store


@dataclass(frozen=True)
class RunContext:
    """Pass rates of past runs with the same cases, and triage entries.

    `triage` maps evalset file and case to entries. `trouble` says what could not be read.
    """

    trend: Trend = field(default_factory=Trend)
    triage: Mapping[CaseName, tuple[Entry, ...]] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()

    def triage_of(self, record: Execution) -> list[Entry]:
        """Return the triage entries that apply to a record's answer and verdicts, newest first."""
        found = self.triage.get(record.ref.name, ())
        if not found:
            return []
        mine = [entry for entry in found if entry.triage and standing(entry, record) == "now"]
        return sorted(mine, key=lambda entry: entry.at, reverse=True)

    def entries(self) -> list[Entry]:
        """Return all triage entries."""
        return [entry for entries in self.triage.values() for entry in entries]


def read_run_context(store: Store, state: Path) -> RunContext:
    """Read the data for the newest run of a store. Without its evalsets there is no triage."""
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
    """Return whether a file is below the root. A report may name any file."""
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts

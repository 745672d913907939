"""What the tree knows of agents and cases beside verdicts: results of imports, and triage entries."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.events.events import CaseError

if TYPE_CHECKING:
    from workbench.editing.triage.entry import Entry
    from workbench.editing.triage.triage_file import Triage
    from workbench.store.execution import Execution


@dataclass(frozen=True, slots=True)
class TriageMark:
    """The triage mark in a case's row.

    `word` is the label of the choice, or "labels" if only labels were overridden. `outdated` says that the answer or
    the verdict has changed since.
    """

    word: str
    outdated: bool


class TriageIndex:
    """Triage entries by evalset and case."""

    def __init__(self) -> None:
        self.cases: dict[tuple[Path, str], tuple[Entry, ...]] = {}
        """The entries by evalset and case. Each change makes another dict."""

    def take(self, evalset: Path, triage: "Triage") -> None:
        """Replace the entries of an evalset."""
        self.cases = {key: entries for key, entries in self.cases.items() if key[0] != evalset}
        for entry in triage.entries:
            key = evalset, entry.about.case
            self.cases[key] = (*self.cases.get(key, ()), entry)

    def entries_of(self, evalset: Path, eval_id: str) -> "tuple[Entry, ...]":
        """Return all entries about a case and its labels, for any of its answers."""
        return self.cases.get((evalset, eval_id), ())

    def every(self, evalsets: Iterable[Path]) -> "list[Entry]":
        """Return all entries of these evalsets."""
        wanted = set(evalsets)
        return [entry for (file, _), entries in self.cases.items() if file in wanted for entry in entries]

    def mark(self, evalset: Path, eval_id: str, record: "Execution | None") -> TriageMark | None:
        """Return the mark of a case. It comes from the newest entry about its answer, else about an earlier answer."""
        entries = self.entries_of(evalset, eval_id)
        if not entries:
            return None
        from workbench.editing.triage.entry import choice_label

        current = list(entries)
        if record is not None and record.answer:
            from workbench.editing.triage.entry import standing

            current = [entry for entry in entries if standing(entry, record) == "now"]
        # An entry about the case is more informative than one about a label.
        entry = max(current or entries, key=lambda entry: (bool(entry.triage), entry.at))
        return TriageMark(choice_label(entry.triage) or "labels", outdated=not current)


_KINDS = ("import_failed", "no_framework")


class ImportResults:
    """Import results by agent name. `failed` has the errors, `imported` the agents without one."""

    def __init__(self) -> None:
        self.failed: dict[str, CaseError] = {}
        self.imported: set[str] = set()

    def add(self, agent: str, error: CaseError | None) -> None:
        """Add the result of an import."""
        if error is None:
            self.failed.pop(agent, None)
            self.imported.add(agent)
        else:
            self.failed[agent] = error
            self.imported.discard(agent)

    def add_case(self, agent: str, error: CaseError | None) -> None:
        """Record what a finished case shows about its agent's import.

        A case without an error shows that its agent was imported.
        """
        if error is not None and error.kind in _KINDS:
            self.add(agent, error)
        elif error is None and agent in self.failed:
            self.add(agent, None)

"""What was said of the cases of the workspace, as it was read from the files beside their evalsets."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.authoring.triage.entry import Entry
    from workbench.authoring.triage.triage_file import Triage
    from workbench.events import CaseRef
    from workbench.store import CaseRecord


@dataclass(frozen=True, slots=True)
class Said:
    """What a row tells: a choice, or that labels were overridden. `earlier`: the case gave another answer, or got
    another verdict, since."""

    word: str
    earlier: bool


class TriageBook:
    """Filled file by file; asked for one case."""

    def __init__(self) -> None:
        self._cases: dict[tuple[Path, str], tuple[Entry, ...]] = {}
        self._answers: dict[CaseRef, tuple[CaseRecord, str]] = {}

    def take(self, evalset: Path, triage: "Triage") -> None:
        """Replaces what is known of an evalset."""
        self._cases = {key: said for key, said in self._cases.items() if key[0] != evalset}
        for entry in triage.entries:
            key = evalset, entry.about.case
            self._cases[key] = (*self._cases.get(key, ()), entry)

    def of(self, evalset: Path, eval_id: str) -> "tuple[Entry, ...]":
        """Everything that was said of a case and its labels, for whatever answer."""
        return self._cases.get((evalset, eval_id), ())

    def every(self, evalsets: Iterable[Path]) -> "list[Entry]":
        """Everything that was said of these evalsets."""
        wanted = set(evalsets)
        return [entry for (file, _), said in self._cases.items() if file in wanted for entry in said]

    def said(self, evalset: Path, eval_id: str, record: "CaseRecord | None") -> Said | None:
        """What holds for a case: the last that was said of its answer, else of an earlier one; None for nothing."""
        entries = self.of(evalset, eval_id)
        if not entries:
            return None
        answer = self.answer(record)
        of_now = list(entries)
        if record is not None and answer:
            from workbench.authoring.triage.judged import standing

            of_now = [entry for entry in entries if standing(entry, record, answer) == "now"]
        found = of_now or entries
        # A word on the case tells more than one on a label.
        entry = max(found, key=lambda entry: (bool(entry.triage), entry.at))
        return Said(entry.triage or "labels", earlier=not of_now)

    def answer(self, record: "CaseRecord | None") -> str:
        """The digest of the answer of a record; "" as long as there is none."""
        if record is None or not record.has_verdict:
            return ""
        known = self._answers.get(record.ref)
        if known is None or known[0] is not record:
            from workbench.authoring.triage.judged import answer_of

            known = self._answers[record.ref] = record, answer_of(record)
        return known[1]

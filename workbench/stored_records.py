"""Cases of stored runs as `CaseRecord`s, with or without their details.

Modules that read journals are imported only when they are needed, so that verdicts appear on the screen sooner.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.causes.cause import cause_from_json, make_cause
from workbench.details import Brief, DetailCache, DetailSource, brief_error, short_score
from workbench.events import CaseError, CaseName, CaseRef, MetricResult, PlannedCase, Usage
from workbench.history.summary import Row, Summary, fault_of, frozen_of, handling_of
from workbench.history.votes import Case, case_key
from workbench.store import CaseRecord, Store

if TYPE_CHECKING:
    from workbench.history.case_events import Places


def read_records(file: Path, refs: Collection[CaseRef], places: "Places | None" = None) -> dict[CaseRef, CaseRecord]:
    """Read the records of these cases from a stored run. Call it in a thread.

    A case without any event in the file gets a record of a case that never began.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has other content at the places of the cases.
    """
    from workbench.history.case_events import case_events

    store = Store()
    for event in case_events(file, refs, places):
        store.apply(event)
    return store.records


def end_all(records: dict[CaseRef, CaseRecord], *, damaged: bool = False) -> dict[CaseRef, CaseRecord]:
    """End all unfinished records, because nothing runs in a stored run.

    An unfinished case counts as cancelled. With `damaged` (the run ended, but a part of its journal is lost) it is an
    error.
    """
    from workbench.history.run_events import END_IS_LOST

    for record in records.values():
        if not record.finished:
            if damaged:
                record.state, record.error = "error", CaseError("broken_file", END_IS_LOST)
                record.cause = make_cause("error", END_IS_LOST)
            else:
                record.cancel()
    return records


class JournalDetails:
    """A `DetailSource` that reads the details of one case at a time from a run's journal."""

    def __init__(self, file: Path, places: "Places") -> None:
        self._file = file
        self._places = places

    def size(self, ref: CaseRef) -> int:
        """Return the number of journal bytes about a case, or 0 if that is not known."""
        return sum(self._places(ref)[1::2])

    def read(self, ref: CaseRef) -> tuple[CaseRecord, str]:
        """Return a case from the journal, and why it could not be read ("" if it could).

        If the journal has something else at the places of the case, the whole file is searched.
        """
        for places in (self._places, None):
            try:
                record = read_records(self._file, {ref}, places)[ref]
            except OSError as error:
                why = f"the journal of this run cannot be read: {error.strerror or type(error).__name__}"
                return CaseRecord(PlannedCase(ref, None, "")), why
            except (ValueError, KeyError, IndexError):
                continue
            if record.finished:
                return record, ""
        return record, "the journal of this run is damaged: the conversation of this case is lost"


def case_keys(names: Iterable[CaseName], records: Iterable[CaseRecord]) -> set[Case]:
    """Return the keys under which past runs have comparable votes for these cases.

    A case whose verdict among `records` is frozen is compared with frozen ones. Others are compared with live ones.
    """
    frozen = {record.ref.name: record.frozen for record in records if record.frozen is not None}
    return {case_key(*name, frozen.get(name)) for name in names}


class OpenJournal(Protocol):
    """The journal of the current run (`workbench.history.journal.Journal`)."""

    @property
    def path(self) -> Path | None:
        """The journal file, or None if nothing is written."""
        ...

    def places(self, ref: CaseRef) -> Sequence[int]:
        """Return the offsets and lengths of a case's lines in the file, in turn."""
        ...


def register_details(sources: dict[str, DetailSource], journal: OpenJournal) -> None:
    """Add the journal of a run to a store's `detail_sources`. Without a file, details stay in memory.

    Can be called in any thread.
    """
    if journal.path is not None:
        sources[journal.path.parent.name] = JournalDetails(journal.path, journal.places)


_Plan = tuple[str | None, str, tuple[str, ...], str]
_UNKNOWN: _Plan = (None, "not known", (), "")


def brief_records(
    summary: Summary, file: Path, rows: Collection[Row], detail_cache: DetailCache
) -> dict[CaseRef, CaseRecord]:
    """Return records of finished cases, made from the summary of their run.

    Their details are read from the journal `file` when they are accessed.
    """
    at = {tuple(row["ref"]): row["at"] for row in rows}
    source = JournalDetails(
        file, lambda ref: at.get((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat), ())
    )
    plans: list[_Plan] = [(config, source, tuple(changed), rule) for config, source, changed, rule in summary.plans]
    usage = lru_cache(Usage)
    causes = [cause_from_json(cause) for cause in summary.causes]
    found: dict[CaseRef, CaseRecord] = {}
    for row in rows:
        ref = CaseRef(*row["ref"])
        plan = _UNKNOWN if row["plan"] is None else plans[row["plan"]]
        error = brief_error(row["error"][0]) if row["error"] else None
        planned = PlannedCase(ref, *plan, row["text"], fault_of(row))
        record = CaseRecord.without_details(planned, row["status"], Brief(_scores(row), error, source, detail_cache))
        record.started_at = 0.0 if row["given"] else None
        record.inputs = summary.inputs(row)
        record.duration_seconds, record.usage = row["seconds"], usage(*row["usage"])
        record.run_id, record.until_sure = summary.run_id, summary.until_sure
        record.cause = None if row.get("cause") is None else causes[row["cause"]]
        record.frozen, record.handling = frozen_of(row), handling_of(row)
        record.drifted = row.get("drifted")
        record.machine = row.get("machine", "")
        found[ref] = record
    return found


def _scores(row: Row) -> dict[str, MetricResult]:
    return {
        name: short_score(name, status, score, threshold, _judge(judge, by))
        for name, (score, threshold, status, _, judge, by) in row["metrics"].items()
    }


def _judge(model: str | None, by: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return who judged, from the fields of a summary."""
    return (("model", model), ("kind", "model"), ("by", by)) if model else ()

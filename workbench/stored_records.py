"""Cases of stored runs as `CaseRecord`s, with or without their details.

Modules that read runs are imported only when they are needed, so that verdicts appear on the screen sooner.
"""

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from workbench.causes.cause import cause_from_json, make_cause
from workbench.details import Brief, DetailCache, DetailSource, brief_error, short_score
from workbench.events import CaseError, CaseName, CaseRef, MetricResult, PlannedCase, Usage
from workbench.history.summary import Row, Summary, fault_of, frozen_of, handling_of
from workbench.history.votes import Case, case_key
from workbench.store import CaseRecord, Store

_LOST = "the database is damaged: the conversation of this case is lost"


def read_records(file: Path, refs: Collection[CaseRef]) -> dict[CaseRef, CaseRecord]:
    """Read the records of these cases from a stored run. Call it in a thread.

    A case without any event gets a record of a case that never began.

    Raises:
        OSError: the run cannot be read.
        ValueError: a part of a case is lost.
    """
    from workbench.history.case_events import case_events

    store = Store()
    for event in case_events(file, refs):
        store.apply(event)
    return store.records


def end_all(records: dict[CaseRef, CaseRecord], *, damaged: bool = False) -> dict[CaseRef, CaseRecord]:
    """End all unfinished records, because nothing runs in a stored run.

    An unfinished case counts as cancelled. With `damaged` (the run ended, but a part of it is lost) it is an
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


class StoredDetails:
    """A `DetailSource` that reads the details of one case at a time from a stored run.

    `size` returns the bytes of a case's events, or 0 if they are not stored.
    """

    def __init__(self, file: Path, size: Callable[[CaseRef], int]) -> None:
        self._file = file
        self.size = size

    def read(self, ref: CaseRef) -> tuple[CaseRecord, str]:
        """Return a case from the database, and why it could not be read ("" if it could)."""
        record = CaseRecord(PlannedCase(ref, None, ""))
        try:
            record = read_records(self._file, {ref})[ref]
        except OSError as error:
            return record, f"this run cannot be read: {error.strerror or type(error).__name__}"
        except (ValueError, KeyError, IndexError):
            return record, _LOST
        return record, "" if record.finished else _LOST


def case_keys(names: Iterable[CaseName], records: Iterable[CaseRecord]) -> set[Case]:
    """Return the keys under which past runs have comparable votes for these cases.

    A case whose verdict among `records` is frozen is compared with frozen ones. Others are compared with live ones.
    """
    frozen = {record.ref.name: record.frozen for record in records if record.frozen is not None}
    return {case_key(*name, frozen.get(name)) for name in names}


class OpenRun(Protocol):
    """The writer of the current run (`workbench.history.run_writer.RunWriter`)."""

    @property
    def path(self) -> Path:
        """The path that names the run."""
        ...

    def size(self, ref: CaseRef) -> int:
        """Return the bytes of a case's events, or 0 if they are not stored."""
        ...


def register_details(sources: dict[str, DetailSource], run: OpenRun) -> None:
    """Add a run to a store's `detail_sources`. Details that are not stored stay in memory.

    Can be called in any thread.
    """
    sources[run.path.name] = StoredDetails(run.path, run.size)


_Plan = tuple[str | None, str, tuple[str, ...], str]
_UNKNOWN: _Plan = (None, "not known", (), "")


def brief_records(
    summary: Summary, file: Path, rows: Collection[Row], detail_cache: DetailCache
) -> dict[CaseRef, CaseRecord]:
    """Return records of finished cases, made from the summary of their run.

    Their details are read from the stored run or the file `file` when they are accessed.
    """
    sizes = {tuple(row["ref"]): row.get("size", 0) for row in rows}
    source = StoredDetails(
        file, lambda ref: sizes.get((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat), 0)
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

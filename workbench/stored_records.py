"""Cases of kept runs as the records that every surface shows, whole or without their details.

What reads journals is imported when it is needed: verdicts are on the screen before that.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.details import Brief, Kept, Shelf, brief_error, short_score
from workbench.events import CaseError, CaseRef, MetricResult, PlannedCase, Usage
from workbench.history.summary import Row, Summary
from workbench.store import CaseRecord, Store

if TYPE_CHECKING:
    from workbench.history.case_events import Places


def read_records(file: Path, refs: Collection[CaseRef], places: "Places | None" = None) -> dict[CaseRef, CaseRecord]:
    """Read what a kept run says of these cases; one of which nothing is kept is as one that never began. For a thread.

    Raises:
        OSError, ValueError: the file cannot be read, or the cases do not stand at their places.
    """
    from workbench.history.case_events import case_events

    store = Store()
    for event in case_events(file, refs, places):
        store.apply(event)
    return store.records


def end_all(records: dict[CaseRef, CaseRecord], *, damaged: bool = False) -> dict[CaseRef, CaseRecord]:
    """Give each record an end: in a run that is kept nothing is running. A case without one was cancelled; with
    `damaged` (the run came to its end, and something of its journal is lost) it is an error."""
    from workbench.history.kept_events import END_IS_LOST

    for record in records.values():
        if not record.finished:
            if damaged:
                record.state, record.error = "error", CaseError("broken_file", END_IS_LOST)
            else:
                record.cancel()
    return records


class JournalDetails:
    """The details of a run's cases in its journal, read case by case at their places."""

    def __init__(self, file: Path, places: "Places") -> None:
        self._file = file
        self._places = places

    def size(self, ref: CaseRef) -> int:
        """Return how many bytes of the journal tell of a case; 0 if that is not known."""
        return sum(self._places(ref)[1::2])

    def read(self, ref: CaseRef) -> tuple[CaseRecord, str]:
        """Return a case as the journal has it. If something else stands at its places, the whole file is searched. The
        text says why the case could not be read, "" if it could."""
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
        return record, "the journal of this run is damaged: what this case said and did is lost"


class Writing(Protocol):
    """The journal of a run that is going on: `workbench.history.journal.Journal`."""

    @property
    def path(self) -> Path | None: ...

    def places(self, ref: CaseRef) -> Sequence[int]: ...


def register_details(kept: dict[str, Kept], journal: Writing) -> None:
    """Tell a store (its `kept`) that the details of a run are in its journal; without a file they stay in memory. From
    any thread."""
    if journal.path is not None:
        kept[journal.path.parent.name] = JournalDetails(journal.path, journal.places)


_Plan = tuple[str | None, str, tuple[str, ...], str]
_UNKNOWN: _Plan = (None, "not known", (), "")


def brief_records(summary: Summary, file: Path, rows: Collection[Row], shelf: Shelf) -> dict[CaseRef, CaseRecord]:
    """Make records of finished cases from the summary of their run; their details are read from its journal `file` when
    somebody asks for them."""
    at = {tuple(row["ref"]): row["at"] for row in rows}
    kept = JournalDetails(
        file, lambda ref: at.get((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat), ())
    )
    plans: list[_Plan] = [(config, source, tuple(changed), rule) for config, source, changed, rule in summary.plans]
    usage = lru_cache(Usage)
    found: dict[CaseRef, CaseRecord] = {}
    for row in rows:
        ref = CaseRef(*row["ref"])
        told = _UNKNOWN if row["plan"] is None else plans[row["plan"]]
        error = brief_error(row["error"][0]) if row["error"] else None
        planned = PlannedCase(ref, *told, row["text"])
        record = CaseRecord.folded(planned, row["status"], Brief(_scores(row), error, kept, shelf))
        record.started_at = 0.0 if row["given"] else None
        record.inputs = summary.inputs(row)
        record.duration_seconds, record.usage = row["seconds"], usage(*row["usage"])
        record.run_id, record.until_sure = summary.run_id, summary.until_sure
        found[ref] = record
    return found


def _scores(row: Row) -> dict[str, MetricResult]:
    return {
        name: short_score(name, status, score, threshold, _judge(judge, by))
        for name, (score, threshold, status, _, judge, by) in row["metrics"].items()
    }


def _judge(told: str | None, by: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return who judged, by what a summary says of it."""
    return (("model", told), ("kind", "heuristic" if told == "heuristic" else "model"), ("by", by)) if told else ()

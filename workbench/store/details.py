"""Details of finished executions, read from the stored run when something shows or exports them.

A run may have many thousand cases. Their verdicts are small and stay in memory (`store.execution`). Conversations,
reasons and output are large, so only those read recently stay in memory.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path

from workbench.events.events import CaseError, CaseRef, RunStarted
from workbench.store.execution import CaseRecord, Execution, apply_to_case
from workbench.store.inputs import RunInputs
from workbench.store.reasons import make_cause

_BUDGET = 4 * 2**20
"""Limit of details in memory, in bytes of stored events. As Python objects they take about ten times as much."""
_SMALLEST = 2_000
"""Minimum number of bytes counted for a case."""
_LEAST = 3
"""Number of executions whose details stay in memory, however large: a screen shows two at a time."""
_LOST = "the database is damaged: the conversation of this case is lost"
_lock = threading.Lock()
_recent: OrderedDict[int, tuple[Execution, CaseRecord, int]] = OrderedDict()
"""Executions with their details and counted bytes, by `id()` of the execution, the least recently used first."""
_bytes = 0


def known_details(execution: Execution) -> CaseRecord | None:
    """Return an execution with its details if they are in memory, else None. Does not read from disk."""
    if isinstance(execution, CaseRecord):
        return execution
    with _lock:
        known = _recent.get(id(execution))
        if known is None:
            return None
        _recent.move_to_end(id(execution))
        return known[1]


def read_details(execution: Execution) -> CaseRecord:
    """Return an execution with its details. Reading them from disk takes a few milliseconds.

    The verdict is always that of the execution. If details are lost, `read_error` of both objects says so. The
    conversation is then empty, because a part of it would look complete.
    """
    record = known_details(execution)
    if record is None:
        record, execution.read_error = _read(execution)
        if record is None:
            record = CaseRecord(execution.planned, scores=dict(execution.scores), error=execution.error)
        record.take_verdict(execution)
        keep_details(execution, record)
    return record


def keep_details(execution: Execution, record: CaseRecord) -> None:
    """Keep the details of an execution in memory. Drop the least recently used ones if all are too large together."""
    global _bytes
    size = max(execution.size, _SMALLEST)
    with _lock:
        _, _, before = _recent.get(id(execution), (None, None, 0))
        _bytes += size - before
        _recent[id(execution)] = execution, record, size
        while _bytes > _BUDGET and len(_recent) > _LEAST:
            _bytes -= _recent.popitem(last=False)[1][2]


def _read(execution: Execution) -> tuple[CaseRecord | None, str]:
    """Return the stored record of an execution, or None and the reason."""
    if execution.file is None:
        return None, ""
    try:
        record = read_records(execution.file, {execution.ref})[execution.ref]
    except OSError as error:
        return None, f"this run cannot be read: {error.strerror or type(error).__name__}"
    except (ValueError, KeyError, IndexError):
        return None, _LOST
    return (record, "") if record.finished else (None, _LOST)


def read_records(file: Path, refs: Collection[CaseRef]) -> dict[CaseRef, CaseRecord]:
    """Read the records of these cases from a stored run. Call it in a thread.

    A case without events gets an empty record.

    Raises:
        OSError: The run cannot be read.
        ValueError: A part of a case is lost.
    """
    # Imported late, so that verdicts appear on the screen sooner.
    from workbench.store.history.reading import case_events

    records: dict[CaseRef, CaseRecord] = {}
    inputs = RunInputs()
    for event in case_events(file, refs):
        if isinstance(event, RunStarted):
            inputs = RunInputs(event.inputs)
            records = {
                planned.case: CaseRecord(planned, run_id=event.run_id, until_sure=event.until_sure)
                for planned in event.cases
            }
        elif (case := getattr(event, "case", None)) is not None:
            apply_to_case(records[case], event, inputs)
    return records


def end_all(records: dict[CaseRef, CaseRecord], *, damaged: bool = False) -> dict[CaseRef, CaseRecord]:
    """End all unfinished records, because nothing runs in a stored run.

    They count as cancelled, or as errors with `damaged`: the run ended, but a part of it is lost.
    """
    from workbench.store.history.reading import END_IS_LOST

    for record in records.values():
        if not record.finished:
            if damaged:
                record.state, record.error = "error", CaseError("broken_file", END_IS_LOST)
                record.cause = make_cause("error", END_IS_LOST)
            else:
                record.cancel()
    return records

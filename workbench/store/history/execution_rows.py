"""Executions and summaries as rows of the database, and back."""

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias, get_args

from workbench.events.event_json import fields_as_json, from_json, read_fields
from workbench.events.events import (
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FaultHandling,
    Frozen,
    MetricResult,
    PlannedCase,
    RunStarted,
    ToolFault,
    Usage,
)
from workbench.store.database.runs import ExecutionRow, execution_id, plain
from workbench.store.execution import CaseState, Execution, brief_error, short_score
from workbench.store.history.stored_events import stored_events
from workbench.store.history.summary import Inputs, Summary, SummaryBuilder
from workbench.store.reasons import cause_from_json, judge_in, judge_name, judged_by
from workbench.text.collecting import collector_paused
from workbench.text.json_values import short_json

_Plan: TypeAlias = tuple[str | None, str, tuple[str, ...], str]
"""The plan of a case: config, source of its criteria, changed criteria, and how its agent was found."""
_AT_ONCE = 50
"""Number of rows that are parsed with one call."""
_LARGEST = 1 << 62
_LONGEST_REASON = 2_000
_FACTS = (
    *("root", "versions", "models", "sources", "git", "until_sure"),
    *("salt_id", "fork", "options", "resumed", "damage"),
)
"""Fields of a summary that are stored beside the row of its run."""
_STATES: dict[str, CaseState] = {status: status for status in get_args(CaseStatus)}
_USAGE = attrgetter(*(item.name for item in fields(Usage)))
_usage = lru_cache(4096)(Usage)


class Place:
    """The position of an execution's events in the database.

    `id` is the execution's id. `first`, `events` and `bytes` are the first number, the count and the size of the events
    of its last attempt. `changed` is the number of its last event.
    """

    __slots__ = ("attempt", "bytes", "changed", "events", "first", "id", "ref")

    def __init__(self, ref: CaseRef, key: int) -> None:
        self.ref, self.id, self.attempt = ref, key, 1
        self.first = self.events = self.bytes = self.changed = 0

    def take(self, number: int, size: int, event: Event | None = None) -> None:
        """Count an event. `event` may be None unless it starts an attempt."""
        if isinstance(event, CaseStarted):
            self.first, self.events, self.bytes = number, 0, 0
            self.attempt = _counted(event.attempt) or 1
        self.first = self.first or number
        self.events, self.bytes, self.changed = self.events + 1, self.bytes + size, number


class RunRows:
    """The rows of a run's executions and its summary, both built from its events."""

    def __init__(self, run: int, path: Path) -> None:
        self._run, self._path = run, path
        self.builder = SummaryBuilder(path)
        """The builder of the summary of the events so far."""
        self.places: dict[CaseRef, Place] = {}
        """The place of each execution's events."""
        self._by_id: dict[int, Place] = {}

    def take(self, event: Event | None, number: int, size: int, execution: int | None = None) -> Place | None:
        """Add the next event, or None for one without data. Return the position of its execution's events, or None."""
        if event is not None:
            self.builder.take(event)
        if isinstance(event, RunStarted):
            for planned in event.cases:
                self._place(planned.case)
        ref: CaseRef | None = getattr(event, "case", None)
        place = self._by_id.get(execution or 0) if ref is None else self._place(ref, execution)
        if place is not None:
            place.take(number, size, event)
        return place

    def replay(self) -> tuple[list[str], int]:
        """Add the stored events of the run. Return messages about damaged events, and the number of the last event."""
        damage, last = list[str](), 0
        for read in stored_events(self._path, unread="steps"):
            last = max(last, read.number)
            if read.problem:
                damage.append(read.problem)
            if read.is_whole:
                event = None
                with suppress(ValueError, RecursionError):  # An unknown form counts as an event without data.
                    event = None if read.data is None else from_json(read.data)
                self.take(event, read.number, read.size, read.execution)
        return damage, last

    def rows(self, places: Iterable[Place], first_bundle: int = 0) -> list[ExecutionRow]:
        """Return the rows of these executions, without checksums. Their bundles have numbers from `first_bundle` on."""
        found = ((self.builder.summary.executions.get(place.ref), place) for place in places)
        return [execution_row(one, place, self._run, first_bundle) for one, place in found if one is not None]

    def _place(self, ref: CaseRef, execution: int | None = None) -> Place:
        found = self.places.get(ref)
        if found is None:
            found = self.places[ref] = Place(ref, execution or execution_id(self._run, len(self.places)))
            self._by_id[found.id] = found
        return found


def execution_row(execution: Execution, place: Place, run: int, first_bundle: int = 0) -> ExecutionRow:
    """Return the row of an execution, without its checksum. Its bundles have numbers from `first_bundle` on."""
    ref, planned, usage, error = execution.ref, execution.planned, execution.usage, execution.error
    names = [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id]
    agent, evalset_file, eval_set_id, eval_id = map(plain, names)
    repeat = _counted(ref.repeat)
    inputs = execution.inputs.numbers if isinstance(execution.inputs, Inputs) else ()
    more: dict[str, Any] = {
        "plan": [planned.config_file, planned.criteria_source, planned.criteria_changed, planned.matched_by],
        "text": planned.text,
        "usage": _USAGE(usage),
        "given": [number + first_bundle for number in execution.given],
        "inputs": [number + first_bundle for number in inputs],
        "steps": execution.steps,
        **_sometimes(execution),
    }
    if [agent, evalset_file, eval_set_id, eval_id, repeat] != [*names, ref.repeat]:
        more["ref"] = [*names, ref.repeat]
    kind, message = (None, None) if error is None else (error.kind, plain(error.message))
    if error is not None and message != error.message:
        more["error"] = error.message
    seconds = float(execution.duration_seconds)
    if not math.isfinite(seconds):
        more["seconds"], seconds = str(seconds), 0.0
    return ExecutionRow(
        place.id,
        run,
        agent,
        evalset_file,
        eval_set_id,
        eval_id,
        repeat,
        place.attempt,
        execution.state if execution.finished else None,
        kind,
        message,
        None if execution.cause is None else plain(execution.cause.text),
        seconds,
        _counted(usage.model_calls),
        _counted(usage.input_tokens),
        _counted(usage.output_tokens),
        _counted(usage.judge_calls),
        _counted(usage.judge_calls_cached),
        short_json({name: _score(result) for name, result in execution.scores.items()}),
        short_json(more),
        place.first,
        place.events,
        place.bytes,
        place.changed,
    )


def _sometimes(execution: Execution) -> dict[str, Any]:
    """Return the fields that this execution has and most others lack."""
    handling, fault = execution.handling, execution.planned.fault
    found = {
        "cause": None if execution.cause is None else execution.cause.as_json(),
        "hint": "" if execution.error is None else execution.error.hint,
        "frozen": None if execution.frozen is None else fields_as_json(execution.frozen),
        "fault": None if fault is None else fields_as_json(fault),
        "handling": None if handling is None else _handling(handling),
        "machine": execution.machine,
        "unseen": execution.unseen,
        "answer": execution.answer,
        "apart": execution.apart,
        "split": execution.split,
        "resumed": execution.resumed,
    }
    more = {name: value for name, value in found.items() if value}
    return more if execution.drifted is None else {**more, "drifted": execution.drifted}


def _handling(handling: FaultHandling) -> dict[str, Any]:
    """Return what an agent did about a fault. Its reason is cut, and of its details only the judge is included."""
    judge = judge_in(handling.details)
    details = {"judge": {name: judge.get(name) for name in ("model", "kind", "by")}} if judge else {}
    return {**fields_as_json(handling), "reason": handling.reason[:_LONGEST_REASON], "details": details}


def _score(result: MetricResult) -> list[Any]:
    """Return a verdict as `[score, threshold, status, reason, judge, judged_by]`. The reason is cut."""
    score, threshold, reason = _number(result.score), _number(result.threshold), result.reason[:_LONGEST_REASON]
    judge = judge_in(result.details)
    if not judge:
        return [score, threshold, result.status, reason, None, None]
    found = {"judge": judge}
    return [score, threshold, result.status, reason, judge_name(found) or None, judged_by(found)]


def add_executions(summary: Summary, rows: Iterable[ExecutionRow], file: Path) -> list[CaseRef]:
    """Add stored executions to a summary, in their order, and return their refs. Details can be read from `file`.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: A row is malformed.
    """
    rows, refs = iter(rows), list[CaseRef]()
    # Executions with the same scores share them.
    scores: dict[str, dict[str, MetricResult]] = {}
    plans: dict[_Plan, _Plan] = {}
    with collector_paused():
        # More rows at once leave the processor's cache: ten thousand then take a third longer.
        while found := list(itertools.islice(rows, _AT_ONCE)):
            texts = {row.scores for row in found}.difference(scores)
            scores.update(zip(texts, map(_read_scores, _parsed(texts)), strict=True))
            for row, more in zip(found, _parsed([row.more for row in found]), strict=True):
                config, source, changed, rule = more["plan"]
                plan: _Plan = config, source, tuple(changed), rule
                execution = _execution(row, more, plans.setdefault(plan, plan), scores[row.scores], summary, file)
                summary.executions[execution.ref] = execution
                refs.append(execution.ref)
    return refs


def _execution(
    row: ExecutionRow, more: dict[str, Any], plan: _Plan, scores: dict[str, MetricResult], summary: Summary, file: Path
) -> Execution:
    ref = CaseRef(*more.get("ref", row[2:7]))
    fault, frozen, handling, cause = more.get("fault"), more.get("frozen"), more.get("handling"), more.get("cause")
    error = None
    if row.error_kind is not None:
        error = brief_error(row.error_kind, more.get("error", row.error or ""), more.get("hint", ""))
    given = tuple(more["given"])
    state: CaseState = "running" if given else "queued"
    return Execution(
        PlannedCase(ref, *plan, more["text"], fault and read_fields(ToolFault, fault)),
        state if row.status is None else _STATES[row.status],
        started_at=0.0 if given else None,
        scores=scores,
        error=error,
        machine=more.get("machine", ""),
        duration_seconds=float(more.get("seconds", row.seconds)),
        usage=_usage(*more["usage"]),
        run_id=summary.run_id,
        inputs=summary.bundles.inputs(more["inputs"]),
        given=given,
        frozen=frozen and read_fields(Frozen, frozen),
        handling=handling and read_fields(FaultHandling, handling),
        drifted=more.get("drifted"),
        until_sure=summary.until_sure,
        cause=cause and cause_from_json(cause),
        answer=more.get("answer", ""),
        steps=more["steps"],
        split=more.get("split", False),
        unseen=tuple(more.get("unseen", ())),
        apart=more.get("apart", False),
        rescored=bool(summary.scored_from),
        resumed=more.get("resumed", ""),
        file=file,
        size=row.bytes,
    )


def resumed_of(row: ExecutionRow) -> str:
    """Return `Execution.resumed` of a stored execution with a verdict, else ""."""
    if '"resumed":' not in row.more or row.status in (None, "cancelled"):
        return ""
    return str(json.loads(row.more).get("resumed", ""))


def _parsed(texts: Iterable[str]) -> list[Any]:
    """Return the values of JSON texts. One call for all of them is several times faster."""
    found: list[Any] = json.loads(f"[{','.join(texts)}]")
    return found


def _read_scores(scores: dict[str, Sequence[Any]]) -> dict[str, MetricResult]:
    return {
        name: short_score(name, status, _read_number(score), _read_number(threshold), _judge(judge, by), reason)
        for name, (score, threshold, status, reason, judge, by) in scores.items()
    }


def _judge(model: str | None, by: str | None) -> tuple[tuple[str, str], ...]:
    """Return the judge in the form that `short_score` takes."""
    if not model:
        return ()
    return (("model", model), ("kind", "model"), ("by", by)) if by else (("model", model),)


def facts_text(summary: Summary) -> str:
    """Return the facts of a run as JSON text."""
    return short_json({name: getattr(summary, name) for name in _FACTS})


def read_facts(summary: Summary, text: str) -> None:
    """Set the facts of a summary. Raise ValueError or TypeError if the text is malformed."""
    data: dict[str, Any] = json.loads(text)
    for name in _FACTS:
        if name in data:
            setattr(summary, name, data[name])


def _counted(value: Any) -> int:
    """Return a number from an event if it can be stored, else 0."""
    return value if isinstance(value, int) and abs(value) < _LARGEST else 0


def _number(value: float | None) -> float | str | None:
    """Return a number for JSON. Infinite numbers and NaN become text, because SQLite cannot read them in JSON."""
    return None if value is None else float(value) if math.isfinite(value) else str(value)


def _read_number(value: Any) -> float | None:
    return float(value) if isinstance(value, str) else value

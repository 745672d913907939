"""Export of a run as a JSON report. `workbench.exporting.report_shape` defines its form.

`python -m workbench.exporting.report` prints `docs/report.schema.json`. `docs/formats.md` explains the report.
"""

import contextlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from workbench.agents.ownership import OwnerRule
from workbench.events.event_json import to_json
from workbench.events.events import MetricResult, Thawed
from workbench.exporting import SCHEMA
from workbench.exporting.exporter import Exporter
from workbench.exporting.report_shape import (
    CaseMetric,
    CriterionRepeats,
    DriftChange,
    FaultRow,
    Report,
    ReportCase,
    ReportDrift,
    ReportError,
    ReportFault,
    ReportFork,
    ReportForMerge,
    ReportFrozen,
    ReportInvocation,
    ReportRepeats,
    ReportShard,
    ReportUsage,
    Summary,
    ToolFaults,
    TrajectoryRepeats,
    TurnMetric,
    output_schema,
)
from workbench.files.prices import Prices, case_cost, criterion_cost, total
from workbench.judges.kinds import retires
from workbench.results.faults import fault_rows, outcomes
from workbench.results.judged import judge_questions, versions
from workbench.results.repeats import CaseRepeats, summarize_all
from workbench.store.execution import CaseRecord, Execution
from workbench.store.reasons import judged_by
from workbench.store.store import Store
from workbench.text.json_values import mapping, objects, string
from workbench.worker.spans import is_other_model

_NO_PRICES = Prices()
_OPTIONAL = ("judged_by", "fault", "fork", "drift", "tool_faults", "inner_calls", "shard", "for_merge")
"""Fields that are left out if they would be null."""
OUTPUT_LIMIT = 20_000
"""Maximum number of exported characters of an agent's output. The last ones of each stream are exported."""
_DEPTH = 200
_TOO_DEEP = f"… [nested deeper than {_DEPTH} levels]"


def report_pieces(store: Store, prices: Prices = _NO_PRICES) -> Iterator[bytes]:
    """Yield the report of the newest run as one line of ASCII JSON, case by case to save memory.

    With `prices`, the details of judged criteria have their cost in `tally.cost`. NaN and infinity, which JSON
    lacks, become null in scores and strings in invocations and details. Data nested too deeply is cut.
    """
    costs: list[float | None] = []
    warnings = {notice.message: None for notice in store.notices if notice.in_report}

    def cases() -> Iterator[ReportCase]:
        for record in store.read_current():
            rescored = bool(store.run.scored_from)
            case = report_case(record, prices, for_merge=store.run.shard is not None, rescored=rescored)
            costs.append(case.usage.judge_cost)
            warnings.update(dict.fromkeys(model_warnings(record)))
            yield case

    repeats = map(_repeats, summarize_all(store.current_records(), store.run.until_sure))
    lists: dict[str, Iterable[BaseModel]] = {"cases": cases(), "repeats": repeats}
    # Known only once the cases are written.
    late: dict[str, Callable[[], Any]] = {
        "judge_cost": lambda: total(costs) if prices else None,
        "warnings": lambda: list(warnings),
    }
    fields = _fields(_frame(store, prices))
    order = list(fields)
    assert order.index("cases") < min(map(order.index, late)), order
    before = b"{"
    for name, value in fields.items():
        yield before + _encode(name) + b": "
        before = b", "
        if name in lists:
            yield from _list(lists[name])
        else:
            yield _encode(late[name]() if name in late else value)
    yield b"}\n"


def model_warnings(record: CaseRecord) -> Iterator[str]:
    """Yield warnings about replies from other models than requested, and about retiring models of the agent."""
    asked = [
        (f"the judge of {name}", item.question) for name in record.metrics for item in judge_questions(record, name)
    ]
    asked += [("the simulated user", step.question) for step in record.simulated if step.question]
    for who, question in asked:
        model = string(mapping(question.get("judge")).get("model"))
        for version in versions([question]):
            if is_other_model(model, version):
                yield f"{who} asked {model}, but {version} answered"
    for turn in record.turns:
        events = objects(mapping(mapping(turn.actual).get("intermediate_data")).get("invocation_events"))
        for version in dict.fromkeys(string(event.get("model_version")) for event in events):
            if warning := retires(f"the agent {record.ref.agent}", version):
                yield warning


def _frame(store: Store, prices: Prices) -> Report:
    """Return the report without cases and repeats."""
    counts: Counter[str] = Counter(record.status for record in store.current_records())
    total, counts["failed_with_errors"] = counts.total(), store.failed_with_errors()
    run = store.run
    return Report(
        schema_name=SCHEMA,
        run_id=run.run_id,
        root=run.root,
        started=run.started,
        duration_seconds=run.duration_seconds,
        summary=Summary(**{**{name: counts[name] for name in Summary.model_fields}, "total": total}),
        cases=[],
        repeats=[],
        scored_from=run.scored_from or None,
        judge_cost=None,
        currency=prices.currency if prices else None,
        warnings=[],
        tool_faults=_tool_faults(store) if run.has_faults else None,
        shard=ReportShard(**asdict(run.shard)) if run.shard else None,
    )


def _list(items: Iterable[BaseModel]) -> Iterator[bytes]:
    before = b"["
    for item in items:
        yield before + _encode(item)
        before = b", "
    yield b"[]" if before == b"[" else b"]"


def _encode(part: Any) -> bytes:
    try:
        return json.dumps(part, allow_nan=False, default=_fields).encode("ascii")
    except (ValueError, RecursionError):
        return json.dumps(json_data(part), allow_nan=False).encode("ascii")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of `--json`: a report or a refusal."""
    description = "Output of `agent-workbench run --json`: a report, or why nothing ran."
    return output_schema(Report, "agent-workbench report", description)


def report_case(
    record: CaseRecord, prices: Prices = _NO_PRICES, *, for_merge: bool = False, rescored: bool = False
) -> ReportCase:
    """Return an execution in the form of the report. `for_merge` adds the data that `merge` needs.

    `rescored` says that a stored transcript was scored again, so its simulated user cost nothing.
    """
    simulated = () if rescored else record.simulated
    cost, fork = case_cost(record.metrics.values(), simulated, record.handling, prices), record.planned.fork
    # A run of another version may have other rules.
    rule = next((rule for rule in get_args(OwnerRule) if rule == record.planned.matched_by), None)
    return ReportCase(
        **asdict(record.ref),
        status=record.status,
        error=ReportError.of(record.error) if record.error else None,
        frozen=ReportFrozen.of(record.frozen, recorded=record.frozen.recorded or None) if record.frozen else None,
        drift=_drift(record.thawed) if record.thawed else None,
        place=record.machine or None,
        attempt=record.attempt,
        matched_by=rule,
        config_file=record.planned.config_file,
        duration_seconds=record.duration_seconds,
        usage=ReportUsage.of(record.usage, judge_cost=cost),
        metrics=[_case_metric(result, prices) for result in record.metrics.values()],
        invocations=list(_invocations(record)),
        scenario=record.scenario,
        rubrics=list(record.rubrics),
        criteria_changed=list(record.planned.criteria_changed),
        fault=_fault(record),
        fork=ReportFork.of(fork, turn=fork.turn + 1, call=fork.call or None) if fork else None,
        for_merge=_for_merge(record) if for_merge else None,
    )


def _for_merge(record: CaseRecord) -> ReportForMerge:
    return ReportForMerge(
        criteria=record.criteria,
        criteria_source=record.planned.criteria_source,
        simulated=[to_json(move) for move in record.simulated],
        output={stream: text[-OUTPUT_LIMIT:] for stream, text in record.output.items()},
    )


def _fault(record: Execution) -> ReportFault | None:
    fault, handling = record.planned.fault, record.handling
    if fault is None:
        return None
    if handling is None:
        return ReportFault(tool=fault.tool, way=fault.way, outcome=None, reason="", facts_without_source=[])
    by = judged_by(handling.details)
    return ReportFault.of(handling, tool=fault.tool, way=fault.way, judged_by=by)


def _tool_faults(store: Store) -> ToolFaults:
    records = list(store.current_records())
    rows = [
        FaultRow(
            agent=row.agent,
            tool=row.tool,
            outcomes={way: {each.outcome: each.times for each in outcomes(cell)} for way, cell in row.cells.items()},
        )
        for row in fault_rows(records)
    ]
    return ToolFaults(outcomes={each.outcome: each.times for each in outcomes(records)}, tools=rows)


def _drift(thawed: Thawed) -> ReportDrift:
    changes = []
    for change in thawed.changes:
        # A run of another version may have other forms.
        with contextlib.suppress(ValidationError):
            changes.append(DriftChange.model_validate(change))
    return ReportDrift.of(thawed, recorded=thawed.recorded or None, changes=changes)


def _invocations(record: CaseRecord) -> Iterator[ReportInvocation]:
    """Yield an invocation for each turn that took place, then for the other turns of the reference."""
    expected = record.expected or ()
    for number in range(max(len(record.turns), len(expected))):
        turn = record.turns[number] if number < len(record.turns) else None
        reference = expected[number] if number < len(expected) else None
        yield ReportInvocation(
            user=turn.user if turn else (reference or {}).get("user_content") or {},
            expected=reference,
            actual=turn.so_far if turn else None,
            note=turn.note if turn else "",
            inner_calls=None if turn is None or turn.inner_calls is None else list(turn.inner_calls),
            metrics=[_turn_metric(result) for result in turn.metrics.values()] if turn else [],
        )


def _turn_metric(result: MetricResult) -> TurnMetric:
    return TurnMetric.of(result, score=_number(result.score), judged_by=judged_by(result.details))


def _case_metric(result: MetricResult, prices: Prices) -> CaseMetric:
    fields = dict(_turn_metric(result))
    tally = result.details.get("tally")
    if prices and isinstance(tally, dict):
        fields["details"] = {**result.details, "tally": {**tally, "cost": criterion_cost(result, prices)}}
    return CaseMetric(**fields, threshold=_number(result.threshold))


def _repeats(case: CaseRepeats) -> ReportRepeats:
    ref, rate = case.ref, case.rate
    return ReportRepeats(
        agent=ref.agent,
        evalset_file=ref.evalset_file,
        eval_set_id=ref.eval_set_id,
        eval_id=ref.eval_id,
        runs=len(case.records),
        passed=rate.passed,
        counted=rate.total,
        rate=rate.rate,
        low=rate.low,
        high=rate.high,
        pass_hat=[found for k in range(1, rate.total + 1) if (found := case.pass_hat(k)) is not None],
        flaky=case.flaky,
        kind=case.kind,
        until_sure=case.until,
        sure=case.sure,
        criteria=[CriterionRepeats.of(each, varies=each.cause) for each in case.criteria],
        trajectories=[TrajectoryRepeats.of(path, calls=_calls(path.calls)) for path in case.paths],
        answers=case.answers,
    )


def _calls(turns: Iterable[Iterable[tuple[str, str]]]) -> list[list[dict[str, Any]]]:
    return [[{"name": name, "args": json.loads(args)} for name, args in turn] for turn in turns]


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _fields(part: Any) -> dict[str, Any]:
    """Return the fields of a model by JSON name, without copying their values."""
    if not isinstance(part, BaseModel):
        raise TypeError(f"{type(part).__name__} cannot be part of a report")
    found = ((name, value) for name, value in part if name not in _OPTIONAL or value is not None)
    return {"schema" if name == "schema_name" else name: value for name, value in found}


def json_data(value: Any, depth: int = _DEPTH) -> Any:
    """Return a part of the report as JSON data. NaN and infinity become strings, and data below `depth` a note."""
    if isinstance(value, BaseModel):
        value = _fields(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if not depth:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {str(key): json_data(item, depth - 1) for key, item in value.items()}
    return [json_data(item, depth - 1) for item in value]


EXPORTER: Final = Exporter(
    "json", "the JSON report of `run --json`", ".json", lambda run: report_pieces(run.store, run.prices)
)

if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")

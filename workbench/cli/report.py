"""The JSON report of a run: the shape that scripts rely on, and how it is made from the store.

`docs/report.schema.json` is generated from these models (`python -m workbench.cli.report` prints it), and
`docs/report.md` explains it.
"""

import json
import math
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from workbench.cli.refusal import SCHEMA
from workbench.cli.report_parts import Count, Object, Part, Seconds, Words
from workbench.cli.report_repeats import ReportRepeats, report_repeats
from workbench.events import CaseError, CaseStatus, ErrorKind, MetricResult, MetricStatus
from workbench.prices import Prices, case_cost, criterion_cost, total
from workbench.repeats.account import accounts
from workbench.store import CaseRecord, Store, Turn

_NO_PRICES = Prices()
_DEPTH = 200
_TOO_DEEP = f"… [nested deeper than {_DEPTH} levels]"


class ReportError(Part):
    """Why there is no verdict, or why nothing ran."""

    kind: ErrorKind | Literal["usage"]
    """What sort of thing went wrong, for scripts; `usage` only where nothing ran."""
    message: Words
    """One sentence, the cause first."""
    hint: Words
    """The way out, or empty."""
    traceback: Words
    """The agent's own traceback where there is one, or empty."""


class ReportUsage(Part):
    """What the case cost; zero where nothing was reported."""

    model_calls: Count
    input_tokens: Count
    output_tokens: Count
    judge_calls: Count
    judge_calls_cached: Count
    judge_input_tokens: Count
    judge_output_tokens: Count
    judge_cost: Annotated[float, Field(ge=0)] | None
    """Money for its judges and its simulated user, in the report's `currency`; null where a price or a number of tokens
    is not known."""


class TurnMetric(Part):
    """A criterion's verdict over one turn."""

    name: Words
    score: float | None
    """Not rounded; null where there is none."""
    status: MetricStatus
    reason: Words
    """One sentence for people, or empty."""
    details: Object
    """The explanation as data; its shape belongs to the criterion."""


class CaseMetric(Part):
    """A criterion's verdict over a case."""

    name: Words
    score: float | None
    """Not rounded; null where there is none."""
    threshold: float | None
    """The score that passes; null for what is only informational."""
    status: MetricStatus
    reason: Words
    """One sentence for people, or empty."""
    details: Object
    """The explanation as data; its shape belongs to the criterion."""


class ReportInvocation(Part):
    """One turn of the conversation; `expected` and `actual` are ADK invocations with snake_case keys."""

    user: Object
    """What the user said: ADK Content."""
    expected: Object | None
    """The reference; null for a scenario, and for a turn beyond the reference."""
    actual: Object | None
    """What the agent did, as far as it came; null if the turn did not begin."""
    note: Words
    """What an ADK invocation has no place for, such as the error code of a model that gave no answer; or empty."""
    metrics: list[TurnMetric]


class ReportCase(Part):
    """One execution of one case. One that could not start stands here too, with its `error`."""

    agent: Words
    """The agent's name; empty if the evalset belongs to none."""
    evalset_file: Words
    """Relative to `root`, with `/`."""
    eval_set_id: Words
    eval_id: Words
    """Empty for an entry that stands for a file that cannot be read."""
    repeat: Annotated[int, Field(ge=1)]
    """Counts from 1."""
    status: CaseStatus
    error: ReportError | None
    config_file: Words | None
    """The file with the criteria, relative to `root`; null for the defaults."""
    duration_seconds: Seconds
    usage: ReportUsage
    metrics: list[CaseMetric]
    invocations: list[ReportInvocation]
    scenario: Object | None
    """ADK's ConversationScenario where the user is simulated, else null."""
    rubrics: list[Object]
    """The case's own; those of a turn stand in its `expected`."""


class Summary(Part):
    """How many cases have which status; each repeat counts."""

    total: Count
    passed: Count
    failed: Count
    error: Count
    not_evaluated: Count


class Report(Part):
    """One run."""

    schema_name: Annotated[Literal["agent-workbench/report/1"], Field(alias="schema")]
    run_id: Words
    root: Words
    """Absolute path of the folder that the paths in the report are relative to."""
    started: Words
    """UTC, ISO 8601."""
    duration_seconds: Seconds
    summary: Summary
    cases: list[ReportCase]
    """In the order of the plan."""
    repeats: list[ReportRepeats]
    """One for each case that was executed more than once (with `--until-sure` for every case), in the order of the
    plan; see docs/repeats.md."""
    scored_from: Words | None
    """The run whose transcripts were scored again; null where the agents ran."""
    judge_cost: Annotated[float, Field(ge=0)] | None
    """What the judges of all cases cost, in `currency`; null where that of any case is."""
    currency: Words | None
    """That of the user's price table; null without one."""


class Refusal(Part):
    """What stands in the place of a report when nothing ran (exit code 2); written by `workbench.cli.refusal`."""

    schema_name: Annotated[Literal["agent-workbench/report/1"], Field(alias="schema")]
    error: ReportError


def build_report(store: Store, prices: Prices = _NO_PRICES) -> Report:
    """The report of the newest run. A case that has not finished (the run was interrupted, or could not go on) is
    an error of kind `cancelled`. With `prices`, the details of judged criteria say in `tally.cost` what each cost."""
    cases = [_case(record, prices) for record in store.current_records()]
    statuses = [case.status for case in cases]
    summary = Summary(
        total=len(cases),
        passed=statuses.count("passed"),
        failed=statuses.count("failed"),
        error=statuses.count("error"),
        not_evaluated=statuses.count("not_evaluated"),
    )
    run = store.run
    return Report(
        schema_name=SCHEMA,
        run_id=run.run_id,
        root=run.root,
        started=run.started,
        duration_seconds=run.duration_seconds,
        summary=summary,
        cases=cases,
        repeats=[report_repeats(case) for case in accounts(store.current_records(), run.until_sure)],
        scored_from=run.scored_from or None,
        judge_cost=total(case.usage.judge_cost for case in cases) if prices else None,
        currency=prices.currency if prices else None,
    )


def to_bytes(report: Report) -> bytes:
    """The report as one line of JSON in ASCII. JSON has no NaN and no infinity: a score becomes null, a value in an
    invocation or in details becomes the word, as text. What is nested too deeply to be written is cut off."""
    try:
        text = json.dumps(report, allow_nan=False, default=_fields)
    except (ValueError, RecursionError):
        text = json.dumps(_clean(report, _DEPTH), allow_nan=False)
    return (text + "\n").encode("ascii")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of what `--json` writes: a report, or a refusal."""
    from pydantic.json_schema import models_json_schema

    _, definitions = models_json_schema(
        [(Report, "serialization"), (Refusal, "serialization")], ref_template="#/$defs/{model}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agent-workbench report",
        "description": "What `agent-workbench run --json` writes: a report, or why nothing ran.",
        "oneOf": [{"$ref": "#/$defs/Report"}, {"$ref": "#/$defs/Refusal"}],
        **definitions,
    }


def _case(record: CaseRecord, prices: Prices) -> ReportCase:
    ref = record.ref
    state = record.state
    error = record.error
    if state == "queued" or state == "running":
        began = "before it started" if state == "queued" else "while it was running"
        state, error = "error", error or CaseError("cancelled", f"the run ended {began}")
    return ReportCase(
        agent=ref.agent,
        evalset_file=ref.evalset_file,
        eval_set_id=ref.eval_set_id,
        eval_id=ref.eval_id,
        repeat=ref.repeat,
        status=state,
        error=_error(error) if error else None,
        config_file=record.planned.config_file,
        duration_seconds=record.duration_seconds,
        usage=_usage(record, prices),
        metrics=[_case_metric(result, prices) for result in record.metrics.values()],
        invocations=list(_invocations(record)),
        scenario=record.scenario,
        rubrics=list(record.rubrics),
    )


def _usage(record: CaseRecord, prices: Prices) -> ReportUsage:
    counts = {name: getattr(record.usage, name) for name in ReportUsage.model_fields if name != "judge_cost"}
    return ReportUsage(**counts, judge_cost=case_cost(record.metrics.values(), record.simulated, prices))


def _error(error: CaseError) -> ReportError:
    return ReportError(kind=error.kind, message=error.message, hint=error.hint, traceback=error.traceback)


def _invocations(record: CaseRecord) -> Iterator[ReportInvocation]:
    """One a turn: those that happened, and those of the reference that did not."""
    expected = record.expected or ()
    for number in range(max(len(record.turns), len(expected))):
        turn = record.turns[number] if number < len(record.turns) else None
        reference = expected[number] if number < len(expected) else None
        user = turn.user if turn else (reference or {}).get("user_content") or {}
        metrics = [_turn_metric(result) for result in turn.metrics.values()] if turn else []
        note = turn.note if turn else ""
        yield ReportInvocation(user=user, expected=reference, actual=_actual(turn), note=note, metrics=metrics)


def _actual(turn: Turn | None) -> dict[str, Any] | None:
    """The invocation that the turn became, or of a turn that broke off what had happened until then."""
    if turn is None:
        return None
    if turn.actual is not None:
        return turn.actual
    return {"user_content": turn.user, "intermediate_data": {"invocation_events": list(turn.acted)}}


def _turn_metric(result: MetricResult) -> TurnMetric:
    return TurnMetric(
        name=result.name,
        score=_number(result.score),
        status=result.status,
        reason=result.reason,
        details=result.details,
    )


def _case_metric(result: MetricResult, prices: Prices) -> CaseMetric:
    fields = dict(_turn_metric(result))
    tally = result.details.get("tally")
    if prices and isinstance(tally, dict):
        fields["details"] = {**result.details, "tally": {**tally, "cost": criterion_cost(result, prices)}}
    return CaseMetric(**fields, threshold=_number(result.threshold))


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _fields(part: Any) -> dict[str, Any]:
    """The fields of one model under the names of the JSON, without a copy of what they hold."""
    if not isinstance(part, BaseModel):
        raise TypeError(f"{type(part).__name__} has no place in a report")
    return {"schema" if name == "schema_name" else name: value for name, value in part}


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, BaseModel):
        value = _fields(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if not depth:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {str(key): _clean(item, depth - 1) for key, item in value.items()}
    return [_clean(item, depth - 1) for item in value]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")

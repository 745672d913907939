"""The report of `compare --json`: what changed from one run to another, why, and what chance explains.

`docs/compare.schema.json` is generated from the models here.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from workbench.events.events import CaseStatus, MetricResult, MetricStatus
from workbench.exporting.report_shape import Count, Object, Part, Words
from workbench.freshness.changed_files import FileKind
from workbench.results.change_causes import CauseKind
from workbench.results.gate import Gate
from workbench.results.run_comparison import CHANGE_KINDS, ChangedCase, ChangeKind, Comparison
from workbench.results.statistics import Result
from workbench.store.reasons import JudgedBy, judge_name, judged_by

SCHEMA: Final = "agent-workbench/compare/1"
Share = Annotated[float, Field(ge=0, le=1)]
Executions = Annotated[list[int], Field(min_length=2, max_length=2)]
"""Passed and judged executions."""


class CompareRun(Part):
    """One of the two runs."""

    run_id: Words
    started: Words
    """UTC, ISO 8601; empty if it is not known."""
    git: Object
    versions: Object
    models: Object


class CompareCount(Part):
    """The number of executions by change. `unchanged` have none."""

    regression: Count
    fix: Count
    other: Count
    unfinished: Count
    score: Count
    unchanged: Count


class CompareName(Part):
    """A case."""

    agent: Words
    evalset_file: Words
    eval_set_id: Words
    eval_id: Words


class CompareRef(CompareName):
    """One execution of a case."""

    repeat: int


class CompareScore(Part):
    """The result of a criterion in one of the runs."""

    score: float | None
    threshold: float | None
    status: MetricStatus
    reason: Words
    judge: Words | None
    judged_by: JudgedBy | None


class CompareMetric(Part):
    """A criterion whose score or verdict changed. A side is null if the run did not apply it."""

    name: Words
    before: CompareScore | None
    after: CompareScore | None


class CompareCause(Part):
    """A possible cause of a change."""

    kind: CauseKind
    what: Words


class CompareCase(CompareRef):
    """An execution with another verdict or other scores."""

    change: ChangeKind
    before: CaseStatus | None
    """The status in the earlier run; null if the execution did not end."""
    after: CaseStatus | None
    frozen: bool
    place: Words | None
    causes: list[CompareCause]
    metrics: list[CompareMetric]


class CompareFile(Part):
    """A file of an agent that differs between the runs."""

    agent: Words
    path: Words
    kind: FileKind
    lines: list[Words]
    """The first lines of a unified diff; empty if one of the contents is not stored or too long."""


class CompareRates(Part):
    """The pass rates of the cases that both runs judged. Each case counts once."""

    cases: Count
    before: Share
    after: Share
    change: float
    interval: Annotated[list[float], Field(min_length=2, max_length=2)]
    """The 95% interval of the change."""
    p: Share
    """The probability of a difference this large by chance alone."""
    result: Result
    would_show: Share | None
    """The smallest difference that shows in 8 of 10 tries; null if these cases cannot show any."""
    better: Count
    """Cases that pass more often than before."""
    worse: Count
    left_out: dict[Words, Count]
    """Executions that were not judged, by status."""
    cases_left_out: Count


class CompareDrop(CompareName):
    """A case that passes less often than before."""

    before: Executions
    after: Executions
    chance: Share
    """The probability of a drop this large by chance alone."""
    clear: bool
    """Whether the drop is too unlikely to be chance, considering the number of compared cases."""
    flaky: Words | None
    """Where the case both passed and failed; null if it is not known as flaky."""


class CompareNewError(CompareName):
    """A case that ended with an error, or failed with one, and did not before."""

    kind: Words | None
    message: Words | None


class CompareGate(Part):
    """The decision of `--gate`."""

    passed: bool | None
    """False for a loss that chance does not explain, and for new errors; null if no case could be compared."""
    alpha: Share
    verdict: Words
    """The decision and its reason in a sentence."""


class Compare(Part):
    """Two compared runs."""

    schema_name: Annotated[Literal["agent-workbench/compare/1"], Field(alias="schema")]
    a: CompareRun
    b: CompareRun
    summary: CompareCount
    rates: CompareRates | None
    """Null if no case was judged in both runs."""
    drops: list[CompareDrop]
    new_errors: list[CompareNewError]
    left_out: list[CompareName]
    """Cases of both runs that at least one of them did not judge."""
    gate: CompareGate | None
    """Null without `--gate`."""
    cases: list[CompareCase]
    only_in_a: list[CompareRef]
    only_in_b: list[CompareRef]
    not_compared: list[CompareRef]
    """Executions that were replayed in one run only, or in different modes."""
    files: list[CompareFile]
    differences: list[Words]
    """All other differences between the runs, in words."""


def compare_report(found: Comparison, gate: Gate, verdict: str | None) -> dict[str, Any]:
    """Return the report as a JSON object. `verdict` is the gate's decision in a sentence, or None without `--gate`."""
    report = Compare(
        schema_name=SCHEMA,
        a=CompareRun.of(found.before),
        b=CompareRun.of(found.after),
        summary=CompareCount(**{change: found.count(change) for change in CHANGE_KINDS}, unchanged=found.unchanged),
        rates=CompareRates.of(gate.rates) if gate.rates.cases else None,
        drops=[
            CompareDrop.of(
                drop.ref,
                before=drop.before,
                after=drop.after,
                chance=drop.chance,
                clear=drop.is_clear,
                flaky=drop.flaky or None,
            )
            for drop in gate.drops
        ],
        new_errors=[
            CompareNewError.of(one.ref, kind=one.error and one.error.kind, message=one.error and one.error.message)
            for one in gate.new_errors
        ],
        left_out=list(map(CompareName.of, gate.left_out)),
        gate=None if verdict is None else CompareGate(passed=gate.passed, alpha=gate.alpha, verdict=verdict),
        cases=list(map(_changed, found.cases)),
        only_in_a=[CompareRef.of(one.ref) for one in found.only_before],
        only_in_b=[CompareRef.of(one.ref) for one in found.only_after],
        not_compared=[CompareRef.of(one.ref) for one in found.unlike],
        files=list(map(CompareFile.of, found.files)),
        differences=list(found.differences),
    )
    return report.model_dump(by_alias=True)


def _changed(case: ChangedCase) -> CompareCase:
    before, after = case.before, case.after
    return CompareCase.of(
        case.ref,
        change=case.change,
        before=before.status if before.finished else None,
        after=after.status if after.finished else None,
        frozen=after.frozen is not None,
        place=after.machine or None,
        causes=list(map(CompareCause.of, case.causes)),
        metrics=[
            CompareMetric(name=name, before=_score(before.scores.get(name)), after=_score(after.scores.get(name)))
            for name in case.metrics
        ],
    )


def _score(result: MetricResult | None) -> CompareScore | None:
    if result is None:
        return None
    return CompareScore.of(result, judge=judge_name(result.details) or None, judged_by=judged_by(result.details))

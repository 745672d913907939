"""What the JSON report says of cases that were executed more than once."""

import json
from typing import Annotated, Literal

from pydantic import Field

from workbench.exporting.report_parts import Count, Object, Part, Words
from workbench.repeats.account import CaseRepeats


class CriterionRepeats(Part):
    """A criterion over the repeats of a case."""

    name: Words
    passed: Count
    failed: Count
    varies: Literal["agent", "judge", "both", "unknown"] | None
    """Who makes the difference where it passed in some repeats and failed in others; else null."""
    split: Count
    """In how many repeats the votes of the judge disagreed."""
    rejudged: Count
    """How many repeats showed the judge what it scored otherwise in another one."""


class TrajectoryRepeats(Part):
    """The same calls of tools with the same arguments, in several repeats."""

    calls: list[list[Object]]
    """The calls, turn by turn: `name` and `args` of each."""
    times: Count
    passed: Count


class ReportRepeats(Part):
    """The repeats of one case together."""

    agent: Words
    evalset_file: Words
    eval_set_id: Words
    eval_id: Words
    runs: Count
    """How many executions there are."""
    passed: Count
    counted: Count
    """Executions that passed, failed or in which the agent broke off; the others have no verdict."""
    rate: Annotated[float, Field(ge=0, le=1)] | None
    """`passed` / `counted`; null where nothing counts."""
    low: Annotated[float, Field(ge=0, le=1)]
    high: Annotated[float, Field(ge=0, le=1)]
    """The 95 % interval of the rate (Wilson)."""
    pass_hat: list[float]
    """pass^k for k from 1 to `counted`: how likely k executions in a row all pass."""
    flaky: bool
    """Whether some passed and some did not."""
    kind: Literal["stable", "agent", "judge", "both", "unknown"]
    """Who makes a flaky case flaky."""
    until_sure: float | None
    """The pass rate that was to be made sure of; null without `--until-sure`."""
    sure: Literal["above", "below"] | None
    """Whether the rate is surely at or over `until_sure`, or under it; null where that is not sure."""
    criteria: list[CriterionRepeats]
    trajectories: list[TrajectoryRepeats]
    """The most frequent first."""
    answers: Count
    """How many different answers there were."""


def report_repeats(case: CaseRepeats) -> ReportRepeats:
    """The account of a case as the report has it."""
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
        criteria=[
            CriterionRepeats(
                name=each.name,
                passed=each.passed,
                failed=each.failed,
                varies=each.cause,
                split=each.split,
                rejudged=each.rejudged,
            )
            for each in case.criteria
        ],
        trajectories=[
            TrajectoryRepeats(
                calls=[[{"name": name, "args": json.loads(args)} for name, args in turn] for turn in path.calls],
                times=path.times,
                passed=path.passed,
            )
            for path in case.paths
        ],
        answers=case.answers,
    )

"""The shape of the JSON report that scripts rely on."""

from typing import Annotated, Literal

from pydantic import Field

from workbench.agents.ownership import OwnerRule
from workbench.events import CaseStatus, ErrorKind, MetricStatus
from workbench.exporting.report_parts import Count, Object, Part, Seconds, Words
from workbench.judge.base import JudgedBy


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
    judged_by: JudgedBy | None = None
    """`rules` where the judge `heuristic` judged, which is no language model. Only there if a judge was asked."""


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
    judged_by: JudgedBy | None = None
    """`rules` where the judge `heuristic` judged, which is no language model. Only there if a judge was asked."""


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
    attempt: Annotated[int, Field(ge=1)]
    """Counts from 1; 2 where the agent's process was lost under the first attempt without a fault of the case."""
    matched_by: OwnerRule | None
    """How the agent was found; null if the evalset belongs to none, and in runs of earlier versions."""
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
    criteria_changed: list[Words]
    """The criteria that were changed for this run, so that they are not those of `config_file`: a sentence each."""


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


class Summary(Part):
    """How many cases have which status; each repeat counts."""

    total: Count
    passed: Count
    failed: Count
    error: Count
    not_evaluated: Count
    cancelled: Count
    """Stopped by the user, or the run ended before they started."""


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

"""The form of the JSON report that scripts rely on."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, create_model
from pydantic.json_schema import models_json_schema

from workbench.agents.ownership import OwnerRule
from workbench.events.events import CaseStatus, ErrorKind, FaultOutcome, FaultWay, ForkChange, MetricStatus
from workbench.store.reasons import JudgedBy

# Not validated: an ID may contain a lone surrogate, which ASCII JSON preserves as `\ud800`.
Words = SkipValidation[str]
Object = SkipValidation[dict[str, Any]]
Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """An object of the report. Its docstrings are the descriptions in the schema."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, populate_by_name=True)

    @classmethod
    def of(cls, source: object, **others: Any) -> Self:
        """Return a part. Its fields come from `others`, or else from attributes of `source` with the same names."""
        return cls(**{name: getattr(source, name) for name in cls.model_fields if name not in others}, **others)


class ReportError(Part):
    """The error that left a case without a verdict or occurred beside a failed criterion, or why nothing ran."""

    kind: ErrorKind | Literal["usage"]
    """Kind of error, for scripts. `usage` only if nothing ran."""
    message: Words
    """One sentence that begins with the cause."""
    hint: Words
    """How to continue, or empty."""
    traceback: Words
    """The agent's traceback, or empty."""


class ReportUsage(Part):
    """The usage of a case. Numbers are 0 if nothing was reported."""

    model_calls: Count
    input_tokens: Count
    output_tokens: Count
    judge_calls: Count
    judge_calls_cached: Count
    judge_input_tokens: Count
    judge_output_tokens: Count
    judge_cost: Annotated[float, Field(ge=0)] | None
    """Cost of its judges and its simulated user, in the report's `currency`.

    Null if a price or a token count is unknown.
    """


class TurnMetric(Part):
    """A criterion's verdict on one turn."""

    name: Words
    score: float | None
    """The score, not rounded; null if there is none."""
    status: MetricStatus
    reason: Words
    """One sentence for people, or empty."""
    details: Object
    """The explanation as data; its form depends on the criterion."""
    judged_by: JudgedBy | None = None
    """Who judged: `model`, `function` or `rules`. Present only if a judge was asked."""


class CaseMetric(Part):
    """A criterion's verdict on a case."""

    name: Words
    score: float | None
    """The score, not rounded; null if there is none."""
    threshold: float | None
    """The lowest score that passes; null for informational criteria."""
    status: MetricStatus
    reason: Words
    """One sentence for people, or empty."""
    details: Object
    """The explanation as data; its form depends on the criterion."""
    judged_by: JudgedBy | None = None
    """Who judged: `model`, `function` or `rules`. Present only if a judge was asked."""


class ReportFrozen(Part):
    """The replay of a case from its recording."""

    mode: Literal["tools", "all"]
    """`tools` if only tool calls were replayed, `all` if model calls were replayed, too."""
    file: Words
    """Path of the recording, relative to `root`. Empty if the case ended before it was needed."""
    recorded: Words | None
    """The time of the recording: UTC, ISO 8601; null if that is not known."""
    tools: Count
    """Number of tool calls that the recording answered."""
    models: Count
    """Number of model calls that the recording answered."""
    live: Count
    """Number of calls that were made live, because they are not in the recording (`--on-miss live`)."""
    misses: Count
    """Number of calls that are not in the recording and ended the case."""
    reordered: list[Words]
    """Tools whose calls were replayed in another order than recorded, if one of the calls changed the state."""
    drifted: list[Words]
    """The tools whose declaration or source has changed since they were recorded."""
    redeclared: list[Words]
    """The drifted tools whose declaration has changed, but not their source, as far as known."""


class DriftPlace(Part):
    """A place at which a live answer differs from the recorded one. The values are JSON texts, cut if they are long."""

    path: Words
    then: Words | None
    """The recorded value; null if there was none."""
    now: Words | None
    """The live value; null if there is none."""


class DriftChange(Part):
    """A difference from the recording."""

    kind: Literal["changed", "gone", "new", "unknown"]
    """`unknown` if the case ended with an error before this call."""
    about: Literal["call", "declaration", "models"]
    """A tool call, the declaration of a tool, or all model calls together."""
    agent: Words
    tool: Words
    call: Words
    """The call with its arguments as text, or empty."""
    turn: Annotated[int, Field(ge=1)] | None
    """The turn of the call; null unless it is about a call."""
    where: list[DriftPlace]


class ReportDrift(Part):
    """The differences between a live case and its recording (`--thaw`). The numbers count tool calls."""

    file: Words
    """Path of the recording, relative to `root`."""
    recorded: Words | None
    """The time of the recording: UTC, ISO 8601; null if that is not known."""
    same: Count
    changed: Count
    """Calls with another answer, error or effect."""
    gone: Count
    """Recorded calls that the agent no longer makes."""
    new: Count
    """Calls that are not in the recording."""
    unknown: Count
    """Recorded calls that the case did not reach."""
    changes: list[DriftChange]
    """The first 200 differences."""
    why: Words
    """The reason why nothing was compared, or empty."""


class ReportInvocation(Part):
    """A turn of the conversation. `expected` and `actual` are ADK invocations with snake_case keys."""

    user: Object
    """The user's message as ADK Content."""
    expected: Object | None
    """The reference; null for a scenario, and for a turn that the reference does not have."""
    actual: Object | None
    """The agent's turn as far as it was recorded; null if the turn did not begin."""
    note: Words
    """Facts for which an ADK invocation has no field, such as a model's error code, or empty."""
    inner_calls: list[Object] | None = None
    """The calls inside agents that are used as tools. Left out if unknown."""
    metrics: list[TurnMetric]


class ReportFault(Part):
    """The fault that was injected into an execution, and the agent's reaction to it."""

    tool: Words
    """The tool whose first call failed."""
    way: FaultWay
    """How it failed. See docs/faults.md."""
    outcome: FaultOutcome | None
    """The agent's reaction; null if the execution did not finish."""
    reason: Words
    """One sentence for people, or empty."""
    judged_by: JudgedBy | None = None
    """Who judged: `model`, `function` or `rules`. Present only if a judge decided."""
    facts_without_source: list[Words]
    """Figures, dates, times and IDs in the answer that occur in no successful result and no message of the user."""


class ReportFork(Part):
    """The execution that a fork repeats up to a point, and the change from there on."""

    run_id: Words
    """The run of the original execution, or `chat` for a live conversation."""
    repeat: Annotated[int, Field(ge=1)]
    """The repeat number of the original execution."""
    turn: Annotated[int, Field(ge=1)]
    """The turn at which the fork starts."""
    call: Annotated[int, Field(ge=1)] | None
    """The number of the first call, in the whole conversation, that is not replayed.

    Null means the first call of the turn.
    """
    change: ForkChange
    agent: Words
    """The agent whose instruction or model is changed, or empty."""
    text: Words
    """The new message, answer (JSON text), instruction or name of a model, or empty."""


class ReportForMerge(Part):
    """Data about a case that only JUnit and the text summary show. `merge` needs it to write them."""

    criteria: Object
    """The criteria as in the config: a threshold, or an object with options, by name."""
    criteria_source: Words
    """The source of the criteria, as text."""
    simulated: list[Object]
    """The messages and the end of the simulated user, as events of a run."""
    output: dict[str, Words]
    """The last 20,000 characters that the agent printed to `stdout` and to `stderr`."""


class ReportCase(Part):
    """An execution of a case. A case that could not start is included with its `error`."""

    agent: Words
    """The agent's name; empty if the evalset belongs to none."""
    evalset_file: Words
    """Path relative to `root`, with `/`."""
    eval_set_id: Words
    eval_id: Words
    """Empty for an entry about a file that cannot be read."""
    repeat: Annotated[int, Field(ge=1)]
    """Counts from 1."""
    status: CaseStatus
    error: ReportError | None
    frozen: ReportFrozen | None
    """The replay; null if its calls were live."""
    place: Words | None = None
    """The name of the machine on which it ran; null for the machine that started the run."""
    attempt: Annotated[int, Field(ge=1)]
    """Number of the attempt, from 1.

    It is higher if earlier attempts lost their process or their machine through no fault of the case.
    """
    matched_by: OwnerRule | None
    """The rule that found the agent; null if the evalset belongs to none, and in runs of old versions."""
    config_file: Words | None
    """The file with the criteria, relative to `root`; null for the defaults."""
    duration_seconds: Seconds
    usage: ReportUsage
    metrics: list[CaseMetric]
    invocations: list[ReportInvocation]
    scenario: Object | None
    """ADK's ConversationScenario if the user is simulated, else null."""
    rubrics: list[Object]
    """The case's own rubrics. A turn's rubrics are in its `expected`."""
    criteria_changed: list[Words]
    """A sentence for each criterion that was changed for this run, so that it differs from `config_file`."""
    drift: ReportDrift | None = None
    """The differences from its recording. Present only with `--thaw`."""
    fault: ReportFault | None = None
    """The injected fault. Present only in a matrix of tool faults. Its executions are not repeats of their case."""
    fork: ReportFork | None = None
    """The fork that this execution tries.

    Present only in runs of forks, whose executions are not repeats of their case.
    """
    for_merge: ReportForMerge | None = None
    """Present only in the report of a shard. Its form may change."""


class CriterionRepeats(Part):
    """A criterion over the repeats of a case."""

    name: Words
    passed: Count
    failed: Count
    varies: Literal["agent", "judge", "both", "unknown"] | None
    """The cause of the variation if the criterion passed in some repeats and failed in others, else null."""
    split: Count
    """Number of repeats in which the judge's votes disagreed."""
    rejudged: Count
    """Number of repeats in which the judge scored the same input differently than in another repeat."""


class TrajectoryRepeats(Part):
    """The same tool calls, with arguments, in `times` complete repeats. Of these repeats, `passed` passed."""

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
    """Number of executions."""
    passed: Count
    counted: Count
    """Number of executions that passed, failed, or ended in an error of the agent. Others have no verdict."""
    rate: Annotated[float, Field(ge=0, le=1)] | None
    """`passed` / `counted`; null if no repeat counts."""
    low: Annotated[float, Field(ge=0, le=1)]
    """Lower end of the 95% interval of the rate (Wilson)."""
    high: Annotated[float, Field(ge=0, le=1)]
    """Upper end of that interval."""
    pass_hat: list[float]
    """pass^k for k from 1 to `counted`: the probability that k executions all pass."""
    flaky: bool
    """Whether some executions passed and some did not."""
    kind: Literal["stable", "agent", "judge", "both", "unknown"]
    """The cause of the variation; `stable` if there is none."""
    until_sure: float | None
    """The pass rate given by `--until-sure`, else null."""
    sure: Literal["above", "below"] | None
    """The proven side of the rate: `above` means at least `until_sure`. Null if neither is proven."""
    criteria: list[CriterionRepeats]
    trajectories: list[TrajectoryRepeats]
    """The most frequent first."""
    answers: Count
    """Number of distinct answers."""


class FaultRow(Part):
    """A tool in the matrix of tool faults."""

    agent: Words
    tool: Words
    outcomes: dict[FaultWay, dict[FaultOutcome, Count]]
    """Number of executions by kind of failure and by the agent's reaction."""


class ToolFaults(Part):
    """The matrix of tool faults (`--inject matrix`)."""

    outcomes: dict[FaultOutcome, Count]
    """Number of executions by the agent's reaction."""
    tools: list[FaultRow]
    """The tools, in the order of the plan."""


class ReportShard(Part):
    """The part of a plan that was run (`--shard K/N`), and the state of the project in which it ran.

    Reports that differ in more than `index` do not belong to the same run. Digests can be compared, but not verified.
    """

    index: Annotated[int, Field(ge=1)]
    """The K of `--shard K/N`. The shard has the executions K, K+N, K+2N, ... of the plan."""
    count: Annotated[int, Field(ge=1)]
    """The N of `--shard K/N`."""
    executions: Count
    """Number of executions in the whole plan."""
    plan: Words
    """Digest of the whole plan."""
    files: dict[Words, Words]
    """Digests of evalsets, agents' sources, Python judges and recordings, by path relative to `root`."""
    criteria: dict[Words, Words]
    """Digests of criteria by path of their config. The default criteria are under `defaults`."""
    options: Object
    """Options that affect results and differ from their defaults."""
    versions: dict[Words, Words]
    """Versions of `python`, `agent-workbench` and `google-adk`, as far as known."""
    commit: Words
    """The git commit, or empty if it is not known."""


class Summary(Part):
    """Number of cases by status. Each repeat counts."""

    total: Count
    passed: Count
    failed: Count
    failed_with_errors: Count
    """Number of failed cases that also had an error, which is in `error`."""
    error: Count
    not_evaluated: Count
    cancelled: Count
    """Cases that had no result when the user stopped them, the run ended, or their place was lost."""


class Report(Part):
    """The report of a run."""

    schema_name: Annotated[Literal["agent-workbench/report/1"], Field(alias="schema")]
    run_id: Words
    root: Words
    """Absolute path of the folder that the paths in the report are relative to."""
    started: Words
    """UTC, ISO 8601."""
    duration_seconds: Seconds
    summary: Summary
    cases: list[ReportCase]
    """The cases, in the order of the plan."""
    repeats: list[ReportRepeats]
    """One item per case that ran more than once, in the order of the plan.

    With `--until-sure`, every case has one. See docs/repeats.md.
    """
    scored_from: Words | None
    """The run whose transcripts were scored again; null if agents ran."""
    judge_cost: Annotated[float, Field(ge=0)] | None
    """Cost of the judges and simulated users of all cases, in `currency`; null if any part is unknown."""
    currency: Words | None
    """Currency of the user's price table; null without one."""
    warnings: list[Words]
    """Warnings about retiring models, replies from other models, and a run that could not be stored completely."""
    tool_faults: ToolFaults | None = None
    """The matrix of tool faults. Present only with `--inject matrix`."""
    shard: ReportShard | None = None
    """Present only with `--shard`."""


class Refusal(Part):
    """The output instead of a report if nothing was done (exit code 2). Written by `workbench.cli.refusal`."""

    error: ReportError


def output_schema(model: type[Part], title: str, description: str = "") -> dict[str, Any]:
    """Return the JSON Schema for the `--json` output of a command: a report of this model, or a refusal.

    A refusal has the schema name of the report.
    """
    name: Any = (model.model_fields["schema_name"].annotation, Field(alias="schema"))
    refusal = create_model("Refusal", __base__=Refusal, __doc__=Refusal.__doc__, schema_name=name)
    both: list[tuple[type[BaseModel], Literal["serialization"]]] = [
        (model, "serialization"),
        (refusal, "serialization"),
    ]
    _, definitions = models_json_schema(both, ref_template="#/$defs/{model}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **({"description": description} if description else {}),
        "oneOf": [{"$ref": f"#/$defs/{model.__name__}"}, {"$ref": "#/$defs/Refusal"}],
        **definitions,
    }

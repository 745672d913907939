"""The events of a run, as frozen dataclasses. `workbench.events.event_json` has their JSON form.

The engine publishes these objects, the database stores them, and tests replay them into a `Store`. `at` is the time in
seconds since the run started. Invocations and contents are ADK's JSON with snake_case keys.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.events.shards import Shard

MetricStatus: TypeAlias = Literal["passed", "failed", "error", "not_evaluated", "not_applicable", "informational"]
Sources: TypeAlias = dict[str, dict[str, Any]]
"""Agent → path of one of its files, relative to the root → digest without secrets (BLAKE2b, 16 bytes)."""
InnerCalls: TypeAlias = tuple[dict[str, Any], ...] | None
"""The calls of a turn inside agents that are used as tools, or None if they were not recorded.

Each is `{"call", "tool", "agent", "name", "args"}`: the ID and the tool of the outer call, then the agent, the name and
the arguments of the inner call. If ADK hides the calls inside of a tool, it is `{"call", "tool", "hidden": True}`.
"""
CaseStatus: TypeAlias = Literal["passed", "failed", "error", "not_evaluated", "cancelled"]
ErrorKind: TypeAlias = Literal[
    "agent_raised",  # the agent's or a tool's own exception
    "import_failed",  # the agent's module could not be imported
    "no_agent",  # the evalset belongs to no agent
    "no_framework",  # google-adk is missing in the agent's interpreter
    "timeout",
    "crashed",  # the process died: signal, os._exit, out of memory
    "too_large",  # an answer over 16 MiB
    "output_flood",  # more printed than is kept
    "turn_count",  # turns made ≠ turns expected, or a turn without any event
    "cancelled",  # the user stopped it, or the run ended before it was done: no error, see `CaseFinished`
    "broken_file",  # the evalset cannot be read
    "config",  # the criteria cannot be read
    "simulator",
    "frozen_miss",  # the agent made a call that its recording does not have
    "frozen_file",  # the recording cannot be read
    "fork_diverged",  # the part before a fork differs from the recording
    "off_recording",  # after an injected fault, the agent made a call that its recording does not have
    "attempt_lost",  # each attempt at the case was lost with its machine or the connection to it
    "judge",
    "quota",
    "metric_crashed",
    "internal",  # a fault of the workbench itself
]

FaultWay: TypeAlias = Literal[
    "error",  # the call raises an exception
    "timeout",  # the call raises TimeoutError
    "error_answer",  # the call answers that it failed, without raising
    "no_answer",  # the call answers null
    "malformed",  # the call answers the first half of the answer's JSON, as text
]
FaultOutcome: TypeAlias = Literal[
    "crashed",  # the conversation ended in an error of the agent
    "made_up",  # the answer states what only the failed call could have told
    "off_recording",  # the agent made a call that its recording does not have
    "silent",  # the answer neither reports the fault nor makes anything up
    "reported",  # the answer tells the user that something failed
    "recovered",  # a later call of the turn gave the facts of the answer
    "not_evaluated",  # neither rules nor a judge could decide
    "no_result",  # the conversation ended for another reason
    "cancelled",  # the case was cancelled
    "not_called",  # the agent did not call the tool
]

ForkChange: TypeAlias = Literal["nothing", "message", "answer", "instruction", "model"]
"""The part that a fork changes: nothing, the user's message, a tool's answer, or an agent's instruction or model."""

CaseName: TypeAlias = tuple[str, str]
"""A case as (path of its evalset relative to the root, case ID)."""


@dataclass(frozen=True, slots=True, order=True)
class CaseRef:
    """The identity of one execution of one case.

    `agent` is the agent's name, or "" if the evalset belongs to none. `evalset_file` is relative to the root, with "/".
    `repeat` counts from 1. For a file that cannot be read, `eval_id` is "".
    """

    agent: str
    evalset_file: str
    eval_set_id: str
    eval_id: str
    repeat: int = 1

    def __hash__(self) -> int:
        # A large run computes this millions of times. These three of the five fields distinguish nearly all
        # executions, also those of broken files (without ids) and of evalsets that share their ids.
        return hash((self.evalset_file, self.eval_id, self.repeat))

    @property
    def name(self) -> CaseName:
        """The case, without the repeat."""
        return self.evalset_file, self.eval_id

    @property
    def label(self) -> str:
        """`agent/eval_set_id/eval_id` (no agent: `?`), and `#repeat` from the second repeat on. Raw text."""
        name = "/".join(part for part in (self.agent or "?", self.eval_set_id, self.eval_id) if part)
        return name if self.repeat == 1 else f"{name}#{self.repeat}"


@dataclass(frozen=True, slots=True)
class CaseError:
    """The reason why a case or a metric has no verdict.

    `message` is one sentence that starts with the cause. `hint` tells the user how to continue.
    """

    kind: ErrorKind
    message: str
    hint: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens of a case. Numbers that were not reported are 0."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    judge_calls: int = 0
    """Calls to judges, the evaluation service and simulated users, without retries and cached answers."""
    judge_calls_cached: int = 0
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, in and out: those of the agent, the simulated user and the judges."""
        return self.input_tokens + self.output_tokens + self.judge_input_tokens + self.judge_output_tokens

    @property
    def lacks_tokens(self) -> bool:
        """Whether the agent called models, but none of them reported tokens."""
        return self.model_calls > 0 and self.input_tokens + self.output_tokens == 0


@dataclass(frozen=True, slots=True)
class MetricResult:
    """The verdict of one criterion on a case or on one of its turns.

    `reason` is one sentence for users. `details` is the explanation as JSON data, whose shape is documented in the
    module of the metric.
    """

    name: str
    status: MetricStatus
    score: float | None = None
    threshold: float | None = None
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolFault:
    """A fault to be injected into the first call of a tool."""

    tool: str
    way: FaultWay


@dataclass(frozen=True, slots=True)
class FaultHandling:
    """The agent's reaction to an injected fault.

    `reason` is one sentence for users. If a judge decided, `details` has the judge and its questions, in the shape of a
    metric's details. `facts_without_source` are figures, dates, times and IDs of the answer that are neither in a
    successful result nor in a message of the user.
    """

    outcome: FaultOutcome
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    facts_without_source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForkOf:
    """The execution that a fork repeats up to a certain point, and the change made at that point."""

    run_id: str
    """The ID of the run of the execution, or `chat` for a live conversation."""
    repeat: int
    """The repeat of the execution, counted from 1."""
    turn: int
    """The turn in which the change is made, counted from 0."""
    call: int = 0
    """The call at which the fork leaves the recording, counted from 1, or 0 for the start of the turn."""
    change: ForkChange = "nothing"
    agent: str = ""
    """The agent whose instruction or model is changed."""
    text: str = ""
    """The new message, answer (JSON text), instruction or name of a model."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A planned execution of a case.

    `criteria_source` is a text that says which criteria apply and why. `config_file` is relative to the root, or None
    for the default criteria.
    """

    case: CaseRef
    config_file: str | None
    criteria_source: str
    criteria_changed: tuple[str, ...] = ()
    """One text for each criterion that the user changed for this run."""
    matched_by: str = ""
    """The rule that matched the agent: `folder`, `app_name`, `choice`, `location`, `given`, or "" if none is known."""
    text: str = ""
    """A digest of the case's text in the evalset, or "" if it is not known."""
    fault: ToolFault | None = None
    """The fault to be injected, or None. An execution with a fault does not count as a repeat of the case."""
    fork: ForkOf | None = None
    """The fork that this execution tries, or None. A fork does not count as a repeat of the case."""

    @property
    def is_apart(self) -> bool:
        """Whether the execution has a fault or a fork, so that it counts for no verdict, rate or trend of the case."""
        return self.fault is not None or self.fork is not None


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The start of a run: its plan, and all that is needed to compare or resume it."""

    run_id: str
    root: str
    started: str
    """UTC, ISO 8601 with a trailing Z."""
    cases: tuple[PlannedCase, ...]
    scored_from: str = ""
    """The run whose transcripts are scored again, or several joined by ", ". It is "" if the agents run."""
    versions: dict[str, Any] = field(default_factory=dict)
    """Package → version, as far as known. Like the fields up to `inputs`, it is empty in a run read from a report."""
    models: dict[str, Any] = field(default_factory=dict)
    """Agent → names of models in its sources."""
    sources: Sources = field(default_factory=dict)
    """The agents' files when the run began."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """Inputs of the verdicts, as far as they are known yet (`workbench.store.inputs`)."""
    until_sure: float | None = None
    """The pass rate to establish by repeating cases, or None for a fixed number of repeats."""
    shard: Shard | None = None
    """The shard of the plan that is run, or None for the whole plan."""


@dataclass(frozen=True, slots=True)
class LostAttempt:
    """An attempt at a case that was lost with its machine, or with the connection to it."""

    attempt: int
    """Counted from 1."""
    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class CaseStarted:
    """The start of an attempt at a case, with everything needed to score it again later.

    `expected` holds one ADK invocation for each turn, or None for a scenario. `criteria` maps a name to its JSON value
    in the config, or to the default. `scenario` has its persona in full. `rubrics` are the case's own, and
    `custom_metrics` those of the config.
    """

    case: CaseRef
    at: float
    expected: tuple[dict[str, Any], ...] | None
    criteria: dict[str, Any]
    scenario: dict[str, Any] | None = None
    rubrics: tuple[dict[str, Any], ...] = ()
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    simulator: dict[str, Any] | None = None
    """The config's `user_simulator_config`."""
    attempt: int = 1
    """Counted from 1. Results of earlier attempts are void."""
    session: dict[str, Any] | None = None
    """The case's `session_input`, {} if it has none; None if it is not known."""
    final_session_state: dict[str, Any] | None = None
    dataset_case: dict[str, Any] | None = None
    """The case as a dataset of google-agents-cli has it, for its metrics; None in evalsets."""
    lost: tuple[LostAttempt, ...] = ()
    """Earlier attempts that were lost on other machines."""


@dataclass(frozen=True, slots=True)
class CasePlaced:
    """The placement of the current attempt at a case on another machine. Cases on this machine have no such event."""

    case: CaseRef
    machine: str


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """The loss of the current attempt at a case. All of its events are void, and the case starts again."""

    case: CaseRef
    lost: LostAttempt


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The start of a turn. `user` is the user's message, an ADK content."""

    case: CaseRef
    turn: int
    """Counted from 0."""
    user: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentActed:
    """One step of the agent during a turn. `acted` is an ADK invocation event (author, content)."""

    case: CaseRef
    turn: int
    acted: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The end of a turn. `actual` is the finished ADK invocation.

    `note` is a remark for the user, such as the error code of a model that returned no answer.
    """

    case: CaseRef
    turn: int
    actual: dict[str, Any]
    note: str = ""
    usage: Usage = field(default_factory=Usage)
    """The usage of the case up to the end of this turn, zero if it is not known."""
    state: dict[str, Any] | None = None
    """The session state after the turn, or None if it is not needed or not known."""
    inner_calls: InnerCalls = None


@dataclass(frozen=True, slots=True)
class SpansRecorded:
    """The spans of a turn: the duration of each model and tool call.

    `spans` is JSON text that is parsed only when it is shown (`workbench.store.spans`). `pieces` has requests and
    replies as JSON text, by digest. Once they are stored with a run, `pieces` is empty, `kept_in` is the ID of that
    run, and `kept` has the number under which each digest is stored, as JSON text.
    """

    case: CaseRef
    turn: int
    spans: str
    pieces: dict[str, str] = field(default_factory=dict)
    kept: str = ""
    kept_in: str = ""


@dataclass(frozen=True, slots=True)
class CallsRecorded:
    """The calls of tools and models in a turn, with everything that is needed to replay them.

    `calls` is JSON text, whose shape is in `docs/worker-protocol.md`. Arguments, answers and effects are pieces,
    which are stored like those of `SpansRecorded`, but never cut. A piece that the spans of the case have, too, may be
    stored only there.
    """

    case: CaseRef
    turn: int
    calls: str
    pieces: dict[str, str] = field(default_factory=dict)
    kept: str = ""
    kept_in: str = ""


@dataclass(frozen=True, slots=True)
class UserSimulated:
    """The simulated user's decision before `turn`: a message, or the end of the conversation.

    `ended` is "" for a message. `question` is the question to the model with its replies
    (`workbench.judges.base.record`), or {} if no model was called, as for the starting prompt.
    """

    case: CaseRef
    turn: int
    ended: Literal["", "stop_signal", "turn_limit"]
    question: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputCaptured:
    """A text that the agent's process printed, or a warning about its cleanup (`stderr`)."""

    case: CaseRef
    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True, slots=True)
class MetricScored:
    """The verdict of one criterion, with its result for each turn. If it judges no single turns, `turns` is ()."""

    case: CaseRef
    result: MetricResult
    turns: tuple[MetricResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Frozen:
    """The replay of a case from its recording, with numbers of calls."""

    mode: Literal["tools", "all"]
    file: str = ""
    """The path of the recording, relative to the root. The file may not exist."""
    recorded: str = ""
    """The time of the recording in UTC, ISO 8601 with a trailing Z, or "" if it is not known."""
    tools: int = 0
    """Calls of tools that the recording answered."""
    models: int = 0
    """Calls of models that the recording answered."""
    live: int = 0
    """Calls that were made live because they are not in the recording."""
    misses: int = 0
    """Calls that ended the case because they are not in the recording."""
    reordered: tuple[str, ...] = ()
    """Tools whose calls were replayed in another order than recorded although one of them changed the state, sorted."""
    drifted: tuple[str, ...] = ()
    """Tools whose declaration or source has changed since the recording, sorted."""
    redeclared: tuple[str, ...] = ()
    """Tools in `drifted` of which only the declaration is known to have changed, sorted."""


@dataclass(frozen=True, slots=True)
class Thawed:
    """The differences between a live case and its recording, with counts of tool calls.

    Each of `changes` is `{"kind", "about", "agent", "tool", "call", "turn", "where": [{"path", "then", "now"}]}`.
    `kind` is the name of a count below, such as `gone`. `about` is `call`, `declaration` or `models`. `turn` counts
    from 1 or is null. The other values are short texts.
    """

    file: str
    """The path of the recording, relative to the root."""
    recorded: str = ""
    """The time of the recording, as in `Frozen`."""
    same: int = 0
    changed: int = 0
    """Calls with another answer, error or effect."""
    gone: int = 0
    """Recorded calls that the agent no longer makes."""
    new: int = 0
    """Calls that are not in the recording."""
    unknown: int = 0
    """Recorded calls that the case did not reach, because it ended with an error."""
    changes: tuple[dict[str, Any], ...] = ()
    why: str = ""
    """The reason why nothing was compared, or ""."""


def drift_count(changes: Iterable[Any]) -> int:
    """Return the number of changes (`Thawed.changes`) that can be accepted into a recording."""
    return sum(isinstance(change, dict) and change.get("kind") in ("changed", "gone", "new") for change in changes)


@dataclass(frozen=True, slots=True)
class CaseFinished:
    """The end of a case. `error` is why the case has no verdict, or an error beside a failed criterion."""

    case: CaseRef
    status: CaseStatus
    error: CaseError | None
    duration_seconds: float
    usage: Usage = field(default_factory=Usage)
    inputs: tuple[int, ...] = ()
    """Inputs of the verdict in addition to those in `CaseStarted`, as numbers of the run's bundles
    (`workbench.store.inputs`); empty if none are known."""
    frozen: Frozen | None = None
    """The replay of the case, or None if all of its calls were live."""
    handling: FaultHandling | None = None
    """The agent's reaction to the fault of its `PlannedCase`, or None without a fault."""
    thawed: Thawed | None = None
    """The differences between a live case and its recording, or None if they were not compared."""
    machine: str = ""
    """The other machine on which the case ran, or "" for this machine."""
    unseen: tuple[str, ...] = ()
    """Kinds of inputs that the case used and that cannot be compared, such as child programs
    (`workbench.worker.project_files.UNSEEN`)."""

    def __post_init__(self) -> None:
        kind = None if self.error is None else self.error.kind
        object.__setattr__(self, "status", "cancelled" if kind == "cancelled" else self.status)


@dataclass(frozen=True, slots=True)
class Noticed:
    """A notice about the whole run, for example about an unsupported setting."""

    level: Literal["info", "warning", "error"]
    message: str
    hint: str = ""
    forecast: bool = False
    """Whether the notice is a forecast, which is no longer needed when the run has ended."""
    in_report: bool = False
    """Whether the report lists the notice among its warnings."""


@dataclass(frozen=True, slots=True)
class JudgeWaits:
    """A pause of a queue that a judge or service has requested. It lasts `seconds` from `at` on (0: it has ended)."""

    model: str
    at: float
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class FilesRead:
    """More files that agents read or wrote during the run."""

    sources: Sources
    bundles: tuple[Any, ...] = ()
    """More bundles of inputs, as JSON (`workbench.store.inputs`)."""
    written: dict[str, list[str]] = field(default_factory=dict)
    """Agent → files that it wrote, which do not count as its inputs."""
    planned: dict[str, list[int]] = field(default_factory=dict)
    """More numbers for `planned` in `RunStarted.inputs`: bundles with files that agents read elsewhere."""


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The continuation of an interrupted run. Ended cases do not run again. From now on, `at` counts from `started`."""

    started: str
    """UTC, ISO 8601 with a trailing Z."""


@dataclass(frozen=True, slots=True)
class RepeatsDropped:
    """Planned executions that are dropped from the run before they start.

    Without `after`, the pass rate of their cases is established, or their cases ask judges and the budget of judge
    calls is spent. With `after`, the run starts no more cases because that execution did not pass (`-x`).
    """

    cases: tuple[CaseRef, ...]
    after: CaseRef | None = None


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The end of a run. `interrupted` is whether it was stopped early."""

    duration_seconds: float
    interrupted: bool = False
    git: dict[str, Any] = field(default_factory=dict)
    """`{"commit": hash, "dirty": whether tracked files are changed}` of the root, or {} if not known."""
    sources: Sources = field(default_factory=dict)
    """More files that the agents read."""
    cancelled: int = 0
    """Number of executions with a `CaseFinished` of the status `cancelled`."""


Event: TypeAlias = (
    RunStarted
    | CaseStarted
    | CasePlaced
    | AttemptLost
    | TurnStarted
    | AgentActed
    | TurnFinished
    | SpansRecorded
    | CallsRecorded
    | UserSimulated
    | OutputCaptured
    | MetricScored
    | CaseFinished
    | Noticed
    | JudgeWaits
    | FilesRead
    | RunResumed
    | RepeatsDropped
    | RunFinished
)

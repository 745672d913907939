"""What can happen in a run, as frozen dataclasses. `workbench.event_json` has their JSON form.

The same objects are what the engine publishes, the journal keeps on disk, and tests replay into a `Store`.
Seconds are floats, `at` counts seconds since the run started, invocations and contents are ADK's JSON with
snake_case keys. Nothing here knows how a run is made or shown.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

MetricStatus: TypeAlias = Literal["passed", "failed", "error", "not_evaluated", "not_applicable", "informational"]
Sources: TypeAlias = dict[str, dict[str, Any]]
"""Agent → path of a file of its, relative to the root → digest (BLAKE2b, 16 bytes) of its content without secrets."""
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
    "cancelled",  # the user stopped it, or the run ended before it started: no error, see `ended_as`
    "broken_file",  # the evalset cannot be read
    "config",  # the criteria cannot be read
    "simulator",
    "judge",
    "quota",
    "metric_crashed",
    "internal",  # a fault of the workbench itself
]

CaseName: TypeAlias = tuple[str, str]
"""An evalset's path relative to the root, and the id of a case."""


@dataclass(frozen=True, slots=True, order=True)
class CaseRef:
    """Which execution of which case: `agent` is the agent's name ("" if the evalset belongs to none), `evalset_file`
    the path relative to the root with "/", `repeat` counts from 1. An entry for a file that cannot be read has an
    empty `eval_id`."""

    agent: str
    evalset_file: str
    eval_set_id: str
    eval_id: str
    repeat: int = 1

    def __hash__(self) -> int:
        # It is asked for some million times in a large run. These three of the five fields tell nearly all apart, also
        # broken files (without ids) and cases of many evalsets that share their ids.
        return hash((self.evalset_file, self.eval_id, self.repeat))

    @property
    def name(self) -> CaseName:
        """The case, whatever the repeat."""
        return self.evalset_file, self.eval_id

    @property
    def label(self) -> str:
        """`agent/eval_set_id/eval_id`, with `#repeat` from the second on: raw, not yet safe for a terminal."""
        name = "/".join(part for part in (self.agent or "?", self.eval_set_id, self.eval_id) if part)
        return name if self.repeat == 1 else f"{name}#{self.repeat}"


@dataclass(frozen=True, slots=True)
class CaseError:
    """Why a case or a metric has no verdict: `message` one sentence with the cause first, `hint` the way out."""

    kind: ErrorKind
    message: str
    hint: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a case cost: calls and tokens, zero where nothing was reported."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    judge_calls: int = 0
    """Calls to judges and to the evaluation service, retries not counted, cached ones neither."""
    judge_calls_cached: int = 0
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One criterion's verdict, over a case or over one of its turns. `reason` is one sentence for people; `details`
    is the explanation as JSON data, its shape documented by the metric's own module."""

    name: str
    status: MetricStatus
    score: float | None = None
    threshold: float | None = None
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of the plan as the front ends need it. `criteria_source` says in words which criteria apply and why;
    `config_file` is relative to the root, None for the defaults."""

    case: CaseRef
    config_file: str | None
    criteria_source: str
    criteria_changed: tuple[str, ...] = ()
    """The criteria that are not those of the file, because the user changed them for this run: in words, one each."""
    matched_by: str = ""
    """How the agent was found: `folder`, `app_name`, `choice`, `location` or `given`; "" where that is not known."""
    text: str = ""
    """A digest of all that the evalset says of the case; "" if it is not known."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins: what is planned, and what must be known to compare it with others or to go on with it."""

    run_id: str
    root: str
    started: str
    """UTC, ISO 8601 with a trailing Z."""
    cases: tuple[PlannedCase, ...]
    scored_from: str = ""
    """The run whose transcripts are scored again (several, joined by ", ", where the screen has them of several); ""
    where the agents ran."""
    versions: dict[str, Any] = field(default_factory=dict)
    """Package → version, as far as known; {} in runs of earlier versions, like all that follows."""
    models: dict[str, Any] = field(default_factory=dict)
    """Agent → the names of models that stand in its sources."""
    sources: Sources = field(default_factory=dict)
    """The agents' files when the run began."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """What its verdicts depend on, as far as it is known yet (`workbench.dependencies.run_inputs`)."""
    until_sure: float | None = None
    """The pass rate that repeats are to make sure of; None: each case is executed as often as planned."""


@dataclass(frozen=True, slots=True)
class CaseStarted:
    """`expected` holds one ADK invocation a turn, None for a scenario; `criteria` is name → the JSON value that
    stands in the config (or the default). With `scenario` (its persona in full), the case's own `rubrics` and
    `custom_metrics` of the config, a stored run can be scored again."""

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
    """Counted from 1. What the attempts before it did is void."""
    session: dict[str, Any] | None = None
    """The case's `session_input`, {} if it has none; None in runs of earlier versions."""
    final_session_state: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user says something: `user` is an ADK content."""

    case: CaseRef
    turn: int
    """Counted from 0."""
    user: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentActed:
    """One step of the agent while a turn runs: `acted` is an ADK invocation event (author, content)."""

    case: CaseRef
    turn: int
    acted: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """`actual` is the ADK invocation that the turn became. `note` tells what the user should know besides, such as
    the error code of a model that answered nothing."""

    case: CaseRef
    turn: int
    actual: dict[str, Any]
    note: str = ""
    usage: Usage = field(default_factory=Usage)
    """What the case cost up to the end of this turn; zero in runs of earlier versions."""


@dataclass(frozen=True, slots=True)
class SpansRecorded:
    """What took how long in a turn. `spans` is JSON text, read only when somebody looks (`workbench.trace.spans`).

    What was asked and answered (pieces, by digest) is JSON text in `pieces`, or, where the run is written, stands at
    the places `kept` (JSON text, again) of the file of the run `kept_in` (`workbench.trace.pieces`)."""

    case: CaseRef
    turn: int
    spans: str
    pieces: dict[str, str] = field(default_factory=dict)
    kept: str = ""
    kept_in: str = ""


@dataclass(frozen=True, slots=True)
class UserSimulated:
    """What the simulated user did before `turn`: said something (`ended` ""), or ended the conversation, by the
    `stop_signal` or the `turn_limit`. `question` is the question asked for it with its replies
    (`workbench.judge.base.record`); {} where none was needed, as for the starting prompt."""

    case: CaseRef
    turn: int
    ended: Literal["", "stop_signal", "turn_limit"]
    question: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputCaptured:
    """What the agent's process printed."""

    case: CaseRef
    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True, slots=True)
class MetricScored:
    """`turns` has one result a turn, or is empty where the metric could not look at single turns."""

    case: CaseRef
    result: MetricResult
    turns: tuple[MetricResult, ...] = ()


def ended_as(status: str, kind: str | None) -> str:
    """Return the status of a case that ended with an error of `kind`: one that was cancelled has no other.

    Journals and reports of earlier versions call it `error`.
    """
    return "cancelled" if kind == "cancelled" else status


@dataclass(frozen=True, slots=True)
class CaseFinished:
    """The end of a case. `error` says why it has no verdict, or None."""

    case: CaseRef
    status: CaseStatus
    error: CaseError | None
    duration_seconds: float
    usage: Usage = field(default_factory=Usage)
    inputs: tuple[int, ...] = ()
    """What the verdict depends on besides what `CaseStarted` says: numbers of the run's bundles of inputs
    (`workbench.dependencies.run_inputs`). None of them in runs of earlier versions."""

    def __post_init__(self) -> None:
        kind = None if self.error is None else self.error.kind
        object.__setattr__(self, "status", ended_as(self.status, kind))


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something about the whole run that the user should read: what is odd, slower or unsupported, and why."""

    level: Literal["info", "warning", "error"]
    message: str
    hint: str = ""
    forecast: bool = False
    """Whether it says what is to come, and so nothing of a run that is over."""


@dataclass(frozen=True, slots=True)
class JudgeWaits:
    """The queue of a judge or service pauses for so many `seconds` from `at` on, because it asked for that; 0: it goes
    on."""

    model: str
    at: float
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class FilesRead:
    """Further files that agents were seen to read or write, while the run goes on."""

    sources: Sources
    bundles: tuple[Any, ...] = ()
    """Further bundles of inputs, as JSON (`workbench.dependencies.record`)."""
    written: dict[str, list[str]] = field(default_factory=dict)
    """Agent → files that it wrote, so that they are none of its inputs."""


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run goes on after it was interrupted; what it has results of is not done again. From here on `at` counts
    from this moment, `started`."""

    started: str
    """UTC, ISO 8601 with a trailing Z."""


@dataclass(frozen=True, slots=True)
class RepeatsDropped:
    """These executions have not begun and are not needed any more: what is wanted of their cases is sure, or the budget
    is spent. They are no part of the run from here on."""

    cases: tuple[CaseRef, ...]


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over, `interrupted` if somebody ended it."""

    duration_seconds: float
    interrupted: bool = False
    git: dict[str, Any] = field(default_factory=dict)
    """`{"commit": hash, "dirty": whether files of it were changed}` of the root, {} where that is not known."""
    sources: Sources = field(default_factory=dict)
    """Further files that the agents were seen to read."""
    cancelled: int = 0
    """How many executions ended cancelled; those that never started are not among them."""


Event: TypeAlias = (
    RunStarted
    | CaseStarted
    | TurnStarted
    | AgentActed
    | TurnFinished
    | SpansRecorded
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

"""The options of a run, the choice of a place, and the error for a wrong request. Cheap to import."""

import math
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from workbench.text.counting import exact_percent

if TYPE_CHECKING:
    from workbench.files.injection_rules import Injection

LOCALLY: Final = "local"
"""The word for this machine."""
DASK: Final = "dask"
"""The word for the cluster that Dask's configuration names."""


@dataclass(frozen=True, slots=True)
class PlaceChoice:
    """The place that the user chose for agents.

    `python` is the agents' interpreter on the workers, or "" for the worker's own.
    """

    word: str = LOCALLY
    """`local`, `dask`, `dask://host:8786`, `tls://host:8786` or a name; "" for the place of the project's settings."""
    python: str = ""
    env: tuple[str, ...] = ()
    """Names of variables that travel, besides those in the agents' `.env`."""
    name: str = ""
    """The name of the place in the settings, or ""."""

    @property
    def is_local(self) -> bool:
        """Whether agents run on this machine as usual."""
        return self.word == LOCALLY

    @property
    def is_known(self) -> bool:
        """Whether the place is this machine or a Dask cluster, and not an unknown name."""
        schemes = ("dask://", "tls://")
        return self.word in (LOCALLY, DASK) or (self.word.startswith(schemes) and self.word not in schemes)

    @property
    def check(self) -> str:
        """The advice to check the place: "`agent-workbench check --on dask` tries each worker"."""
        # A name in the settings stands for the place and its interpreter.
        words = ["--on", self.name or self.word or "PLACE"]
        words += ["--remote-python", self.python] if self.python and not self.name else []
        return f"`agent-workbench check {join(words)}` tries each worker"


RESULT_OPTIONS = {
    "runs": "--runs",
    "timeout": "--timeout",
    "isolation": "--isolation",
    "allow_not_evaluated": "--allow-not-evaluated",
    "use_cache": "--no-cache",
    "all_votes": "--all-votes",
    "max_judge_calls": "--max-judge-calls",
    "until_sure": "--until-sure",
    "frozen": "--frozen",
    "on_miss": "--on-miss",
    "thaw": "--thaw",
}
"""Options that affect the results of a run: field → name on the command line."""

FrozenMode: TypeAlias = Literal["", "tools", "all"]
"""The calls that are answered from recordings: none, those of tools, or those of tools and models."""
OFF = "off"
"""The word for no mode."""
OnMiss: TypeAlias = Literal["error", "live"]
"""The treatment of a call that the recording does not have: the case ends with an error, or the call is made."""
UsageKind: TypeAlias = Literal["usage", "config", "broken_file", "nothing"]

MATRIX = "matrix"
"""The word for a matrix of tool faults."""
MOST_UNTIL_SURE = 50
"""Default limit of repeats for `--until-sure`."""


class UsageFaultError(Exception):
    """A wrong command, named file or config, or a selection without cases. Nothing ran.

    `str(error)` says what is wrong and where, one fault on each line. `hint` says how to continue, for example with the
    nearest name that exists. `kind` is the kind of fault. The texts are not yet safe for a terminal.
    """

    def __init__(self, message: str, hint: str = "", kind: UsageKind = "usage") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(hint)  # An uncaught error prints its notes in the traceback.
        self.kind: UsageKind = kind


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run, with the defaults of the command line.

    Raises:
        UsageFaultError: a number is out of range, or options cannot be used together.
    """

    runs: int = 1
    """Number of repeats of each case."""
    until_sure: float | None = None
    """Stop repeating a case once its pass rate is proven to be above or below this rate; None: always `runs` repeats.

    `runs` is the limit.
    """
    concurrency: int = 8
    """Number of cases whose agents run at the same time."""
    timeout: float = 300.0
    """Seconds that the agent may take for one case, and for its import.

    The time in which a simulated user decides does not count.
    """
    isolation: Literal["case", "run"] = "case"
    """`case`: a process for each case, so that cases do not affect each other; `run`: one for all cases of an
    agent."""
    python: Path | None = None
    """The interpreter of all agents, if the user named one."""
    allow_not_evaluated: bool = False
    """Whether metrics that are not_evaluated are ignored in a case's status."""
    use_cache: bool = True
    """Whether stored answers of judges are used. If not, new answers replace them."""
    all_votes: bool = False
    """Whether a judge is asked for all samples, also those that cannot change the verdict."""
    max_judge_calls: int | None = None
    """Limit of calls to judges, the evaluation service and simulated users in this run, without retries."""
    frozen: FrozenMode | None = None
    """The calls that are answered from the recordings of the cases; None: as the project's setting says."""
    project_frozen: FrozenMode | None = None
    """The project's setting for `frozen` when the plan was made; None: unknown. A later change of it counts."""
    on_miss: OnMiss = "error"
    """The treatment of calls that a recording does not have."""
    inject: "Injection | Literal['matrix'] | None" = None
    """Faults to inject into calls of tools, or `matrix`: each tool of each case fails once in each way."""
    exit_first: bool = False
    """Whether no case starts after the first that did not pass. Cases that have not started are left out of the run.

    With `until_sure`, single repeats do not count: a case does not pass if its rate is proven too low, or if nothing is
    proven.
    """
    waits_for_verdicts: bool = False
    """Whether an execution keeps its slot until it is scored, so that `try --max-cost` can stop the next ones."""
    thaw: bool = False
    """Whether the calls of live cases are compared with their recordings."""
    place: PlaceChoice | None = None
    """The place where agents run; None: as the project's settings say, else on this machine."""

    def __post_init__(self) -> None:
        _refuse_unknown_words(self)
        if self.thaw and (self.frozen or self.inject is not None):
            what = "--frozen" if self.frozen else "--inject"
            raise UsageFaultError(f"--thaw runs live, so it cannot be used with {what}", f"Leave out --thaw or {what}")
        if self.runs < 1:
            raise UsageFaultError(f"--runs must be at least 1, not {self.runs}")
        if self.until_sure is not None and not 0 < self.until_sure < 1:
            rate = self.until_sure / 100
            hint = f"{rate:g} means {exact_percent(rate)}" if 0.01 < rate < 1 else ""
            raise UsageFaultError(f"--until-sure must be above 0 and under 1, not {self.until_sure:g}", hint)
        if self.concurrency < 1:
            raise UsageFaultError(f"--concurrency must be at least 1, not {self.concurrency}")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise UsageFaultError(f"--timeout must be a number of seconds above 0, not {self.timeout}")
        if self.max_judge_calls is not None and self.max_judge_calls < 0:
            raise UsageFaultError(f"--max-judge-calls must be at least 0, not {self.max_judge_calls}")
        if self.inject is not None and self.frozen == "all":
            message = "--inject cannot be used if the answers of models are frozen, because models see the faults"
            raise UsageFaultError(message, "Use --frozen=tools")
        if self.inject == MATRIX and (self.runs > 1 or self.until_sure is not None):
            message = "--inject matrix runs each fault once, so it cannot be used with --runs or --until-sure"
            raise UsageFaultError(message)


def _refuse_unknown_words(options: RunOptions) -> None:
    if options.frozen is not None and options.frozen not in get_args(FrozenMode):
        raise UsageFaultError(f'frozen must be "tools", "all", "" (live) or None, not {options.frozen!r}')
    if options.on_miss not in get_args(OnMiss):
        raise UsageFaultError(f'on_miss must be "error" or "live", not {options.on_miss!r}')


def stored_options(options: RunOptions) -> dict[str, Any]:
    """Return the options that affect the results of a run as JSON values, by the names of their fields."""
    found = {name: getattr(options, name) for name in RESULT_OPTIONS}
    found["frozen"] = options.frozen or ""
    if options.project_frozen is not None:
        found["project_frozen"] = options.project_frozen
    if options.inject is not None:
        found["inject"] = options.inject if isinstance(options.inject, str) else options.inject.name
    return found if options.python is None else {**found, "python": str(options.python.absolute())}

"""What the user asked of a run, and how a wrong request is refused."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

RESULT_OPTIONS = {
    "runs": "--runs",
    "timeout": "--timeout",
    "isolation": "--isolation",
    "allow_not_evaluated": "--allow-not-evaluated",
    "use_cache": "--no-cache",
    "all_votes": "--all-votes",
    "max_judge_calls": "--max-judge-calls",
    "until_sure": "--until-sure",
}
"""The options that matter to the results of a run, by their names on the command line."""

UsageKind: TypeAlias = Literal["usage", "config", "broken_file", "nothing"]

MOST_UNTIL_SURE = 50
"""How often a case is executed at most until something is sure, where nobody says it."""


class UsageFaultError(Exception):
    """The command, a file named on it or a config is wrong, or there is nothing to run; and nothing ran.

    `str(error)` is for people and names what is wrong and where, one fault a line; `hint` the way out, such as the
    nearest name that exists; `kind` which of these it is. All of it is raw: not yet safe for a terminal.
    """

    def __init__(self, message: str, hint: str = "", kind: UsageKind = "usage") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(hint)  # A program that does not catch it ends with a traceback, which shows notes.
        self.kind: UsageKind = kind


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run; the defaults are those of the command line.

    Raises:
        UsageFaultError: a number that makes no sense.
    """

    runs: int = 1
    """How often each case is executed: repeats 1 … runs."""
    until_sure: float | None = None
    """A case is executed only until it is sure that this share of its executions passes, or fewer do; `runs` times at
    most. None: `runs` times."""
    concurrency: int = 8
    """How many cases have their agent working at the same time."""
    timeout: float = 300.0
    """Seconds that the agent may take in one case, from its start to its last turn (without those in which a simulated
    user makes up its mind), and for importing an agent."""
    isolation: Literal["case", "run"] = "case"
    """`case`: a process for each case, so that none sees what another left behind; `run`: the cases of an agent share
    one."""
    python: Path | None = None
    """The interpreter of all agents, where the user named one."""
    allow_not_evaluated: bool = False
    """Leave metrics that are not_evaluated out of a case's status."""
    use_cache: bool = True
    """Take answers of judges that are kept instead of asking again; without it, new answers replace the kept ones."""
    all_votes: bool = False
    """Ask a judge for all samples, also those that cannot change the verdict any more."""
    max_judge_calls: int | None = None
    """How many calls judges, the evaluation service and simulated users may cost in this run, retries not counted."""
    in_flight: int = 100
    """How many such calls may be under way at the same time."""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise UsageFaultError(f"--runs must be at least 1, not {self.runs}")
        if self.until_sure is not None and not 0 < self.until_sure < 1:
            hint = f"{self.until_sure / 100:g} means {self.until_sure:g} %" if 1 < self.until_sure < 100 else ""
            raise UsageFaultError(f"--until-sure must be above 0 and under 1, not {self.until_sure:g}", hint)
        if self.concurrency < 1:
            raise UsageFaultError(f"--concurrency must be at least 1, not {self.concurrency}")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise UsageFaultError(f"--timeout must be a number of seconds above 0, not {self.timeout}")
        if self.max_judge_calls is not None and self.max_judge_calls < 0:
            raise UsageFaultError(f"--max-judge-calls must be at least 0, not {self.max_judge_calls}")
        if self.in_flight < 1:
            raise UsageFaultError(f"at least 1 judge call must be allowed at a time, not {self.in_flight}")


def stored_options(options: RunOptions) -> dict[str, Any]:
    """Return the options that matter to the results of a run as JSON values, by the names of their fields."""
    found = {name: getattr(options, name) for name in RESULT_OPTIONS}
    return found if options.python is None else {**found, "python": str(options.python.absolute())}

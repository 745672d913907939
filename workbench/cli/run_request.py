"""What a command line of `run` or `score` asks for."""

from dataclasses import dataclass, field
from pathlib import Path

from workbench.engine.plan.run_options import RunOptions
from workbench.project.targets import Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be written. `json` may be `-` for standard output."""

    json: str | None = None
    junit: Path | None = None
    plain: bool = False
    detailed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(Wanted):
    """What a command line of `run` asks for."""

    targets: Targets
    options: RunOptions = field(default_factory=RunOptions)
    watch: bool = False
    fresh: bool = False

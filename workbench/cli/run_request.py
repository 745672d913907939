"""What a command line of `run` asks for."""

from dataclasses import dataclass, field
from pathlib import Path

from workbench.engine.plan.options import RunOptions
from workbench.project.targets import Targets


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a command line of `run` asks for. `json` may be `-` for standard output."""

    targets: Targets
    options: RunOptions = field(default_factory=RunOptions)
    json: str | None = None
    junit: Path | None = None
    plain: bool = False
    detailed: bool = False
    watch: bool = False
    fresh: bool = False

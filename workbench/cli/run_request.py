"""The requests that command lines of `run` and `score` describe."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.files.run_options import RunOptions

if TYPE_CHECKING:
    from workbench.project.targets import Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of a run. `json` is a path, or `-` for standard output."""

    json: str | None = None
    junit: Path | None = None
    plain: bool = False
    detailed: bool = False
    quiet: bool = False
    """Whether only the summary is printed, without lines of single cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(Outputs):
    """The request of one `run` command line."""

    targets: "Targets"
    options: RunOptions = field(default_factory=RunOptions)
    watch: bool = False
    fresh: bool = False

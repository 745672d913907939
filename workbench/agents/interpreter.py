"""The Python that runs an agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`path` is called as it stands (a link into a virtual environment is not resolved, or it would leave the
    environment); `reason` says in words why this one; `warning` what stood in the way of a nearer one, or ""."""

    path: Path
    reason: str
    warning: str = ""

"""What the cases of one run share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.engine.children import Children
from workbench.engine.options import RunOptions
from workbench.engine.secrets import Secrets
from workbench.events import Event


@dataclass(frozen=True)
class RunContext:
    """The run's options and children, where events go, the seconds since it began, what must not be shown, and by an
    agent's name what its judges are asked with (`workbench.engine.judge_environment`)."""

    options: RunOptions
    children: Children
    emit: Callable[[Event], None]
    at: Callable[[], float]
    secrets: Secrets
    environment_of: Callable[[str], Mapping[str, Any]]

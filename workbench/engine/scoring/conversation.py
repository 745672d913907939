"""What is to be scored, and how its judges are asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.metrics.registry import asks
from workbench.model.criteria import Criterion


@dataclass(frozen=True)
class Asking:
    """Who asks: `environment` has the fields of a `workbench.judge.environment.JudgeEnvironment`."""

    environment: Mapping[str, Any] = field(repr=False)
    repeat: int = 1
    all_votes: bool = False


@dataclass
class Conversation:
    """What is to be scored: invocations one a turn, `expected` None for a scenario; `custom` are the config's
    `custom_metrics`, by name. Without `asking` there must be no criterion that asks somebody."""

    criteria: Sequence[Criterion]
    expected: Sequence[dict[str, Any]] | None
    actual: Sequence[dict[str, Any]]
    scenario: dict[str, Any] | None = None
    rubrics: Sequence[dict[str, Any]] = ()
    custom: Mapping[str, Any] = field(default_factory=dict)
    asking: Asking | None = None

    def asks(self, index: int) -> bool:
        """Whether a criterion waits for somebody's answer."""
        name = self.criteria[index].name
        return asks(name, custom=name in self.custom)

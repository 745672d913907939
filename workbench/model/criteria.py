"""Criteria configs: `test_config.json`, `eval_config.json` and the file of `--config`, every shape that ADK reads.

Which names exist and which options a criterion has is not known here: `workbench.metrics.registry` checks that.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.model.faults import Fault

DEFAULTS = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""ADK's, for a run without any config."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of a config."""

    name: str
    threshold: float
    value: Any
    """The JSON value as it stands in the file: a number, text, bool or object."""
    options: dict[str, Any]
    """All keys of an object but `threshold`; known ones in snake_case, others as they are. {} for a number."""


@dataclass(frozen=True)
class CriteriaConfig:
    """A config file, read; `path` None for the defaults."""

    path: Path | None
    criteria: tuple[Criterion, ...]
    """In the order of the file."""
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    user_simulator_config: dict[str, Any] | None = None
    live_model_config: dict[str, Any] | None = None
    faults: tuple[Fault, ...] = ()
    has_criteria: bool = True
    """False where the file has no `criteria` key at all: the defaults apply then. `{"criteria": {}}` means none."""

    @property
    def broken(self) -> bool:
        """Whether the file has a fault that stops a run before it starts."""
        return any(fault.severity == "error" for fault in self.faults)

    def place(self, json_path: str) -> tuple[int, int]:
        """Line and column (from 1) of the value at a path like `criteria.response_match_score.threshold`; of its
        nearest parent where there is no such value; (0, 0) for the defaults."""
        return (0, 0)


def read_config(path: Path) -> CriteriaConfig:
    """Read a criteria config. Never raises: a file that is missing, unreadable or wrong has faults."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return CriteriaConfig(path, (), faults=(Fault(path, 0, 0, "", str(error)),))
    criteria = tuple(_criterion(name, value) for name, value in content.get("criteria", {}).items())
    return CriteriaConfig(path, criteria, has_criteria="criteria" in content)


def default_config() -> CriteriaConfig:
    """What applies where no config is found: trajectory 1.0, response match 0.8."""
    return CriteriaConfig(None, tuple(_criterion(name, value) for name, value in DEFAULTS.items()))


def _criterion(name: str, value: Any) -> Criterion:
    if isinstance(value, dict):
        options = {key: item for key, item in value.items() if key != "threshold"}
        return Criterion(name, float(value["threshold"]), value, options)
    return Criterion(name, float(value), value, {})

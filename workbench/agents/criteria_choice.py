"""Which criteria hold for an evalset, and why."""

from dataclasses import dataclass
from pathlib import Path

from workbench.model.criteria import CriteriaConfig, default_config, read_config

CONFIG_NAMES = ("test_config.json", "eval_config.json")


@dataclass(frozen=True)
class CriteriaChoice:
    """The criteria of an evalset and in words where they come from, such as "test_config.json beside the evalset"."""

    config: CriteriaConfig
    reason: str

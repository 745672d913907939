"""Reader of a config's `user_simulator_config`, with the rules of ADK 2.13."""

from collections.abc import Mapping
from typing import Any

from workbench.judge.base import JudgeOptions
from workbench.model.criteria_schema import TextSimulator


class SimulatorConfig(TextSimulator):
    """Settings of a simulated user."""

    @property
    def turn_limit(self) -> int | None:
        """Maximum number of turns, including the starting prompt; None for no limit."""
        return None if self.max_allowed_invocations < 0 else self.max_allowed_invocations

    @property
    def audio(self) -> bool:
        """Whether the user would speak, which is not supported."""
        return self.type == "llm_audio"

    @property
    def judge_options(self) -> JudgeOptions:
        """Model and settings that write the messages, with one reply per message."""
        return JudgeOptions(self.model, dict(self.model_configuration), samples=1)


def read_simulator(data: Mapping[str, Any] | None) -> SimulatorConfig:
    """Read a checked `user_simulator_config`; None gives the defaults. An empty `type` or `model` counts as missing."""
    given = {key: value for key, value in (data or {}).items() if value or key not in ("type", "model")}
    return SimulatorConfig.model_validate(given)

"""A config's `user_simulator_config`, read as ADK 2.13 reads it."""

from collections.abc import Mapping
from typing import Any

from workbench.judge.base import JudgeOptions
from workbench.model.criteria_schema import TextSimulator


class SimulatorConfig(TextSimulator):
    """The settings of a simulated user, and what follows from them."""

    @property
    def turn_limit(self) -> int | None:
        """How many turns there are at most, the starting prompt counted; None for any number."""
        return None if self.max_allowed_invocations < 0 else self.max_allowed_invocations

    @property
    def audio(self) -> bool:
        """Whether the user was to speak, which is not supported."""
        return self.type == "llm_audio"

    @property
    def judge_options(self) -> JudgeOptions:
        """Whom to ask, and how: one reply a message."""
        return JudgeOptions(self.model, dict(self.model_configuration), samples=1)


def read_simulator(data: Mapping[str, Any] | None) -> SimulatorConfig:
    """Read a checked `user_simulator_config`, None for the defaults. An empty `type` or `model` counts as not given."""
    given = {key: value for key, value in (data or {}).items() if value or key not in ("type", "model")}
    return SimulatorConfig.model_validate(given)

"""A config's `user_simulator_config`, read as ADK 2.13 reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from workbench.judge.base import DEFAULT_MODEL, JudgeOptions
from workbench.model.config_rules import either

DEFAULT_MODEL_CONFIGURATION: Mapping[str, Any] = MappingProxyType(
    {"thinking_config": {"include_thoughts": True, "thinking_budget": 10240}}
)
DEFAULT_TURN_LIMIT = 20
AUDIO = "llm_audio"


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """`turn_limit` is None where the number of turns is not limited, and counts the starting prompt otherwise;
    `instructions` a Jinja template of the user's own, None for the workbench's words; `function_calls`: the simulated
    user sees what the agent called and what came back. `audio`: the user was to speak, which is not supported."""

    model: str = DEFAULT_MODEL
    model_configuration: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_MODEL_CONFIGURATION))
    turn_limit: int | None = DEFAULT_TURN_LIMIT
    instructions: str | None = None
    function_calls: bool = False
    audio: bool = False

    @property
    def judge_options(self) -> JudgeOptions:
        """Whom to ask, and how: one reply a message."""
        return JudgeOptions(self.model, self.model_configuration, samples=1)


def read_simulator(data: Mapping[str, Any] | None) -> SimulatorConfig:
    """The settings in a checked `user_simulator_config` (None: there is none), keys in either spelling. Values are
    taken as pydantic takes them for ADK: `"5"` is a number there, `"yes"` a yes."""
    given = dict(data or {})
    limit = _number(either(given, "max_allowed_invocations"))
    configuration = either(given, "model_configuration")
    return SimulatorConfig(
        model=given.get("model") or DEFAULT_MODEL,
        model_configuration=dict(DEFAULT_MODEL_CONFIGURATION) if configuration is None else configuration,
        turn_limit=None if limit < 0 else limit,
        instructions=either(given, "custom_instructions"),
        function_calls=_flag(either(given, "include_function_calls")),
        audio=given.get("type") == AUDIO,
    )


def _number(value: Any) -> int:
    return DEFAULT_TURN_LIMIT if value is None else int(value)


def _flag(value: Any) -> bool:
    return value.lower() in ("1", "true", "t", "yes", "y", "on") if isinstance(value, str) else bool(value)

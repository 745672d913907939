"""Task of a simulated user: ADK's ConversationScenario."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.files.schema import STOP_SIGNAL, TextSimulator
from workbench.judges.base import JudgeOptions
from workbench.judges.personas import Persona, persona_of


@dataclass(frozen=True, slots=True)
class Scenario:
    """Task of a simulated user. `starting_prompt` is the first message, `plan` the goal of the conversation."""

    starting_prompt: str
    plan: str
    persona: Persona | None = None


def read_scenario(data: Mapping[str, Any]) -> Scenario:
    """Read a case's `conversation_scenario`, as the evalset's model or `full_scenario` returns it.

    Raises:
        UnknownPersonaError: It names an unknown persona.
    """
    return Scenario(data["starting_prompt"], data["conversation_plan"], persona_of(data.get("user_persona")))


def full_scenario(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same JSON with a prebuilt persona written out.

    A stored run must not depend on the persona's texts in a later version. An unknown name stays unchanged.
    """
    persona = data.get("user_persona")
    if isinstance(persona, str):
        try:
            found = persona_of(persona)
        except ValueError:
            found = None
        return {**data, "user_persona": found.as_json()} if found is not None else dict(data)
    return dict(data)


def stops(text: str) -> bool:
    """Return whether a message ends the conversation: it contains the signal anywhere, in upper or lower case."""
    return STOP_SIGNAL in text.lower()


# Reader of a config's `user_simulator_config`, with the rules of ADK 2.13


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

"""What a simulated user is to do: ADK's ConversationScenario."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.model.criteria_schema import STOP_SIGNAL
from workbench.simulation.personas import Persona, persona_of


@dataclass(frozen=True, slots=True)
class Scenario:
    """`starting_prompt` is the first message, `plan` what the conversation is to reach."""

    starting_prompt: str
    plan: str
    persona: Persona | None = None


def read_scenario(data: Mapping[str, Any]) -> Scenario:
    """A case's `conversation_scenario`, as the evalset's model gives it or as `full_scenario` made it.

    Raises:
        UnknownPersonaError: it names a persona that there is not.
    """
    return Scenario(data["starting_prompt"], data["conversation_plan"], persona_of(data.get("user_persona")))


def full_scenario(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same JSON with the persona in full, where there is one: what is kept of a run must not depend on the words
    of a later version. A name that there is not stays as it is."""
    persona = data.get("user_persona")
    if isinstance(persona, str):
        try:
            found = persona_of(persona)
        except ValueError:
            found = None
        return {**data, "user_persona": found.as_json()} if found is not None else dict(data)
    return dict(data)


def stops(text: str) -> bool:
    """Whether a message ends the conversation: the signal anywhere in it, in any case."""
    return STOP_SIGNAL in text.lower()

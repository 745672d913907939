"""Task of a simulated user (ADK's ConversationScenario), and its persona.

The three prebuilt personas have ADK's names and meaning; their texts are the workbench's own.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from workbench.files.schema import STOP_SIGNAL, TextSimulator
from workbench.judges.base import JudgeOptions


class UnknownPersonaError(ValueError):
    """A scenario that names an unknown persona."""


@dataclass(frozen=True, slots=True)
class Behavior:
    """One trait of a user.

    `behavior_instructions` describe what the user does. `violation_rubrics` describe messages that would contradict the
    trait. Both may contain Jinja, such as `{{ stop_signal }}`.
    """

    name: str
    description: str
    behavior_instructions: tuple[str, ...]
    violation_rubrics: tuple[str, ...]

    def get_behavior_instructions_str(self) -> str:
        """Return the instructions as a list. ADK's templates call the method by this name."""
        return "\n".join(f"- {line}" for line in self.behavior_instructions)

    def get_violation_rubrics_str(self) -> str:
        """Return the rubrics as a list. ADK's templates call the method by this name."""
        return "\n".join(f"- {line}" for line in self.violation_rubrics)


@dataclass(frozen=True, slots=True)
class Persona:
    """A kind of user."""

    id: str
    description: str
    behaviors: tuple[Behavior, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the persona as ADK's UserPersona."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # With lists instead of tuples.
        return data


@dataclass(frozen=True, slots=True)
class Scenario:
    """Task of a simulated user. `starting_prompt` is the first message, `plan` the goal of the conversation."""

    starting_prompt: str
    plan: str
    persona: Persona | None = None


def read_scenario(data: Mapping[str, Any]) -> Scenario:
    """Read a case's `conversation_scenario`, as the evalset's model or `full_scenario` returns it.

    Raises:
        UnknownPersonaError: The scenario names an unknown persona.
    """
    return Scenario(data["starting_prompt"], data["conversation_plan"], persona_of(data.get("user_persona")))


def full_scenario(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's JSON with a prebuilt persona written out.

    A stored run must not depend on the persona's texts in a later version. An unknown name stays unchanged.
    """
    persona = data.get("user_persona")
    if isinstance(persona, str) and persona in PREBUILT:
        return {**data, "user_persona": PREBUILT[persona].as_json()}
    return dict(data)


def stops(text: str) -> bool:
    """Return whether a message ends the conversation: it contains the signal anywhere, in upper or lower case."""
    return STOP_SIGNAL in text.lower()


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
        """Options of the judge that writes the messages, with one reply per message."""
        return JudgeOptions(self.model, dict(self.model_configuration), samples=1)


def read_simulator(data: Mapping[str, Any] | None) -> SimulatorConfig:
    """Read a checked `user_simulator_config`; None gives the defaults. An empty `type` or `model` counts as missing."""
    given = {key: value for key, value in (data or {}).items() if value or key not in ("type", "model")}
    return SimulatorConfig.model_validate(given)


def persona_of(value: str | Mapping[str, Any] | None) -> Persona | None:
    """Return the persona of a scenario's `user_persona`: a prebuilt one by its name, one given in full, or None.

    Raises:
        UnknownPersonaError: There is no persona of that name.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if value not in PREBUILT:
            raise UnknownPersonaError(f"`{value}` is not a prebuilt persona; use one of {', '.join(PREBUILT)}")
        return PREBUILT[value]
    behaviors = tuple(
        Behavior(
            behavior["name"],
            behavior["description"],
            tuple(behavior["behavior_instructions"]),
            tuple(behavior["violation_rubrics"]),
        )
        for behavior in value["behaviors"]
    )
    return Persona(value["id"], value["description"], behaviors)


_STEP_BY_STEP = Behavior(
    "One thing at a time",
    "Brings up the points of the plan one after the other, in the order of the plan.",
    (
        "Ask for one point of the plan, and go to the next one when the agent has dealt with it.",
        "Do not announce what is still to come.",
    ),
    (
        "The message asks for two or more points of the plan at once.",
        "The message goes on to another point although the agent has not dealt with the one before it.",
    ),
)
_ALL_AT_ONCE = Behavior(
    "Says all that matters at once",
    "Gives every detail of a request that the plan holds without waiting to be asked for it.",
    (
        "When you ask for something, add the numbers, names, dates and conditions that the plan gives for it.",
        "Points that belong together go into one message.",
    ),
    ("The message leaves out a detail of the plan that the agent needs for what is being asked.",),
)
_ONLY_WHEN_ASKED = Behavior(
    "Tells details only when asked",
    "Does not know which details matter, and so gives them only when the agent asks.",
    (
        "Say what you want in everyday words, without the details of the plan.",
        "When the agent asks for a detail, give that one, as the plan has it.",
    ),
    (
        "The message gives details of the plan that the agent has not asked for.",
        "The message does not answer a question of the agent that the plan answers.",
    ),
)
_CORRECTS = Behavior(
    "Puts mistakes right",
    "Notices where the agent gets something wrong that the plan has otherwise, and says so.",
    (
        "If the agent misunderstood you, or works with a wrong detail, say what is wrong and what is right.",
        "Say it once and briefly; if the agent repeats the mistake, say it once more.",
    ),
    ("The agent's last answer contradicts the plan, and the message lets it pass without a word.",),
)
_DOES_NOT_CORRECT = Behavior(
    "Does not help the agent",
    "Neither corrects the agent nor tells it how to do its work.",
    (
        "If the agent makes a mistake, leave it uncorrected and go on with the plan.",
        "Never suggest a tool, a way or an answer to the agent.",
    ),
    (
        "The message corrects a mistake of the agent.",
        "The message tells the agent how to do what was asked of it.",
    ),
)
_WONDERS = Behavior(
    "Asks when something is unclear",
    "Is new to all this, and asks what a word or a step means instead of pretending to understand.",
    (
        "If the agent uses a technical term or skips a step, ask in simple words what it means.",
        "Trust what the agent says: you could not tell if it were wrong.",
    ),
    (
        "The message uses terms of the trade that the agent has not used before.",
        "The message corrects the agent on a technical point.",
    ),
)
_TO_THE_LETTER = Behavior(
    "Keeps to the plan to the letter",
    "Says what the plan says and nothing beyond it, so that two conversations can be compared.",
    (
        "Take names, numbers and wishes from the plan as they are.",
        "If the agent asks for something that the plan does not hold, answer that you have no preference.",
    ),
    (
        "The message holds a wish, name or number that is not in the plan.",
        "The message changes something that the plan lays down.",
    ),
)
_TERSE = Behavior(
    "Brief and matter-of-fact",
    "Writes as people do who have done this many times.",
    ("Write one to three short sentences in the terms of the trade, without greeting or thanks.",),
    ("The message is chatty: greetings, thanks, or feelings that the plan does not ask for.",),
)
_CHATTY = Behavior(
    "Friendly and informal",
    "Writes as people talk, in everyday words.",
    ("Write short, informal sentences; being unsure, polite or relieved may show.",),
    ("The message reads like a specification or a command line.",),
)
_NEUTRAL = Behavior(
    "Neutral in tone",
    "Shows neither approval nor annoyance, so that the tone does not steer the agent.",
    ("Write plain sentences without praise, thanks, complaint or urgency.",),
    ("The message praises, thanks, complains or urges.",),
)
_LEAVES = Behavior(
    "Leaves when there is nothing left to do",
    "Ends the conversation as soon as the plan is done, or cannot be done.",
    (
        "When all points of the plan are dealt with, write {{ stop_signal }} and nothing else.",
        "When the agent says for the second time that it cannot help with a point, and no other point is left, write "
        "{{ stop_signal }} and nothing else.",
    ),
    (
        "The message goes on although all points of the plan were dealt with.",
        "The message holds {{ stop_signal }} although a point of the plan is still open.",
    ),
)

PREBUILT: Mapping[str, Persona] = MappingProxyType(
    {
        persona.id: persona
        for persona in (
            Persona(
                "EXPERT",
                "Knows the subject well, knows exactly what they want, and expects the agent to keep up.",
                (_ALL_AT_ONCE, _CORRECTS, _TERSE, _LEAVES),
            ),
            Persona(
                "NOVICE",
                "Does this for the first time, has a wish rather than a specification, and needs to be led.",
                (_STEP_BY_STEP, _ONLY_WHEN_ASKED, _WONDERS, _CHATTY, _LEAVES),
            ),
            Persona(
                "EVALUATOR",
                "Tries the agent out: follows the plan exactly and gives the agent no help it would not get otherwise.",
                (_STEP_BY_STEP, _TO_THE_LETTER, _DOES_NOT_CORRECT, _NEUTRAL, _LEAVES),
            ),
        )
    }
)
"""Personas by ADK's names, in ADK's order."""

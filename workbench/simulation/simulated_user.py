"""A simulated user: its next message, or the end of the conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.judge.base import Judge, JudgeFault, Question, Reply, record, reply_record
from workbench.judge.thoughts import without_thoughts
from workbench.model.template_names import TemplateFaultError
from workbench.simulation.config import SimulatorConfig
from workbench.simulation.history import Line, history
from workbench.simulation.instructions import next_message_question
from workbench.simulation.scenario import Scenario, stops

End: TypeAlias = Literal["stop_signal", "turn_limit"]


@dataclass(frozen=True, slots=True)
class SimulatedMessage:
    """The next message. `question` records how it was made (`workbench.judge.base.record`); {} without a question."""

    text: str
    question: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the conversation: there is no further message."""

    how: End
    question: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """A message that could not be made.

    `message` is one sentence, `hint` the way to fix it. `limited` means that a budget of the user's forbade the
    question.
    """

    message: str
    hint: str = ""
    question: dict[str, Any] = field(default_factory=dict)
    limited: bool = False


Step: TypeAlias = SimulatedMessage | Ended | Failed


def step_without_judge(scenario: Scenario, config: SimulatorConfig, turn_count: int) -> Step | None:
    """Return the step after `turn_count` turns, or None if a judge must decide it.

    The first message and the turn limit need no judge.
    """
    if config.turn_limit is not None and turn_count >= config.turn_limit:
        return Ended("turn_limit")
    if turn_count == 0:
        return Ended("stop_signal") if stops(scenario.starting_prompt) else SimulatedMessage(scenario.starting_prompt)
    return None


class SimulatedUser:
    """The user of one case, played by `judge`."""

    def __init__(self, scenario: Scenario, config: SimulatorConfig, judge: Judge) -> None:
        self._scenario = scenario
        self._config = config
        self._judge = judge
        self._lines: list[Line] = []
        self._turn_count = 0

    def add_turn(self, turn: Mapping[str, Any]) -> None:
        """Add the turn that followed the last message, an ADK invocation."""
        self._lines += history([turn], function_calls=self._config.include_function_calls)
        self._turn_count += 1

    async def next(self) -> Step:
        """Return the user's next step after the turns so far. Only cancellation raises."""
        known = step_without_judge(self._scenario, self._config, self._turn_count)
        if known is not None:
            return known
        try:
            question = next_message_question(self._scenario, self._config, self._lines)
        except TemplateFaultError as error:
            whose = "custom_instructions" if self._config.custom_instructions is not None else "the persona's texts"
            return Failed(f"{whose} cannot be rendered: {error}", "They are Jinja templates, rendered in a sandbox")
        return self._step(question, await self._judge.ask(question))

    def _step(self, question: Question, reply: Reply) -> Step:
        text = "" if _is_cut(reply) else without_thoughts(reply.text or "").strip()
        ended = bool(text) and stops(text)
        unread = "" if text else _why_no_message(reply)
        verdict = "ended" if ended else "said" if text else None
        recorded = record(question, self._judge.identity, [reply_record(1, reply, verdict, unread)])
        if ended:
            return Ended("stop_signal", recorded)
        if text:
            return SimulatedMessage(text, recorded)
        limited = reply.fault is not None and reply.fault.kind == "limit"
        return Failed(f"the simulated user sent no message: {unread}", _hint(reply.fault), recorded, limited)


def _is_cut(reply: Reply) -> bool:
    """Return whether a reply was cut off: half a message is useless, and may lack the stop signal."""
    return reply.fault is not None and reply.fault.kind == "cut"


def _why_no_message(reply: Reply) -> str:
    fault = reply.fault
    if fault is None:
        return "the reply was empty"
    if fault.kind == "cut":
        return f"the reply was cut off ({fault.code})"
    return f"{fault.code}: {fault.message}" if fault.code and fault.code not in fault.message else fault.message


def _hint(fault: JudgeFault | None) -> str:
    match fault and fault.kind:
        case "quota":
            return "The model's quota is used up: try again later, or name another model in user_simulator_config"
        case "cut":
            return "Raise max_output_tokens in model_configuration of user_simulator_config"
        case "limit":
            return "Raise --max-judge-calls"
        case "blocked":
            return "The model refused to play this user: check the plan and the persona"
    return ""

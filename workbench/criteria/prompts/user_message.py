"""The user_message question: is this what the simulated user should say now?

It is also sent about the stop signal, as the message after the last one. Reply: `{"reasoning": str, "verdict": "valid"
| "invalid"}`. Data: `{"plan": str, "starting_prompt": str, "history": [{"role": "user" | "agent", "text": str}],
"message": str, "stop_signal": str, "persona": object | str | null}`. The question is about ending the conversation if
`message` is the stop signal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.criteria.prompts.blocks import as_json, blocks
from workbench.criteria.prompts.final_response_match import SCHEMA
from workbench.judges.base import Question

_TASK = """\
An AI agent is being tested, and a program plays its user. The program has a plan for the conversation, sometimes also a
persona, and ends the conversation by sending the stop signal. Decide whether its next message is what a user with this
plan would say at this point.

The message is valid if all of this holds:
- It goes on with the plan: it takes the next step, or answers what the agent asked, or repeats or insists where the
  agent has not done what was wanted.
- What it tells about the user, the goal and the circumstances comes from the plan or from the conversation so far,
  or is a harmless detail that neither contradicts.
- It does not jump ahead of the plan, give away what the plan says to hold back, or ask for what the plan leaves out.
- It speaks as the user. It does not do the agent's work, answer in its place, or speak of being a test or a program.
- It keeps the conversation open while something in the plan is still to be done and the agent can still do it.
"""
_PERSONA = """\
- It fits the persona: it behaves as described, and does nothing that the persona lists as a violation.
"""
_STOP = """
Here the next message is the stop signal: the program ends the conversation. That is valid if everything in the plan has
been done or was refused for good, or if the plan says to give up at this point. It is invalid if a step of the plan is
still open, or the agent's last question waits for an answer that the plan has.
"""
_REPLY = """
Think first, then decide. Reply with one JSON object and nothing else:
{"reasoning": "why, in one to three sentences", "verdict": "valid" or "invalid"}
"""


def question(
    scenario: Mapping[str, Any], history: Sequence[Mapping[str, str]], message: str, stop_signal: str
) -> Question:
    """Return the question about one message of the simulated user."""
    persona = scenario.get("user_persona")
    data: dict[str, Any] = {
        "plan": scenario.get("conversation_plan") or "",
        "starting_prompt": scenario.get("starting_prompt") or "",
        "history": [dict(entry) for entry in history],
        "message": message,
        "stop_signal": stop_signal,
        "persona": persona,
    }
    stops = message == stop_signal
    task = _TASK + (_PERSONA if persona else "") + (_STOP if stops else "") + "\n"
    pieces: dict[str, str] = {"plan": data["plan"], "stop signal": stop_signal}
    if persona:
        pieces["persona"] = persona if isinstance(persona, str) else as_json(persona)
    pieces["conversation so far"] = as_json(data["history"]) if history else ""
    pieces["next message"] = message
    return Question("user_message", task + blocks(pieces.items()) + _REPLY, SCHEMA, data)

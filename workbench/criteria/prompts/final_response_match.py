"""The final_response_match question: does the agent's answer give the user what the reference gives?

Reply: `{"reasoning": str, "verdict": "valid" | "invalid"}`. Data: `{"user": str, "response": str, "reference": str}`,
plain texts.
"""

from typing import Any

from workbench.criteria.prompts.blocks import blocks
from workbench.judges.base import Question

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "description": "What is the same and what is not, in one to three sentences."},
        "verdict": {"type": "string", "enum": ["valid", "invalid"]},
    },
    "required": ["reasoning", "verdict"],
    "additionalProperties": False,
}

_TASK = """\
You check the work of an AI agent. You get a user's message, the reference answer that the author of the test expects,
and the agent's answer. Decide whether the agent's answer serves this user as the reference does.

Only the content counts:
- Each fact of the reference that the user asked for or needs must be in the agent's answer: figures with their units,
  names, dates, outcomes, conditions, and whether something was done, refused or asked back.
- How it is said is no fault: other words, another order, more or fewer sentences, another tone, lists, tables,
  Markdown, other ways to write the same number, date, time or amount.
- Additional details are no fault if they are compatible with the reference. They are a fault if they contradict it,
  or replace what was asked for.
- What the reference says besides, and the user neither asked for nor needs, may be missing.
- A wrong figure, name, unit or sign is a fault, however much else is right. So is a claim that something was done where
  the reference says it was not, or the other way round; so is doubt about an outcome of which the reference is sure.
- Take the reference as true, even if you know better.
- An empty answer is valid only if the reference is empty too.

"""
_REPLY = """
Compare first, then decide. Reply with one JSON object and nothing else:
{"reasoning": "what is the same and what is not, in one to three sentences", "verdict": "valid" or "invalid"}
"""


def question(user: str, response: str, reference: str) -> Question:
    """Return the question about one turn."""
    data = {"user": user, "response": response, "reference": reference}
    shown = blocks([("user's message", user), ("reference answer", reference), ("agent's answer", response)])
    return Question("final_response_match", _TASK + shown + _REPLY, SCHEMA, data)

"""The sentences question: which sentences does a text have? First question of hallucinations_v1.

Reply: `{"sentences": [str, …]}`, copied from the text, in its order. Data: `{"text": str}`.
"""

from typing import Any

from workbench.criteria.prompts.blocks import blocks
from workbench.judges.base import Question

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}

_TASK = """\
Cut a text into its sentences, so that each can be checked by itself.

- Copy each sentence exactly as it stands, in the order of the text. Correct nothing, leave nothing out, add nothing.
- An item of a list, a row of a table, and a heading that says something are a sentence each. Leave out mere markup:
  bullets, numbering, rules, fences.
- Do not cut inside a sentence: abbreviations, decimal points, addresses and quotations stay whole.
- A greeting, a question and a courtesy are sentences too.

"""
_REPLY = """
Reply with one JSON object and nothing else: {"sentences": ["first sentence", "second sentence"]}
"""


def question(text: str) -> Question:
    """Return the question about one text."""
    return Question("sentences", _TASK + blocks([("text", text)]) + _REPLY, SCHEMA, {"text": text})

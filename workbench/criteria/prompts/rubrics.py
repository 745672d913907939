"""The rubrics question: does an answer, the tool calls of a turn, or a conversation have each property?

Reply: `{"verdicts": [{"id": str, "rationale": str, "verdict": "yes" | "no" | "unclear"}, …]}`, one for each rubric.
Data: `{"rubrics": [{"id", "text"}], "user": str, "answer": str | null, "instructions": str, "tools": {agent:
[declaration, …]}, "steps": [{"call": {"name", "args"}, "response": any | null}], "grounding": [metadata, …],
"conversation": [{"user": str, "events": [{"author", "text"} | {"author", "call": {"name", "args"}} | {"author",
"result": {"name", "response"}}], "answer": {"author", "text"}}] | null}`. `conversation` is set if the whole
conversation is judged, `answer` if a turn's answer is. If both are null, the question is about the tool calls in
`steps`.
"""

from collections.abc import Mapping
from typing import Any

from workbench.criteria.prompts.blocks import as_json, blocks
from workbench.judges.base import Question

_KEYS = ("id", "rationale", "verdict")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "The id of the rubric, copied."},
                    "rationale": {
                        "type": "string",
                        "description": "Why, with the evidence, in a few sentences.",
                    },
                    "verdict": {"type": "string", "enum": ["yes", "no", "unclear"]},
                },
                "required": list(_KEYS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}

_ANSWER = """\
You check the final answer that an AI agent gave to a user. You get the rubrics, each a property that the answer should
have, and what happened in this turn. Decide for each rubric whether the answer has the property.

- Evidence is what tools returned and what grounding (search results attached to the answer) says. That the answer
  claims something, or that it sounds right, is no evidence that it is right; neither is what you know yourself.
- Instructions and tool declarations tell what the agent should do and could do. They do not show what it did.
- Where a rubric asks for something correct, check it against the evidence: without evidence for it, the verdict is no.
"""
_TOOLS = """\
You check how an AI agent used its tools in one turn. You get the rubrics, each a property that the tool calls should
have, the declarations of the tools, the user's message, and the calls in their order with what came back. Decide for
each rubric whether the calls have the property.

- Evidence is the list of calls and results. A call that is not in the list was not made; one without a result did not
  return. What a tool could do does not show that it was used.
- Look at names, arguments, order and number of calls, and at how later calls use earlier results.
"""
_CONVERSATION = """\
You check how an AI agent worked through a whole conversation. You get the rubrics, each a property that its conduct
should have, its instructions and tools, and the conversation from the first message to the last answer, with tool calls
and results in their order. Decide for each rubric whether the conversation has the property.

- Evidence is what happened: the messages, the calls, the results. That the agent says it did something is no evidence
  without the call and its result.
- Judge the conversation as a whole: a slip that was put right later counts only if the rubric asks for more.
"""
_COMMON = """\
- Judge each rubric for itself, word by word, and by nothing that it does not say.

The verdicts:
- yes: the property is there, or the rubric does not apply here, such as one with a condition that does not occur.
- no: the property is missing, or is there in part only.
- unclear: what you see does not let you decide. Do not use it for what is merely difficult.

"""
_REPLY = """
For each rubric, first name the evidence, then decide. Give every id exactly once. Reply with one JSON object and
nothing else:
{"verdicts": [{"id": "the rubric's id", "rationale": "why, with the evidence", "verdict": "yes", "no" or "unclear"}]}
"""


def question(data: Mapping[str, Any]) -> Question:
    """Return the question for data of the shape above."""
    pieces: tuple[str, ...]
    if data["conversation"] is not None:
        task, pieces = _CONVERSATION, ("instructions", "tools", "conversation")
    elif data["answer"] is not None:
        task, pieces = _ANSWER, ("instructions", "tools", "user's message", "tool calls", "grounding", "final answer")
    else:
        task, pieces = _TOOLS, ("tools", "user's message", "tool calls")
    texts = _texts(data)
    shown = blocks([("rubrics", as_json(data["rubrics"])), *((name, texts[name]) for name in pieces)])
    return Question("rubrics", task + _COMMON + shown + _REPLY, SCHEMA, data)


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    return {
        "instructions": data["instructions"],
        "tools": as_json(data["tools"]) if data["tools"] else "",
        "user's message": data["user"],
        "tool calls": as_json(data["steps"]) if data["steps"] else "",
        "grounding": as_json(data["grounding"]) if data["grounding"] else "",
        "final answer": data["answer"] or "",
        "conversation": as_json(data["conversation"]) if data["conversation"] else "",
    }

"""A model that says what `script.json` tells it to: agent, tools and session are real, only the model is not.

The script maps a user message to the steps the model takes for it. A step is `{"calls": [{"name", "args"}]}` or
`{"text": …}`; after each step with calls ADK runs the tools and asks again, and the next step is given.
"""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types


class ScriptedModel(BaseLlm):
    """Answers from `script`, a path to the JSON file; a message that is not in it gets an apology."""

    model: str = "scripted"
    script: Path

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        script = json.loads(self.script.read_text(encoding="utf-8"))
        message, done = _where(llm_request.contents, script)
        steps = script.get(message, [])
        step = steps[done] if done < len(steps) else {"text": "I am sorry, I did not understand that."}
        yield LlmResponse(
            content=types.Content(role="model", parts=_parts(step)),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=40 + 20 * done, candidates_token_count=12, total_token_count=52 + 20 * done
            ),
        )


def _where(contents: list[types.Content], script: dict[str, Any]) -> tuple[str, int]:
    """The last message that the script knows, and how many steps this agent took since. (What other agents did stands
    in `contents` as user text too; the script does not know it.)"""
    done = 0
    for content in reversed(contents):
        parts = content.parts or []
        text = "".join(part.text or "" for part in parts)
        if content.role == "user" and text in script:
            return text, done
        done += any(part.function_call for part in parts)
    return "", done


def _parts(step: dict[str, Any]) -> list[types.Part]:
    parts = [types.Part(text=step["text"])] if "text" in step else []
    for call in step.get("calls", []):
        parts.append(types.Part(function_call=types.FunctionCall(name=call["name"], args=call["args"])))
    return parts

"""Child process with LiteLLM, in the agent's environment. Each call is one attempt, without retries or waits.

→ `{"model", "prompt", "schema", "config"}` ← `{"text", "model_version", "input_tokens", "output_tokens", "cut"}`
"""

import logging
import os
from collections.abc import Mapping
from typing import Any

from workbench.judges.answering import JudgeCallError, cut_fault
from workbench.judges.child import run_child
from workbench.judges.litellm_faults import fault_of, is_schema_refused

_CONFIG = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "top_k": "top_k",
    "topK": "top_k",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "stop_sequences": "stop",
    "stopSequences": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "presencePenalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "frequencyPenalty": "frequency_penalty",
}
"""Fields of a GenerateContentConfig that other models know, with their names. LiteLLM drops what a model does not know.
"""
_NO_KEY = "no key"
_CUT = "MAX_TOKENS"
"""Google's word for the finish reason that LiteLLM calls `length`."""


class Completion:
    """LiteLLM, configured to be quiet."""

    def __init__(self) -> None:
        import litellm

        litellm.suppress_debug_info = True
        litellm.telemetry = False
        litellm.drop_params = True
        litellm.num_retries = 0
        litellm.disable_hf_tokenizer_download = True
        self._library: Any = litellm
        self._free_text: set[str] = set()
        """Models that answered a schema with an error."""

    async def answer(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Make one attempt. A model that refuses a schema gets the question again without it, now and from then on."""
        model = payload["model"]
        schema = payload["schema"] if model not in self._free_text and self._takes_schema(model) else None
        try:
            return _read(await self._ask(payload, schema))
        except Exception as error:
            if schema is None or not is_schema_refused(error):
                raise fault_of(error, model) from None
        try:
            answer = _read(await self._ask(payload, None))
        except Exception as error:
            raise fault_of(error, model) from None
        self._free_text.add(model)
        return answer

    async def _ask(self, payload: dict[str, Any], schema: Mapping[str, Any] | None) -> Any:
        arguments = _settings(payload["config"])
        if schema is not None:
            arguments["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema},
            }
        if payload["model"].startswith("openai/") and not os.environ.get("OPENAI_API_KEY"):
            # A local server that speaks OpenAI's protocol may need no key, but the client insists on one.
            arguments["api_key"] = _NO_KEY
        messages = [{"role": "user", "content": payload["prompt"]}]
        return await self._library.acompletion(payload["model"], messages, max_retries=0, **arguments)

    def _takes_schema(self, model: str) -> bool:
        try:
            return bool(self._library.supports_response_schema(model=model))
        except Exception:
            return False  # LiteLLM may reach a model that is not in its list.


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = {_CONFIG[name]: value for name, value in config.items() if name in _CONFIG and value is not None}
    if settings.get("stop") == []:
        del settings["stop"]
    return settings


def _read(response: Any) -> dict[str, Any]:
    """Return the answer in a ModelResponse."""
    choices = getattr(response, "choices", None)
    if not choices:
        raise JudgeCallError("unreadable", "the reply has no choices", retryable=True)
    choice = choices[0]
    text = choice.message.content
    if choice.finish_reason == "content_filter" and not text:
        raise JudgeCallError("blocked", "the service refused to answer: content_filter", "content_filter")
    cut = _CUT if choice.finish_reason == "length" else ""
    if cut and not text:
        fault = cut_fault(cut, begun=False)
        raise JudgeCallError(fault.kind, fault.message, fault.code)
    usage = getattr(response, "usage", None)
    return {
        "text": text,
        "model_version": response.model or "",
        "input_tokens": getattr(usage, "prompt_tokens", None),
        "output_tokens": getattr(usage, "completion_tokens", None),
        "cut": cut,
    }


def main() -> None:
    """Import the library, then answer calls."""
    logging.disable(logging.CRITICAL)
    run_child(Completion().answer)


if __name__ == "__main__":
    main()

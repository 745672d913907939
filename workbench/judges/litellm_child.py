"""Child process with LiteLLM, in the agent's environment. Each call is one attempt, without retries or waits.

Request: `{"model", "prompt", "schema", "config"}`. Reply: `{"text", "model_version", "input_tokens", "output_tokens",
"cut"}`.

LiteLLM's exceptions may contain the request with its key. Only kind, code and message are used. Exceptions are
recognised by the name of their class and by their status.
"""

import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from workbench.files.faults import snake
from workbench.judges.attempts import retry_after
from workbench.judges.base import JudgeCallError, cut_fault
from workbench.judges.child import run_child

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_FINAL = frozenset({401, 403, 404})
"""Statuses that every question to the same model would get with the same key."""
_LONGEST = 400
_UNREADABLE = (
    "JSONDecodeError",
    "APIResponseValidationError",
    "Unable to get json response",
    "Empty or invalid response",
    "Invalid response object",
    "returned a response with no",
)
_CLASSES = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception)\s*[:-]\s*)+")
_CONNECTION = ("Connection error", "Cannot connect", "Connection reset", "Server disconnected", "peer closed")
_BROKEN_OFF = ("incomplete chunked read", "incomplete message body", "payload is not completed", "ContentLengthError")


def fault_of(error: Exception, model: str) -> JudgeCallError:
    """Return the JudgeCallError for an exception that a call to `model` raised."""
    if isinstance(error, JudgeCallError):
        return error
    families = {kind.__name__ for kind in type(error).__mro__}
    detail = _short_text(error)
    status = _status(error)
    if "RateLimitError" in families or status == 429:
        message = f"the quota of {model} is used up: {detail}"
        return JudgeCallError("quota", message, "429", _wait(error), retryable=True)
    if "ContentPolicyViolationError" in families:
        return JudgeCallError("blocked", f"the service refused the question: {detail}", "content_policy")
    if "Timeout" in families or isinstance(error, TimeoutError):
        return JudgeCallError("timeout", f"no answer in time: {detail}", retryable=True)
    chain = _chain(error)
    if any(word in chain for word in _UNREADABLE):
        return JudgeCallError("unreadable", f"the reply of {model} could not be read: {detail}", retryable=True)
    if any(word in chain for word in _BROKEN_OFF):
        return JudgeCallError("connection", f"the connection was lost during the reply: {detail}", retryable=True)
    if any(word in chain for word in _CONNECTION) or (isinstance(error, OSError) and status is None):
        return JudgeCallError("connection", f"no connection to {model}: {detail}", retryable=True)
    if status is not None:
        how = {"retryable": status in _AGAIN, "final": status in _FINAL}
        return JudgeCallError("http", _refusal(status, model, detail), str(status), _wait(error), **how)
    return JudgeCallError("http", f"{model} could not be called: {type(error).__name__}: {detail}")


def is_schema_refused(error: Exception) -> bool:
    """Return whether a call failed with status 400 or 422. The reason may be the schema."""
    return _status(error) in (400, 422)


def _refusal(status: int, model: str, detail: str) -> str:
    if status == 401:
        return f"the key for {model} is missing or invalid: {detail}"
    if status == 403:
        return f"this key may not use {model}: {detail}"
    if status == 404:
        return f"there is no model {model}: correct judge_model: {detail}"
    return f"{model} answered {status}: {detail}"


def _status(error: Exception) -> int | None:
    status: Any = getattr(error, "status_code", None)
    try:
        return int(status)
    except (TypeError, ValueError):
        return None


def _wait(error: Any) -> float | None:
    """Return the seconds to wait that a header names, or None if there are none to read."""
    own, response = getattr(error, "litellm_response_headers", None), getattr(error, "response", None)
    for headers in (own, getattr(response, "headers", None)):
        if headers is not None and (value := headers.get("retry-after")):
            return retry_after(str(value))
    return None


def _short_text(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error) or type(error).__name__
    text = _CLASSES.sub("", text).partition("Traceback (most recent call last)")[0].strip() or type(error).__name__
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _chain(error: BaseException) -> str:
    """Return the messages of the error and its causes, with class names: LiteLLM wraps most errors in one class."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 10:
        parts.append(f"{type(current).__name__}: {str(current)[:2000]}")
        current = current.__cause__ or current.__context__
    return "\n".join(parts)


_CONFIG = {
    **{name: name for name in ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")},
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
}
"""LiteLLM's names for fields of a GenerateContentConfig. LiteLLM drops the options that a model does not have."""


def _text(instruction: Any) -> str:
    """Return a `system_instruction` as text: a text, a part, a content, or a list of these."""
    if isinstance(instruction, list):
        return "\n".join(filter(None, map(_text, instruction)))
    if isinstance(instruction, dict):
        return _text(instruction.get("parts") or instruction.get("text"))
    return instruction if isinstance(instruction, str) else ""


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
        """Make one attempt.

        If a model refuses the schema, the question is repeated without it. If that works, the model gets no schemas
        any more.

        Raises:
            JudgeCallError: There is no answer.
        """
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
        config = {snake(name): value for name, value in payload["config"].items() if value is not None}
        arguments = {_CONFIG[name]: value for name, value in config.items() if name in _CONFIG}
        if arguments.get("stop") == []:
            del arguments["stop"]
        if schema is not None:
            arguments["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        if payload["model"].startswith("openai/") and not os.environ.get("OPENAI_API_KEY"):
            # A local server that speaks OpenAI's protocol may need no key, but the client insists on one.
            arguments["api_key"] = "no key"
        messages = [{"role": "user", "content": payload["prompt"]}]
        if instruction := _text(config.get("system_instruction")):
            messages.insert(0, {"role": "system", "content": instruction})
        return await self._library.acompletion(payload["model"], messages, max_retries=0, **arguments)

    def _takes_schema(self, model: str) -> bool:
        try:
            return bool(self._library.supports_response_schema(model=model))
        except Exception:
            return False  # LiteLLM may reach a model that is not in its list.


def _read(response: Any) -> dict[str, Any]:
    """Return the answer in a ModelResponse.

    Raises:
        JudgeCallError: The response has no choices, was filtered, or was cut off before its first word.
    """
    choices = getattr(response, "choices", None)
    if not choices:
        raise JudgeCallError("unreadable", "the reply has no choices", retryable=True)
    choice = choices[0]
    text = choice.message.content
    if choice.finish_reason == "content_filter":
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

"""Translation of LiteLLM's exceptions into errors of a call, by class name and status, so that nothing is imported.

These exceptions may contain the request with its key. Only kind, code and message are used.
"""

import re
from typing import Any

from workbench.judges.answering import JudgeCallError
from workbench.judges.retry import retry_after

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
_CUT = ("incomplete chunked read", "incomplete message body", "payload is not completed", "ContentLengthError")


def fault_of(error: Exception, model: str) -> JudgeCallError:
    """Return the error of a call to `model` that raised `error`."""
    if isinstance(error, JudgeCallError):
        return error
    families = {kind.__name__ for kind in type(error).__mro__}
    detail = _short_text(error)
    status = _status(error)
    if "RateLimitError" in families or status == 429:
        return JudgeCallError(
            "quota", f"the quota of {model} is used up: {detail}", "429", _wait(error), retryable=True
        )
    if "ContentPolicyViolationError" in families:
        return JudgeCallError("blocked", f"the service refused the question: {detail}", "content_policy")
    if "Timeout" in families or isinstance(error, TimeoutError):
        return JudgeCallError("timeout", f"no answer in time: {detail}", retryable=True)
    chain = _chain(error)
    if any(word in chain for word in _UNREADABLE):
        return JudgeCallError("unreadable", f"the reply of {model} could not be read: {detail}", retryable=True)
    if any(word in chain for word in _CUT):
        return JudgeCallError("connection", f"the reply broke off: {detail}", retryable=True)
    if any(word in chain for word in _CONNECTION) or (isinstance(error, OSError) and status is None):
        return JudgeCallError("connection", f"no connection to {model}: {detail}", retryable=True)
    if status is not None:
        how = {"retryable": status in _AGAIN, "final": status in _FINAL}
        return JudgeCallError("http", _refusal(status, model, detail), str(status), _wait(error), **how)
    return JudgeCallError("http", f"{model} could not be called: {type(error).__name__}: {detail}")


def is_schema_refused(error: Exception) -> bool:
    """Return whether the service refused this form of the request, which may be because of a schema."""
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
    """Return the seconds that the service asks to wait."""
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
    """Return the messages of the error and its causes, with their names: LiteLLM gives most of them one class."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 10:
        parts.append(f"{type(current).__name__}: {str(current)[:2000]}")
        current = current.__cause__ or current.__context__
    return "\n".join(parts)

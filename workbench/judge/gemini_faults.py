"""What google-genai and what lies below it raise, as errors of a call.

Those exceptions hold the request with its key: nothing of them is kept but type, code and a scrubbed message. They are
told apart by name, for which of httpx, httpx2 and aiohttp the client uses depends on what is installed.
"""

import json
from collections.abc import Mapping
from typing import Any

from workbench.judge.answering import JudgeCallError, Scrub
from workbench.judge.base import FaultKind
from workbench.judge.google_access import CREDENTIALS_HINT, GoogleAccess
from workbench.judge.retry import retry_after

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_TRANSPORTS = frozenset({"aiohttp", "httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "ssl", "h11"})
_FINAL = frozenset({401, 403, 404})
"""What every question to the same model would get with the same key."""
_LONGEST = 400
_BAD_KEY = ("API_KEY_INVALID", "API key not valid", "API key expired", "API_KEY_SERVICE_BLOCKED")


def translated(error: Exception, model: str, access: GoogleAccess, scrub: Scrub) -> JudgeCallError:
    """The error of a call that raised `error`."""
    if isinstance(getattr(error, "code", None), int) and hasattr(error, "details"):
        return _refusal(error, model, access, scrub)
    package = type(error).__module__.partition(".")[0]
    said = scrub(_short(str(error) or type(error).__name__))
    if package == "google" and "auth" in type(error).__module__:
        if type(error).__name__ == "TransportError":
            return JudgeCallError("connection", f"Google's credentials could not be refreshed: {said}", retryable=True)
        message = f"Google's credentials are not usable: {said}; {CREDENTIALS_HINT}"
        return JudgeCallError("http", message, final=True)
    if isinstance(error, json.JSONDecodeError) or type(error).__name__ == "UnknownApiResponseError":
        return JudgeCallError("unreadable", f"the service's reply is no JSON: {said}", retryable=True)
    if package in _TRANSPORTS or isinstance(error, OSError):
        kind: FaultKind = "timeout" if isinstance(error, TimeoutError) else "connection"
        return JudgeCallError(kind, f"{_connection(type(error).__name__)}: {said}", retryable=True)
    # What is left comes from reading the reply: pydantic's ValidationError, an AttributeError for a list, ….
    return JudgeCallError("unreadable", f"the service's reply is not understood: {said}", retryable=True)


def is_schema_refused(error: JudgeCallError) -> bool:
    """Whether the service refused the request as it was put, which it may do because of a schema."""
    return error.kind == "http" and error.code.startswith("400") and not any(sign in error.message for sign in _BAD_KEY)


def _refusal(error: Any, model: str, access: GoogleAccess, scrub: Scrub) -> JudgeCallError:
    """For an `APIError`: a status of the service."""
    code, status = error.code, str(error.status or "")
    shown = scrub(_short(f"{code} {status}".strip()))
    said = scrub(_short(str(error.message or "")))
    if any(sign in str(error.details) for sign in _BAD_KEY):
        message = f"the key is not valid (GOOGLE_API_KEY in <agent>/.env): {_BAD_KEY[0]}"
        return JudgeCallError("http", message, shown, final=True)
    if code == 429:
        return JudgeCallError("quota", f"the quota of {model} is used up: {said}", shown, _wait(error), retryable=True)
    hint = _way_out(code, model, access)
    message = f"{shown}: {said}" if said else shown
    message = f"{hint}: {message}" if hint else message
    return JudgeCallError("http", message, shown, _wait(error), retryable=code in _AGAIN, final=code in _FINAL)


def _way_out(code: int, model: str, access: GoogleAccess) -> str:
    place = f"project {access.project}, {access.location}" if access.project else "this key"
    if code == 401:
        return "set GOOGLE_APPLICATION_CREDENTIALS" if access.project else "set GOOGLE_API_KEY to a valid key"
    if code == 403:
        return f"{place} may not use {model}: enable the API, or use another project or key"
    if code == 404:
        return f"there is no model {model} for {place}: correct judge_model"
    return ""


def _wait(error: Any) -> float | None:
    """Seconds that the service asks to wait: its header, or its own way in the error's details."""
    headers = getattr(error.response, "headers", None)
    if headers is not None and (value := headers.get("Retry-After") or headers.get("retry-after")):
        return retry_after(str(value))
    details = error.details
    inner = details.get("error", details) if isinstance(details, Mapping) else {}
    listed = inner.get("details") if isinstance(inner, Mapping) else None
    for detail in listed if isinstance(listed, list) else ():
        if isinstance(detail, Mapping) and isinstance(delay := detail.get("retryDelay"), str):
            return retry_after(delay)
    return None


def _connection(name: str) -> str:
    if name in ("ClientPayloadError", "RemoteProtocolError", "IncompleteReadError"):
        return "the reply broke off"
    if name in ("ConnectError", "ClientConnectorError", "ClientConnectorDNSError", "ConnectionRefusedError"):
        return "no connection"
    return "the connection broke"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"

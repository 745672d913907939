"""Translation of the exceptions of google-genai and its transports into errors of a call.

These exceptions contain the request with its key. Only type, code and a scrubbed message are used. They are recognised
by name, because the client uses httpx, httpx2 or aiohttp depending on what is installed.
"""

import json
from collections.abc import Mapping
from typing import Any

from workbench.judges.answering import JudgeCallError, Scrub
from workbench.judges.base import FaultKind
from workbench.judges.google_access import CREDENTIALS_HINT, GoogleAccess
from workbench.judges.retry import retry_after

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_TRANSPORTS = frozenset({"aiohttp", "httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "ssl", "h11"})
_FINAL = frozenset({401, 403, 404})
"""Statuses that every question to the same model would get with the same key."""
_LONGEST = 400
_BAD_KEY = ("API_KEY_INVALID", "API key not valid", "API key expired", "API_KEY_SERVICE_BLOCKED")


def translated(error: Exception, model: str, access: GoogleAccess, scrub: Scrub) -> JudgeCallError:
    """Return the error of a call that raised `error`."""
    if isinstance(getattr(error, "code", None), int) and hasattr(error, "details"):
        return _refusal(error, model, access, scrub)
    package = type(error).__module__.partition(".")[0]
    detail = scrub(_short(str(error) or type(error).__name__))
    if package == "google" and "auth" in type(error).__module__:
        if type(error).__name__ == "TransportError":
            return JudgeCallError(
                "connection", f"Google's credentials could not be refreshed: {detail}", retryable=True
            )
        message = f"Google's credentials cannot be used: {detail}; {CREDENTIALS_HINT}"
        return JudgeCallError("http", message, final=True)
    if isinstance(error, json.JSONDecodeError) or type(error).__name__ == "UnknownApiResponseError":
        return JudgeCallError("unreadable", f"the service's reply is not JSON: {detail}", retryable=True)
    if package in _TRANSPORTS or isinstance(error, OSError):
        kind: FaultKind = "timeout" if isinstance(error, TimeoutError) else "connection"
        return JudgeCallError(kind, f"{_connection(type(error).__name__)}: {detail}", retryable=True)
    # The remaining errors come from reading the reply: pydantic's ValidationError, an AttributeError for a list, ….
    return JudgeCallError("unreadable", f"the service's reply could not be read: {detail}", retryable=True)


def is_schema_refused(error: JudgeCallError) -> bool:
    """Return whether the service refused this form of the request, which may be because of a schema."""
    return error.kind == "http" and error.code.startswith("400") and not any(sign in error.message for sign in _BAD_KEY)


def _refusal(error: Any, model: str, access: GoogleAccess, scrub: Scrub) -> JudgeCallError:
    """Return the error for an `APIError`: a status of the service."""
    code, status = error.code, str(error.status or "")
    shown = scrub(_short(f"{code} {status}".strip()))
    detail = scrub(_short(str(error.message or "")))
    if any(sign in str(error.details) for sign in _BAD_KEY):
        message = f"the key is invalid (GOOGLE_API_KEY in <agent>/.env): {_BAD_KEY[0]}"
        return JudgeCallError("http", message, shown, final=True)
    if code == 429:
        return JudgeCallError(
            "quota", f"the quota of {model} is used up: {detail}", shown, _wait(error), retryable=True
        )
    hint = _hint(code, model, access)
    message = f"{shown}: {detail}" if detail else shown
    message = f"{hint}: {message}" if hint else message
    return JudgeCallError("http", message, shown, _wait(error), retryable=code in _AGAIN, final=code in _FINAL)


def _hint(code: int, model: str, access: GoogleAccess) -> str:
    place = f"project {access.project}, {access.location}" if access.project else "this key"
    if code == 401:
        return "set GOOGLE_APPLICATION_CREDENTIALS" if access.project else "set GOOGLE_API_KEY to a valid key"
    if code == 403:
        return f"{place} may not use {model}: enable the API, or use another project or key"
    if code == 404:
        return f"there is no model {model} for {place}: correct judge_model"
    return ""


def _wait(error: Any) -> float | None:
    """Return the seconds that the service asks to wait, from its header or the error's details."""
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

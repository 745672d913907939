"""Well-known failures of agents that are not their author's bugs, each with a hint.

They are recognised by class names, codes and words of the message, so no client library is imported.
"""

from __future__ import annotations

import re
import traceback
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

from .sources import is_project_file


class Remedy(NamedTuple):
    """A known failure. `kind` is `quota` or `agent_raised`. `message` names the cause first."""

    kind: str
    message: str
    hint: str


class _Rule(NamedTuple):
    applies: Callable[[BaseException, str], bool]
    kind: str
    cause: str
    hint: str
    libraries_only: bool = False
    """Whether the rule is too vague for the project's own exceptions, which have their own messages."""


_MOST_CHARACTERS = 4000
"""Characters of a message that are searched."""
_GEMINI_KEY = (
    "put GOOGLE_API_KEY=… into a .env beside the agent or into the environment, or, for Vertex AI, "
    "set GOOGLE_GENAI_USE_VERTEXAI=TRUE with GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
)


def remedy(error: BaseException) -> Optional[Remedy]:
    """Return the remedy for `error` or its causes, or None if only its own message explains it."""
    is_own = _raised_by_project(error)
    for cause in _causes(error):
        message = _message(cause)
        for rule in _RULES:
            if rule.applies(cause, message) and not (rule.libraries_only and is_own):
                detail = f" ({type(cause).__name__}: {_short(message)})" if message else f" ({type(cause).__name__})"
                return Remedy(rule.kind, rule.cause + detail, rule.hint)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: List[BaseException] = []
    current: Optional[BaseException] = error
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__


def _raised_by_project(error: BaseException) -> bool:
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(files) and is_project_file(files[-1])


def _message(error: BaseException) -> str:
    """Return the message, cut because some patterns take time proportional to its squared length."""
    try:
        return str(error)[:_MOST_CHARACTERS].strip()
    except Exception as second:
        return f"its message cannot be shown, {type(second).__name__}"


def _short(text: str) -> str:
    """Return the message on one line, without the link that ADK puts before a quota error."""
    line = " ".join(text.split())
    line = re.sub(r"^On how to mitigate this issue, please refer to: \S+ ", "", line)
    return line if len(line) <= 300 else line[:299] + "…"


def _families(error: BaseException) -> Tuple[str, ...]:
    return tuple(kind.__name__ for kind in type(error).__mro__)


def _status(error: BaseException) -> Optional[int]:
    """Return the HTTP status of a client library's exception (google-genai, openai, anthropic, httpx)."""
    if isinstance(error, SystemExit):
        return None
    places = (error, getattr(error, "response", None))
    for place in places:
        for name in ("code", "status_code"):
            value = getattr(place, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    return None


def _named(*names: str) -> Callable[[BaseException, str], bool]:
    return lambda error, message: any(name in _families(error) for name in names)


def _says(pattern: str, *, status: Tuple[int, ...] = ()) -> Callable[[BaseException, str], bool]:
    words = re.compile(pattern, re.IGNORECASE)
    return lambda error, message: (not status or _status(error) in status) and bool(words.search(message))


def _has_status(*statuses: int) -> Callable[[BaseException, str], bool]:
    return lambda error, message: _status(error) in statuses


_RULES = (
    _Rule(
        _says(r"No API key was provided|Missing key inputs argument|GOOGLE_API_KEY environment variable"),
        "agent_raised",
        "no Gemini key: GOOGLE_API_KEY is not set",
        _GEMINI_KEY,
    ),
    _Rule(
        _named("DefaultCredentialsError"),
        "agent_raised",
        "no Google Cloud credentials",
        "gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS; for a Gemini key instead, "
        "set GOOGLE_GENAI_USE_VERTEXAI=FALSE and GOOGLE_API_KEY",
    ),
    _Rule(
        _says(r"missing credentials|api_key client option must be set|_api_key.*(?:must be set|environment variable)"),
        "agent_raised",
        "no key for the model",
        "set the variable that the message names in a .env beside the agent or in the environment",
    ),
    _Rule(
        _has_status(429),
        "quota",
        "the model's quota is used up",
        "wait, lower --concurrency, or use a key with more quota",
    ),
    _Rule(
        _named("RateLimitError", "ResourceExhausted", "TooManyRequests"),
        "quota",
        "the model's quota is used up",
        "wait, lower --concurrency, or use a key with more quota",
    ),
    _Rule(
        _says(r"API[ _]key (?:not valid|expired)|API_KEY_INVALID", status=(400, 401, 403)),
        "agent_raised",
        "the model refused the key",
        _GEMINI_KEY,
    ),
    _Rule(
        _has_status(401, 403),
        "agent_raised",
        "the service refused the credentials",
        "check the key or the login that the agent uses, and what it may access",
    ),
    _Rule(
        _named("McpError", "MCPError"),
        "agent_raised",
        "an MCP server failed",
        "start the server by hand to see its output, which is also in the case's log",
    ),
    _Rule(
        _says(r"\bMCP\b.*(?:session|server|connect)|(?:session|connect).*\bMCP\b"),
        "agent_raised",
        "an MCP server could not be reached",
        "start the server by hand to see its output, which is also in the case's log",
    ),
    _Rule(
        _named("ConnectError", "ConnectionError", "APIConnectionError", "gaierror", "ClientConnectorError"),
        "agent_raised",
        "no connection",
        "",
        libraries_only=True,
    ),
    _Rule(
        _named("TimeoutError", "TimeoutException", "APITimeoutError", "Timeout", "ReadTimeout"),
        "agent_raised",
        "the agent waited too long for something",
        "",
        libraries_only=True,
    ),
    _Rule(
        _says(r"^EOF when reading a line$"),
        "agent_raised",
        "the agent asked for keyboard input, which is not available here",
        "",
    ),
)

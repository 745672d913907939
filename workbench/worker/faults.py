"""Exceptions as shown to the user: the cause in one sentence, the lines of the traceback in the project, and a hint.

Well-known failures that are not bugs of the agent's author are recognised by class names, codes and words of the
message, so no client library is imported.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .jsonable import message_of, shown
from .missing import (
    OLDEST,
    Missing,
    find_missing,
    install_command,
    installed_adk,
    is_supported,
    package_command,
)
from .project_files import WORKER, is_project_file

Fault = dict[str, str]
"""`kind`, `message`, `hint`, `traceback`: the fields of the workbench's CaseError."""
Place = tuple[str, int, str]
"""File, line, function."""
PYTHON = sys.executable or "python"
"""The path of the Python that runs this process. Links are not resolved."""
ADK = f'"google-adk>={OLDEST}"'
_MOST_FRAMES = 40
_LONGEST = 2000
"""Maximum length of a message or a hint, in characters."""
_LONGEST_TRACE = 100_000
_LONGEST_LINE = 200
_HINT = "_agent_workbench_hint"
_INVISIBLE = (WORKER, "<frozen importlib", os.path.dirname(importlib.__file__) + os.sep)
"""Files of the worker and of the import system, which say nothing about an agent."""
_MOST_CHARACTERS = 4000
"""Number of characters of a message that are searched for known failures."""
_GEMINI_KEY = (
    "put GOOGLE_API_KEY=… into a .env beside the agent or into the environment, or, for Vertex AI, "
    "set GOOGLE_GENAI_USE_VERTEXAI=TRUE with GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
)


def fault(kind: str, message: str, hint: str = "", trace: str = "") -> Fault:
    """Return a fault with these fields, cut to a readable length."""
    return {
        "kind": kind,
        "message": _cut(message, _LONGEST),
        "hint": _cut(hint, _LONGEST),
        "traceback": _cut(trace, _LONGEST_TRACE),
    }


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… [{len(text) - longest:,} more characters]"


def agent_fault(error: BaseException) -> Fault:
    """Return the fault of an exception from an agent, a tool, a callback or a model."""
    cause = root_cause(error)
    known = remedy(cause) or Remedy("agent_raised", sentence(cause), "")
    hint = str(getattr(error, _HINT, "") or getattr(cause, _HINT, "") or known.hint)
    return fault(known.kind, known.message, hint, project_traceback(error))


@contextlib.contextmanager
def hinting(hint: str) -> Iterator[None]:
    """Add a hint for the user to exceptions that are raised inside."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(Exception):
            setattr(error, _HINT, hint)
        raise


def import_fault(error: BaseException, project: tuple[str, str] | None = None) -> Fault:
    """Return why the agent's modules could not be imported.

    `project` is the agent's folder and the root. If it is given, all other missing modules are named, too.
    """
    cause, trace = root_cause(error), project_traceback(error)
    if isinstance(cause, ImportError) and too_old() and "google.adk" in str(cause):
        return no_framework(trace)
    if isinstance(cause, ModuleNotFoundError):
        name = cause.name or ""
        if installed_adk() is None and (name == "google" or name.startswith(("google.adk", "google.genai"))):
            return no_framework(trace)
    if isinstance(cause, ImportError):
        lacking = find_missing(*project, cause) if project else Missing([cause.name or ""], [], [])
        if lacking.modules or lacking.local or isinstance(cause, ModuleNotFoundError):
            return _of_missing(cause, lacking, project, trace)
    if isinstance(cause, SyntaxError):
        place = f"{cause.filename}, line {cause.lineno}" if cause.filename else f"line {cause.lineno}"
        return fault("import_failed", f"{type(cause).__name__}: {cause.msg} ({place})", "", trace)
    if isinstance(cause, SystemExit):
        return fault("import_failed", f"the agent called {_exit(cause)} while it was imported", "", trace)
    return {**agent_fault(error), "kind": "import_failed"}


def _of_missing(cause: ImportError, lacking: Missing, project: tuple[str, str] | None, trace: str) -> Fault:
    """Return the fault of an import that lacked a module. Its message names all missing modules."""
    named = cause.name if isinstance(cause, ModuleNotFoundError) else None
    others = [name for name in lacking.modules if name != named]
    message = f"{sentence(cause)} (by {PYTHON})"
    if others:
        message += f"; {'also ' if named else ''}missing: {', '.join(others)}"
    if lacking.local:
        message += f"; not in the project: {', '.join(lacking.local)}"
    hint = install_command(lacking, *project, PYTHON) if project else ""
    return fault("import_failed", message, hint or _install_hint(cause.name or ""), trace)


def _install_hint(missing: str) -> str:
    package = missing.rpartition(".")[0]
    if package in sys.modules:
        place = getattr(sys.modules[package], "__file__", None) or "without an __init__.py"
        return f"{package} exists ({place}) but has no such module: a typing error, an unsaved file or another version"
    command = package_command(PYTHON, "…")
    return f"{command}, if the agent needs that package, or name the agent's interpreter with --python"


def no_framework(trace: str = "") -> Fault:
    """Return the fault that google-adk is missing in this interpreter, or is too old."""
    version = installed_adk()
    if version is None:
        message = f"google-adk is not installed in {PYTHON}"
    else:
        message = f"google-adk {version} in {PYTHON} is too old: {OLDEST} is the oldest supported version"
    return fault("no_framework", message, install_adk_hint(PYTHON), trace)


def install_adk_hint(python: str) -> str:
    """Return the hint for installing google-adk in the interpreter `python`."""
    return f"{package_command(python, ADK)}, or name the agent's own interpreter with --python"


def too_old() -> bool:
    """Return whether the installed google-adk is older than supported."""
    version = installed_adk()
    return version is not None and not is_supported(version)


def root_cause(error: BaseException) -> BaseException:
    """Return the exception to report, without the exceptions that frameworks wrapped around it.

    Exception groups are unwrapped too: task groups wrap every exception, and the first one is the most useful.
    """
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        members = getattr(error, "exceptions", None)
        if isinstance(members, (tuple, list)) and members and isinstance(members[0], BaseException):
            error = members[0]
        elif _is_wrapper(error):
            error = error.__cause__ or error.__context__ or error
    return error


def _is_wrapper(error: BaseException) -> bool:
    """Return whether a framework raised this exception for another one, which is its cause."""
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if inner is None or isinstance(inner, (StopAsyncIteration, GeneratorExit)):
        return False
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and not is_project_file(frames[-1]) and _touches_project(inner)


def _touches_project(error: BaseException) -> bool:
    return any(is_project_file(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__))


def sentence(error: BaseException) -> str:
    """Return `Type: message (caused by Type: message)`, on as many lines as the message has."""
    text = _named(error)
    cause = error.__cause__
    return f"{text} (caused by {_named(cause)})" if cause is not None and cause is not error else text


def _named(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the agent called {_exit(error)}"
    name, message = type(error).__name__, message_of(error)
    return f"{name}: {message}" if message.strip() else name


def _exit(error: SystemExit) -> str:
    return f"sys.exit({'' if error.code is None else shown(error.code)})"


def project_traceback(error: BaseException) -> str:
    """Return a traceback of the project's own lines, innermost last. Lines of libraries between them are only counted.

    If no line is the project's, the traceback has the innermost lines.
    """
    parts: list[str] = []
    for raised in _chain(error):
        walked = traceback.walk_tb(raised.__traceback__)
        places = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walked]
        lines = place_lines([place for place in places if not place[0].startswith(_INVISIBLE)])
        if parts:
            parts.append("\nwhich led to:\n\n")
        parts.append("Traceback (most recent call last), without the frameworks' lines:\n" if lines else "")
        parts.extend(lines)
        if isinstance(raised, SyntaxError):
            parts.extend(_cut(line, _LONGEST) for line in traceback.format_exception_only(type(raised), raised))
        else:
            parts.append(f"{_named(raised)[:_LONGEST]}\n")
    return "".join(parts)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that led to the root cause, as far as the project was involved, then the root cause."""
    raised: list[BaseException] = []
    current: BaseException | None = root_cause(error)
    while current is not None and current not in raised:
        if not raised or _touches_project(current):
            raised.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return reversed(raised[:5])


def place_lines(places: list[Place]) -> list[str]:
    """Return the lines of a traceback through `places`.

    They show the project's places and the innermost one, and count the others between these. If no place is the
    project's, they show the innermost few.
    """
    last = len(places) - 1
    own = [index for index, place in enumerate(places) if is_project_file(place[0])][-_MOST_FRAMES:]
    shown_indices = sorted({*own, last}) if own else list(range(max(0, last - 5), last + 1))
    lines: list[str] = []
    for position, index in enumerate(shown_indices):
        skipped = index - shown_indices[position - 1] - 1 if position else 0
        if skipped:
            lines.append(f"  … {skipped} {'call' if skipped == 1 else 'calls'} inside libraries\n")
        file, line, function = places[index]
        source = linecache.getline(file, line).strip()[:_LONGEST_LINE]
        lines.append(f'  File "{file}", line {line}, in {function}\n' + (f"    {source}\n" if source else ""))
    return lines


def wrong_type(what: str, value: Any) -> TypeError:
    """Return the TypeError for an invalid value that an agent yielded."""
    return TypeError(f"{what}, not {type(value).__name__}: {shown(value)[:200]}")


class Remedy(NamedTuple):
    """A known failure and a hint. `kind` is `quota` or `agent_raised`. `message` names the cause first."""

    kind: str
    message: str
    hint: str


class _Rule(NamedTuple):
    applies: Callable[[BaseException, str], bool]
    cause: str
    hint: str = ""
    kind: str = "agent_raised"
    libraries_only: bool = False
    """Whether the rule is too vague for the project's own exceptions, which have their own messages."""


def remedy(error: BaseException) -> Remedy | None:
    """Return the remedy for `error` or for one of its causes, or None if none is a known failure."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_own = bool(files) and is_project_file(files[-1])
    for cause in _causes(error):
        # Cut, because some patterns take time proportional to the squared length.
        message = message_of(cause)[:_MOST_CHARACTERS].strip()
        for rule in _RULES:
            if rule.applies(cause, message) and not (rule.libraries_only and is_own):
                detail = f" ({type(cause).__name__}: {_short(message)})" if message else f" ({type(cause).__name__})"
                return Remedy(rule.kind, rule.cause + detail, rule.hint)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__


def _short(text: str) -> str:
    """Return the message on one line, without the link that ADK puts before a quota error."""
    line = " ".join(text.split())
    line = re.sub(r"^On how to mitigate this issue, please refer to: \S+ ", "", line)
    return line if len(line) <= 300 else line[:299] + "…"


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of a client library's exception (google-genai, openai, anthropic, httpx), or None."""
    if isinstance(error, SystemExit):
        return None
    for place in (error, getattr(error, "response", None)):
        for name in ("code", "status_code"):
            value = getattr(place, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    return None


def _has_class(*names: str) -> Callable[[BaseException, str], bool]:
    return lambda error, message: any(kind.__name__ in names for kind in type(error).__mro__)


def _says(pattern: str, *, status: tuple[int, ...] = ()) -> Callable[[BaseException, str], bool]:
    words = re.compile(pattern, re.IGNORECASE)
    return lambda error, message: (not status or _status(error) in status) and bool(words.search(message))


def _has_status(*statuses: int) -> Callable[[BaseException, str], bool]:
    return lambda error, message: _status(error) in statuses


def _any(*rules: Callable[[BaseException, str], bool]) -> Callable[[BaseException, str], bool]:
    return lambda error, message: any(rule(error, message) for rule in rules)


_RULES = (
    _Rule(
        _says(r"No API key was provided|Missing key inputs argument|GOOGLE_API_KEY environment variable"),
        "no Gemini key: GOOGLE_API_KEY is not set",
        _GEMINI_KEY,
    ),
    _Rule(
        _has_class("DefaultCredentialsError"),
        "no Google Cloud credentials",
        "gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS; for a Gemini key instead, "
        "set GOOGLE_GENAI_USE_VERTEXAI=FALSE and GOOGLE_API_KEY",
    ),
    _Rule(
        _says(r"missing credentials|api_key client option must be set|_api_key.*(?:must be set|environment variable)"),
        "no key for the model",
        "set the variable that the message names in a .env beside the agent or in the environment",
    ),
    _Rule(
        _any(_has_status(429), _has_class("RateLimitError", "ResourceExhausted", "TooManyRequests")),
        "the model's quota is used up",
        "wait, lower --concurrency, or use a key with more quota",
        "quota",
    ),
    _Rule(
        _says(r"API[ _]key (?:not valid|expired)|API_KEY_INVALID", status=(400, 401, 403)),
        "the model refused the key",
        _GEMINI_KEY,
    ),
    _Rule(
        _has_status(401, 403),
        "the service refused the credentials",
        "check the key or the login that the agent uses, and what it may access",
    ),
    _Rule(
        _has_class("McpError", "MCPError"),
        "an MCP server failed",
        "start the server by hand to see its output, which is also in the case's log",
    ),
    _Rule(
        _says(r"\bMCP\b.*(?:session|server|connect)|(?:session|connect).*\bMCP\b"),
        "an MCP server could not be reached",
        "start the server by hand to see its output, which is also in the case's log",
    ),
    _Rule(
        _has_class("ConnectError", "ConnectionError", "APIConnectionError", "gaierror", "ClientConnectorError"),
        "no connection",
        libraries_only=True,
    ),
    _Rule(
        _has_class("TimeoutError", "TimeoutException", "APITimeoutError", "Timeout", "ReadTimeout"),
        "the agent waited too long for something",
        libraries_only=True,
    ),
    _Rule(_says(r"^EOF when reading a line$"), "the agent asked for keyboard input, which is not available here"),
)

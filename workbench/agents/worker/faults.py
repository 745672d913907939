"""An exception as the user should read it: the cause in one sentence, their own lines of the traceback, the way out."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import traceback
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .adk_version import OLDEST, installed_adk, is_supported
from .jsonable import shown
from .missing import Missing, find_missing, install_command
from .remedies import remedy
from .sources import WORKER, is_project_file

Fault = Dict[str, str]
"""`kind`, `message`, `hint`, `traceback`: the fields of the workbench's CaseError."""
Place = Tuple[str, int, str]
"""File, line, function."""
_MOST_FRAMES = 40
_LONGEST = 2000
"""Characters that a message may have."""
_LONGEST_TRACE = 100_000
_LONGEST_LINE = 200
_INVISIBLE = (WORKER, "<frozen importlib", os.path.dirname(importlib.__file__) + os.sep)
"""Files of ours and of the import system, which say nothing about an agent."""


def fault(kind: str, message: str, hint: str = "", trace: str = "") -> Fault:
    """Return a fault with these fields, cut to lengths that can be read and sent."""
    return {
        "kind": kind,
        "message": _cut(message, _LONGEST),
        "hint": _cut(hint, _LONGEST),
        "traceback": _cut(trace, _LONGEST_TRACE),
    }


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… [{len(text) - longest:,} more characters]"


def of_agent(error: BaseException) -> Fault:
    """What an agent, a tool, a callback or a model raised."""
    cause = root_cause(error)
    remedied = remedy(cause)
    if remedied is not None:
        return fault(remedied.kind, remedied.message, remedied.hint, explained(error))
    return fault("agent_raised", sentence(cause), "", explained(error))


def of_import(error: BaseException, python: str, project: Optional[Tuple[str, str]] = None) -> Fault:
    """Why the agent's modules could not be imported by the interpreter `python`. With `project`, the agent's folder and
    the root, everything else that its imports lack is named too."""
    cause = root_cause(error)
    if isinstance(cause, ImportError) and too_old() and "google.adk" in str(cause):
        return no_framework(python, explained(error))
    if isinstance(cause, ModuleNotFoundError):
        name = cause.name or ""
        if installed_adk() is None and (name == "google" or name.startswith(("google.adk", "google.genai"))):
            return no_framework(python, explained(error))
    if isinstance(cause, ImportError):
        lacking = find_missing(*project, cause) if project else Missing([cause.name or ""], [], [])
        if lacking.modules or lacking.local or isinstance(cause, ModuleNotFoundError):
            return _of_missing(cause, lacking, python, project, explained(error))
    if isinstance(cause, SyntaxError):
        place = f"{cause.filename}, line {cause.lineno}" if cause.filename else f"line {cause.lineno}"
        return fault("import_failed", f"{type(cause).__name__}: {cause.msg} ({place})", "", explained(error))
    if isinstance(cause, SystemExit):
        return fault("import_failed", f"the agent called {_exit(cause)} while it was imported", "", explained(error))
    remedied = remedy(cause)
    if remedied is not None:
        return fault("import_failed", remedied.message, remedied.hint, explained(error))
    return fault("import_failed", sentence(cause), "", explained(error))


def _of_missing(
    cause: ImportError, lacking: Missing, python: str, project: Optional[Tuple[str, str]], trace: str
) -> Fault:
    """An import that failed for lack of a module, with all others that are missing."""
    named = cause.name if isinstance(cause, ModuleNotFoundError) else None
    others = [name for name in lacking.modules if name != named]
    message = f"{sentence(cause)} (by {python})"
    if others:
        message += f"; {'also ' if named else ''}missing: {', '.join(others)}"
    if lacking.local:
        message += f"; not in the project: {', '.join(lacking.local)}"
    hint = install_command(lacking, *project, python) if project else ""
    return fault("import_failed", message, hint or _way_to(cause.name or "", python), trace)


def _way_to(missing: str, python: str) -> str:
    """What helps where there is no module of that name."""
    package = missing.rpartition(".")[0]
    if package in sys.modules:
        place = getattr(sys.modules[package], "__file__", None) or "without an __init__.py"
        return f"{package} is there ({place}) but has no such module: misspelt, not saved, or of another version"
    return f"{python} -m pip install …, if the agent needs that package, or name the agent's interpreter with --python"


def no_framework(python: str, trace: str = "") -> Fault:
    """google-adk is not there, or too old, in the interpreter `python`."""
    version = installed_adk()
    if version is None:
        message = f"google-adk is not installed in {python}, the Python that runs this agent"
    else:
        message = f"google-adk {version} in {python} is too old: {OLDEST} is the oldest that is supported"
    hint = f'{python} -m pip install -U "google-adk>={OLDEST}", or name the agent\'s own interpreter with --python'
    return fault("no_framework", message, hint, trace)


def too_old() -> bool:
    """Is google-adk installed, in a version that is not supported?"""
    version = installed_adk()
    return version is not None and not is_supported(version)


def root_cause(error: BaseException) -> BaseException:
    """The exception to name: what frameworks wrap around the agent's own is taken off, and so are groups of one or more
    (task groups wrap everything that was raised in them; the first tells most)."""
    seen: List[BaseException] = []
    while error not in seen:
        seen.append(error)
        members = getattr(error, "exceptions", None)
        if isinstance(members, (tuple, list)) and members and isinstance(members[0], BaseException):
            error = members[0]
        elif _is_wrapper(error):
            error = error.__cause__ or error.__context__ or error
    return error


def _is_wrapper(error: BaseException) -> bool:
    """Raised by a framework for another exception, which it keeps as the cause."""
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if inner is None or isinstance(inner, (StopAsyncIteration, GeneratorExit)):
        return False
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and not is_project_file(frames[-1]) and _touches_project(inner)


def _touches_project(error: BaseException) -> bool:
    return any(is_project_file(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__))


def sentence(error: BaseException) -> str:
    """`Type: message (caused by Type: message)`, on as many lines as the message has."""
    text = _named(error)
    cause = error.__cause__
    return f"{text} (caused by {_named(cause)})" if cause is not None and cause is not error else text


def _named(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the agent called {_exit(error)}"
    try:
        said = str(error)
    except Exception as second:
        said = f"its message cannot be shown, {type(second).__name__}"
    name = type(error).__name__
    return f"{name}: {said}" if said.strip() else name


def _exit(error: SystemExit) -> str:
    return f"sys.exit({'' if error.code is None else shown(error.code)})"


def explained(error: BaseException) -> str:
    """A traceback made of the project's own lines, innermost last, with runs of other people's lines counted; where no
    line is the project's, the innermost ones."""
    parts: List[str] = []
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
    """The root cause, after what led to it as far as the project had a part in that."""
    raised: List[BaseException] = []
    current: Optional[BaseException] = root_cause(error)
    while current is not None and current not in raised:
        if not raised or _touches_project(current):
            raised.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return reversed(raised[:5])


def place_lines(places: List[Place]) -> List[str]:
    """Lines of a traceback. Places outside of the project are counted instead of shown, apart from the innermost; where
    none is the project's, the innermost few are shown."""
    last = len(places) - 1
    own = [index for index, place in enumerate(places) if is_project_file(place[0])][-_MOST_FRAMES:]
    kept = sorted({*own, last}) if own else list(range(max(0, last - 5), last + 1))
    lines: List[str] = []
    for position, index in enumerate(kept):
        hidden = index - kept[position - 1] - 1 if position else 0
        if hidden:
            lines.append(f"  … {hidden} {'call' if hidden == 1 else 'calls'} inside libraries\n")
        lines.append(_place(*places[index]))
    return lines


def _place(file: str, line: int, function: str) -> str:
    source = linecache.getline(file, line).strip()[:_LONGEST_LINE]
    return f'  File "{file}", line {line}, in {function}\n' + (f"    {source}\n" if source else "")


def interpreter() -> str:
    """The path of the Python that runs us, as it was called."""
    return sys.executable or "python"


def wrong_type(what: str, value: Any) -> TypeError:
    """The complaint about something that an agent yielded."""
    return TypeError(f"{what}, not {type(value).__name__}: {shown(value)[:200]}")

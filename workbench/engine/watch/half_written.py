"""Whether a file looks as if somebody were still writing it."""

import json
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.python_source import parse_source
from workbench.regular_file import read_regular

_PARSED_UP_TO = 1 << 20
_OPENERS = {ord("{"): ord("}"), ord("["): ord("]")}


@dataclass(frozen=True)
class FileFault:
    """Why a file cannot be used, and where: a Python source that does not compile, an evalset or a config that is
    wrong. `line` 0: the whole file."""

    path: Path
    line: int
    message: str


def looks_unfinished(path: Path) -> bool:
    """Whether what stands there now may be half of what is to come: nothing at all, or what does not parse."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return True  # Deleted, or just about to be renamed into its place.
    except OSError:
        return False
    if not content.strip():
        return path.suffix in (".py", ".json") and path.name != "__init__.py"
    if path.suffix == ".py":
        return len(content) <= _PARSED_UP_TO and syntax_fault(path, content) is not None
    if path.suffix == ".json":
        return not _is_json(content)
    return False


def syntax_fault(path: Path, content: bytes) -> FileFault | None:
    """What is wrong with a Python source; None if it compiles."""
    try:
        parse_source(content, str(path))
    except SyntaxError as error:
        return FileFault(path, error.lineno or 0, error.msg)
    except ValueError as error:
        return FileFault(path, 0, str(error))
    return None


def _is_json(content: bytes) -> bool:
    """For a large file only whether it is closed again: reading all of it takes longer than waiting."""
    if len(content) > _PARSED_UP_TO:
        text = content.strip().removeprefix(b"\xef\xbb\xbf")
        return _OPENERS.get(text[0]) == text[-1]
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True

"""The environment variables of an agent: those of the process, completed from its `.env` as ADK does it.

ADK (`cli/utils/envs.py`) takes the first `.env` from the agent's folder up to the root of the file system. It loads the
file with `override=True`, so the file's own values win inside `${…}`, and then restores every variable that the process
had before. `ADK_DISABLE_LOAD_DOTENV` switches it off; so does `PYTHON_DOTENV_DISABLED`, in python-dotenv.
"""

import hashlib
import json
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from dotenv.parser import parse_stream
from dotenv.variables import parse_variables

from workbench.files.file_access import read_regular_text

_LARGEST = 1 << 16
_MOST_REFERENCES = 100
"""Maximum number of `${` in one value. Each unclosed one costs a scan of the rest of the value."""
_LONGEST = 128 * 1024 - 1
"""Bytes of the longest variable, name included, that Linux passes to a new process."""
_ADK_TRUE = frozenset({"1", "true", "yes", "on"})
_DOTENV_TRUE = frozenset({"1", "true", "t", "yes", "y"})


@dataclass(frozen=True)
class AgentEnvironment:
    """The environment of an agent.

    `values` is the complete environment: the given one, completed from `file` (None if there is no `.env`, or it is
    switched off). `names` are the names that the file sets, in its order, even if the given environment wins.
    `fingerprint` changes when the value of one of these names changes. `warnings` name unusable lines of the file.
    """

    values: Mapping[str, str]
    file: Path | None
    names: tuple[str, ...]
    fingerprint: str
    warnings: tuple[str, ...]


def agent_environment(agent_folder: Path, base: Mapping[str, str]) -> AgentEnvironment:
    """Return the environment of the agent in `agent_folder`, on top of the process environment `base`.

    A `.env` that cannot be read, and lines that cannot be parsed, become warnings.
    """
    file = None if _switched_off(base) else _nearest(agent_folder)
    warnings: list[str] = []
    loaded = _load(file, base, warnings) if file else {}
    values = {**loaded, **base}
    return AgentEnvironment(
        values, file, tuple(loaded), _fingerprint({name: values[name] for name in loaded}), tuple(warnings)
    )


def _switched_off(base: Mapping[str, str]) -> bool:
    return (
        base.get("ADK_DISABLE_LOAD_DOTENV", "").strip().lower() in _ADK_TRUE
        or base.get("PYTHON_DOTENV_DISABLED", "").casefold() in _DOTENV_TRUE
    )


def _nearest(folder: Path) -> Path | None:
    return next((file for step in (folder, *folder.parents) if (file := step / ".env").is_file()), None)


def _load(file: Path, base: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    try:
        text = read_regular_text(file, _LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        warnings.append(f"{file} is not used: {error.strerror if isinstance(error, OSError) else error}")
        return {}
    values: dict[str, str | None] = {}
    known: Mapping[str, str | None] = ChainMap(values, dict(base))
    for name, value, line in _bindings(text, file, warnings):
        if value is None:
            values[name] = None  # a name without "=" sets nothing and unsets an earlier value
            continue
        resolved = _resolved(value, known) if value.count("${") <= _MOST_REFERENCES else None
        if resolved is None:
            warnings.append(f"{file}, line {line}: more than {_MOST_REFERENCES} `${{` in one value")
        elif len(name) + len(resolved) > _LONGEST:
            warnings.append(f"{file}, line {line}: too long for an environment variable")
        elif not name or "=" in name or "\0" in name + resolved:
            warnings.append(f"{file}, line {line}: cannot be set as an environment variable")
        else:
            values[name] = resolved
    return {name: value for name, value in values.items() if value is not None}


def _resolved(value: str, known: Mapping[str, str | None]) -> str:
    """Return the value with its `${…}` replaced.

    A value that grows too long is cut, because each line may double the previous one.
    """
    resolved = ""
    for atom in parse_variables(value):
        resolved += atom.resolve(known)
        if len(resolved) > _LONGEST:
            break
    return resolved


def _bindings(text: str, file: Path, warnings: list[str]) -> Iterator[tuple[str, str | None, int]]:
    """Yield name, value and line of each assignment. Lines that python-dotenv cannot parse become warnings."""
    for binding in parse_stream(StringIO(text)):
        original = binding.original.string
        # python-dotenv counts blank lines before an assignment as part of it.
        line = binding.original.line + original[: len(original) - len(original.lstrip())].count("\n")
        if binding.error:
            warnings.append(f"{file}, line {line}: not understood")
        elif binding.key is not None:
            yield binding.key, binding.value, line


def _fingerprint(values: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(values.items())).encode()).hexdigest()[:32]


# The working directory of an agent, which its relative paths refer to

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


def working_directory(agent_folder: Path, root: Path, here: Path) -> Path:
    """Return the working directory of the agent in `agent_folder`.

    That is `here`, where the workbench was started, if it is inside the agent's project, as with `adk eval`. Otherwise
    it is the project's folder: the nearest folder above the agent with a `pyproject.toml`, `setup.py`, `setup.cfg` or
    `requirements.txt`, and at most `root`.
    """
    project = root
    for folder in agent_folder.parents:
        if not folder.is_relative_to(root):
            break
        if any((folder / mark).is_file() for mark in _MARKS):
            project = folder
            break
    return here if here.is_relative_to(project) else project

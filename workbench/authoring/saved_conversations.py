"""Conversations that ADK saved in files: sessions, sessions of `adk test`, and test cases of its conformance tests."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.definitions import find_definition
from workbench.authoring.adk_session import NoSessionError, case_from_session
from workbench.authoring.capture import Captured
from workbench.authoring.conformance import case_from_conformance
from workbench.json_values import mapping
from workbench.model import yaml_data
from workbench.regular_file import read_regular

SPEC = "spec.yaml"
TESTS = "tests"
"""The folder in an agent's folder from which `adk test` takes sessions."""
_LARGEST = 256 << 20
_RECORDINGS = "generated-recordings{}.yaml"
_SESSION = "generated-session{}.yaml"
_WAYS = ("", "-sse")
"""Endings of the files that `adk conformance record` writes, without and with streaming."""


@dataclass(frozen=True, slots=True)
class SavedConversation:
    """A conversation from a file. `name` is proposed as the ID of its case."""

    captured: Captured
    name: str


def read_conversation(path: Path) -> SavedConversation:
    """Read a session, or a conformance test case: its folder or a YAML file in it. May block.

    Raises:
        NoSessionError: it is none of those. The message begins with the place.
        OSError: a file cannot be read.
        ValueError: a file is not valid JSON or YAML.
        RecursionError: it is nested too deeply.
    """
    if path.is_dir() or path.suffix.lower() in (".yaml", ".yml"):
        return _conformance(path if path.is_dir() else path.parent)
    agent = agent_of_test(path)
    session = json.loads(read_regular(path, _LARGEST))
    captured = case_from_session(session, app_name=agent.name if agent is not None else "")
    return SavedConversation(captured, path.name.removesuffix(".json").removesuffix(".session"))


def is_conversation(path: Path) -> bool:
    """Return whether a file looks like a session or belongs to a conformance test case."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return (path.parent / SPEC).is_file()
    try:
        value = json.loads(read_regular(path, _LARGEST)) if path.suffix == ".json" else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(mapping(value).get("events"), list)


def agent_of_test(path: Path) -> Path | None:
    """Return the folder of the agent whose `adk test` runs the file, or None if it is no such file."""
    path = path.absolute()
    if path.parent.name != TESTS or path.suffix != ".json":
        return None
    folder = path.parent.parent
    return folder if is_agent(folder) else None


def is_agent(folder: Path) -> bool:
    """Return whether a folder defines an agent."""
    try:
        files = {entry.name for entry in os.scandir(folder) if entry.is_file()}
    except OSError:
        return False
    return find_definition(folder, files)[0] is not None


def conversations_in(folder: Path) -> Iterator[Path]:
    """Yield the saved conversations in a folder, sorted by path.

    Those are the sessions in a folder `tests` of an agent, and the folders of conformance test cases: the folder
    itself, or up to two levels below it, as ADK orders them by category. Other files and folders are not searched.
    """
    if folder.absolute().name == TESTS and is_agent(folder.absolute().parent):
        yield from sorted(file for file in folder.glob("*.json") if is_conversation(file))
    for pattern in (SPEC, f"*/{SPEC}", f"*/*/{SPEC}"):
        yield from sorted(file.parent for file in folder.glob(pattern) if _has_recordings(file.parent))


def _has_recordings(folder: Path) -> bool:
    return any((folder / _RECORDINGS.format(way)).is_file() for way in _WAYS)


def _conformance(folder: Path) -> SavedConversation:
    if not (folder / SPEC).is_file():
        raise NoSessionError(f"{folder.name or folder}: this is no test case of ADK's conformance tests: no {SPEC}")
    way = next((way for way in _WAYS if (folder / _RECORDINGS.format(way)).is_file()), None)
    if way is None:
        raise NoSessionError(f"{folder.name}: nothing is recorded: run `adk conformance record` first")
    session = folder / _SESSION.format(way)
    captured = case_from_conformance(
        _yaml(folder / SPEC),
        _yaml(folder / _RECORDINGS.format(way)),
        _yaml(session) if session.is_file() else None,
    )
    return SavedConversation(captured, folder.absolute().name)


def _yaml(file: Path) -> Any:
    try:
        return yaml_data.yaml_data(read_regular(file, yaml_data.LARGEST).decode("utf-8-sig"))
    except yaml_data.YamlError as error:
        raise NoSessionError(f"{file.name}: {error}") from None
    except UnicodeDecodeError:
        raise NoSessionError(f"{file.name}: this is not UTF-8") from None

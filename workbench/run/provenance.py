"""Facts about a run besides its evalsets: versions, the commit, models and the agents' files.

Files are identified by the hash of their content without secrets. The database stores each content once, so that two
runs can be compared line by line.
"""

import asyncio
import contextlib
import functools
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.environment import adk_version
from workbench.events.events import Sources
from workbench.files.file_access import content_hash, read_regular
from workbench.files.git import commit_of
from workbench.files.run_options import PlaceChoice
from workbench.freshness.agent_inputs import files_in
from workbench.run.plan.plan import AgentSetting

_SUFFIXES = frozenset(
    {".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".json", ".j2", ".jinja", ".jinja2", ".prompt", ".tmpl"}
)
_EVALUATION = (
    "test_config.json",
    "eval_config.json",
    ".evalset.json",
    ".test.json",
    ".triage.json",
    ".evalset_result.json",
)
"""Endings of evaluation files, which are not compared as files of the agent."""
_LARGEST = 256 * 1024
_FILES = 300
_TOGETHER = 4 * 1024 * 1024
_MODEL = re.compile(
    rb"""\bmodel(?:_name)?\s*[=:]\s*(["']?)([A-Za-z][\w.:/@-]{2,80})|["'](gemini-[\w.-]{1,60})["']""", re.ASCII
)
_GIT_SECONDS = 2.0
_WAIT_FOR_GIT = 0.2

Clean = Callable[[str], str]
"""A function that removes secrets from a text."""


@dataclass(frozen=True)
class SourceFiles:
    """The files of the agents.

    `sources` maps agent → path relative to the root → digest, and `contents` maps each digest to its content. `models`
    are the models that the sources name, by agent.
    """

    sources: Sources
    contents: Mapping[str, bytes]
    models: Mapping[str, Any]


def read_sources(
    settings: Mapping[str, AgentSetting],
    footprints: Mapping[Path, Collection[Path]],
    clean: Clean,
    known: Mapping[str, Mapping[str, Any]] | None = None,
) -> SourceFiles:
    """Read the files in each agent's folder, and other files that it read. Call it in a thread.

    Files in `known` are left out, and so are unreadable files, large files and those beyond the limits.
    """
    sources: dict[str, dict[str, Any]] = {}
    contents: dict[str, bytes] = {}
    models: dict[str, Any] = {}
    for name, setting in settings.items():
        of_agent = sources.setdefault(name, {})
        named: set[str] = set()
        seen, left = (known or {}).get(name, {}), _TOGETHER
        folder = setting.agent.folder
        for path in (*files_in(folder, ()), *sorted(footprints.get(folder, ()))):
            if not is_source(path.name):
                continue
            relative = os.path.relpath(path, setting.root).replace(os.sep, "/")
            if relative in seen or relative in of_agent or len(of_agent) >= _FILES:
                continue
            try:
                content = read_regular(path, min(left, _LARGEST))
            except OSError:
                continue
            left -= len(content)
            cleaned = clean(content.decode("utf-8", "replace")).encode("utf-8", "replace")
            digest = content_hash(cleaned)
            of_agent[relative], contents[digest] = digest, cleaned
            named.update(_models(cleaned, in_quotes=relative.endswith(".py")))
        if not known:
            models[name] = sorted(named)
    return SourceFiles(sources, contents, models)


def versions(settings: Iterable[AgentSetting], place: PlaceChoice | None = None) -> dict[str, Any]:
    """Return the versions of the workbench, its Python, and google-adk in the first interpreter that has it.

    Other machines have the same ones. Then the place is named, too.
    """
    found = {"python": platform.python_version(), **_own_version()}
    if place is not None and not place.is_local:
        found["place"] = place.word
    for setting in settings:
        version = adk_version(setting.interpreter.path)
        if version is not None:
            found["google-adk"] = version
            break
    return found


@functools.cache
def _own_version() -> Mapping[str, str]:
    """Return the version of this workbench. It is cached, because the lookup reads all installed packages."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return {"agent-workbench": importlib.metadata.version("agent-workbench")}
    return {}


class Commit:
    """The git commit of a folder, read in the background because git may be slow."""

    def __init__(self, root: Path) -> None:
        self._reading = asyncio.create_task(asyncio.to_thread(commit_of, root, _GIT_SECONDS))

    async def get(self) -> dict[str, Any]:
        """Return `{"commit", "dirty"}`, or {} if there is no commit or git is too slow."""
        done, _ = await asyncio.wait([self._reading], timeout=_WAIT_FOR_GIT)
        return self._reading.result() if done else {}


def _models(content: bytes, *, in_quotes: bool) -> Iterator[str]:
    """Yield the names of models. With `in_quotes`, for Python, skip unquoted words: they are types or variables."""
    for quote, first, second in _MODEL.findall(content):
        if second or quote or not in_quotes:
            yield (first or second).decode("ascii")


def is_source(name: str) -> bool:
    """Return whether a file of this name can be a part of an agent: code, a prompt or data, but no evaluation file."""
    # A file that starts with a dot may be an `.env`.
    return not name.startswith(".") and Path(name).suffix in _SUFFIXES and not name.endswith(_EVALUATION)

"""A filter for the files that an agent may depend on: those it read, and those it may read in the next run."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from workbench.agents.workspace.criteria_choice import CONFIG_FILES
from workbench.agents.workspace.discovery import DEFINITION_FILES, is_evalset_file
from workbench.agents.workspace.python_source import LARGEST_SOURCE
from workbench.files.file_access import read_regular
from workbench.files.walk import FROZEN_SUFFIX, Walk

_MODULES = (".py", ".pyi", ".so")
_PAPERS = re.compile(r"(readme|changelog|changes|license|licence|contributing|authors|notice|todo)\b", re.IGNORECASE)
_TEST_FILE = re.compile(r"(test_.*|.*_test|conftest)\.py")
_SOURCES_READ = 200
_NOT_THE_AGENTS = (".triage.json", ".evalset_result.json", ".pyc", ".frozen.json")


class AgentFileFilter:
    """A filter for the files that the agent in `folder` may depend on.

    `read` are the files that it read. It is None if the agent never ran or did not end; then each file of its folder
    counts. `others` are the folders of other agents. `results` are folders that the agent writes to.
    """

    def __init__(
        self, folder: Path, read: Collection[Path] | None, others: Iterable[Path], results: Collection[Path] = ()
    ) -> None:
        self._folder = folder
        self._read = None if read is None else frozenset(read)
        self._inside = [other for other in others if other != folder and other.is_relative_to(folder)]
        self._beside = {(path.parent, path.suffix) for path in read or () if path.parent not in results}

    def counts(self, path: Path) -> bool:
        """Return whether the agent may depend on a file."""
        if self._read is not None and path in self._read:
            return True
        if _is_no_source(path) or not path.is_relative_to(self._folder):
            return False
        return not any(path.is_relative_to(other) for other in self._inside) and self._is_own(path)

    def _is_own(self, path: Path) -> bool:
        """Return whether an unread file of the agent's folder counts.

        A module counts, because other cases may import it. Another file counts if a file of the same type was read in
        its folder, unless the agent writes there.
        """
        folder = self._folder
        if path.name in DEFINITION_FILES and path.parent == folder:
            return True
        if path.suffix in _MODULES:
            inside = path.relative_to(folder).parts
            return not (_TEST_FILE.fullmatch(path.name) or {"tests", "test"} & set(inside[:-1]))
        if path.name.startswith("."):
            return False
        return self._read is None or (path.parent != folder and (path.parent, path.suffix) in self._beside)


def files_in(folder: Path, others: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of an agent that the watch checks, without those of other agents.

    For an unreadable folder, the path of the folder is yielded instead of its files.
    """
    inside = [other for other in others if other != folder and other.is_relative_to(folder)]
    walk = Walk(folder)
    for step in walk:
        if not any(step.path.is_relative_to(other) for other in inside):
            yield from (step.path / name for name in step.files)
    yield from walk.unreadable


def may_name(path: Path, folder: Path, others: Iterable[Path]) -> bool:
    """Return whether the sources in `folder` name a file outside of it. Used for agents that never ran."""
    if _is_no_source(path) or path.is_relative_to(folder):
        return False
    owners = [other for other in others if path.is_relative_to(other)]
    # For another agent's file, search for that agent's folder, because names like `agent` are everywhere.
    if owners:
        names = {owner.name for owner in owners}
    elif path.suffix in _MODULES:
        names = {path.stem, path.parent.name} - {"__init__"}
    else:
        names = {path.name}
    return _named_in_sources(names, folder)


def _is_no_source(path: Path) -> bool:
    """Return whether a file has its own rule (evalset, config, environment), or is for people only."""
    name = path.name
    return (
        is_evalset_file(path)
        or name.endswith(_NOT_THE_AGENTS)
        or name in CONFIG_FILES
        or name == ".env"
        or path.parent.name.endswith(FROZEN_SUFFIX)
        or bool(_PAPERS.match(name))
    )


def _named_in_sources(names: Iterable[str], folder: Path) -> bool:
    word = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names))
    for number, source in enumerate(folder.rglob("*.py")):
        if number >= _SOURCES_READ:
            return True
        try:
            if word.search(read_regular(source, LARGEST_SOURCE).decode("utf-8", "replace")):
                return True
        except OSError:
            continue  # The import of the agent gives a better message.
    return False

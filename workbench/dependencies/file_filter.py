"""Which files an agent may depend on: those it was seen to read, and those that it would read if it ran now."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from workbench.agents.criteria_choice import CONFIG_NAMES
from workbench.agents.discovery import DEFINITION_FILES, EVALSET_SUFFIXES
from workbench.agents.python_source import LARGEST_SOURCE
from workbench.agents.walk import Walk
from workbench.regular_file import read_regular

_MODULES = (".py", ".pyi", ".so")
_PAPERS = re.compile(r"(readme|changelog|changes|license|licence|contributing|authors|notice|todo)\b", re.IGNORECASE)
_TEST_FILE = re.compile(r"(test_.*|.*_test|conftest)\.py")
_SOURCES_READ = 200
_NOT_THE_AGENTS = (".triage.json", ".evalset_result.json", ".pyc")


class AgentFileFilter:
    """The files that the agent in `folder` may depend on. `read` are those it was seen to read; if that is None,
    because it never ran or did not come to its end, each file of its folder counts. `others` are the folders of other
    agents, `results` those that the agent writes into."""

    def __init__(
        self, folder: Path, read: Collection[Path] | None, others: Iterable[Path], results: Collection[Path] = ()
    ) -> None:
        self._folder = folder
        self._read = None if read is None else frozenset(read)
        self._inside = [other for other in others if other != folder and other.is_relative_to(folder)]
        self._beside = {(path.parent, path.suffix) for path in read or () if path.parent not in results}

    def counts(self, path: Path) -> bool:
        """Whether the agent may depend on a file."""
        if self._read is not None and path in self._read:
            return True
        if _is_no_source(path) or not path.is_relative_to(self._folder):
            return False
        return not any(path.is_relative_to(other) for other in self._inside) and self._is_own(path)

    def _is_own(self, path: Path) -> bool:
        """Whether a file of the agent's own folder counts that it was not seen to read. A module may be imported where
        no case has led yet. Other files count if one like it, beside it, was read, where the agent writes nothing."""
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
    """Yield the files in the folders of an agent that the watch looks at, too, without those of other agents. Instead
    of the files of a folder that cannot be read, its own path comes."""
    inside = [other for other in others if other != folder and other.is_relative_to(folder)]
    walk = Walk(folder)
    for step in walk:
        if not any(step.path.is_relative_to(other) for other in inside):
            yield from (step.path / name for name in step.files)
    yield from walk.unreadable


def may_name(path: Path, folder: Path, others: Iterable[Path]) -> bool:
    """Whether the sources in `folder` name a file outside of it: all that is known of an agent that never ran."""
    if _is_no_source(path) or path.is_relative_to(folder):
        return False
    owners = [other for other in others if path.is_relative_to(other)]
    # Of another agent's file, the folder of that agent: `agent` and `prompt.txt` stand everywhere.
    if owners:
        names = {owner.name for owner in owners}
    elif path.suffix in _MODULES:
        names = {path.stem, path.parent.name} - {"__init__"}
    else:
        names = {path.name}
    return _named_in_sources(names, folder)


def _is_no_source(path: Path) -> bool:
    """Whether a file has a rule of its own, as evalsets, configs and environments have, or is read by people only."""
    name = path.name
    return (
        name.endswith((*EVALSET_SUFFIXES, *_NOT_THE_AGENTS))
        or name in CONFIG_NAMES
        or name == ".env"
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
            continue  # The agent's own import will say it better.
    return False

"""Which of some files an agent may read: those it was seen to read, and those that it would be if it ran now."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from workbench.agents.criteria_choice import CONFIG_NAMES
from workbench.agents.discovery import DEFINITION_FILES, EVALSET_SUFFIXES
from workbench.agents.python_source import LARGEST_SOURCE
from workbench.agents.workspace import Workspace
from workbench.regular_file import read_regular

_MODULES = (".py", ".pyi", ".so")
_PAPERS = re.compile(r"(readme|changelog|changes|license|licence|contributing|authors|notice|todo)\b", re.IGNORECASE)
_TEST_FILE = re.compile(r"(test_.*|.*_test|conftest)\.py")
_SOURCES_READ = 200
_TRIAGE = ".triage.json"


def may_read(
    folder: Path, changed: Iterable[Path], footprint: Collection[Path] | None, workspace: Workspace
) -> set[Path]:
    """Of the files that changed, those on which the agent in `folder` may depend. `footprint`: the files it was seen
    to read; None: it never ran."""
    others = [agent.folder for agent in workspace.agents if agent.folder != folder]
    footprint = footprint or None
    found = set()
    for path in changed:
        if footprint is not None and path in footprint:
            found.add(path)
        elif _is_no_source(path):
            continue
        elif path.is_relative_to(folder):
            if not _is_anothers(path, folder, others) and _own(path, folder, footprint):
                found.add(path)
        elif footprint is None and _named_in_sources(_names(path, others), folder):
            found.add(path)
    return found


def _is_no_source(path: Path) -> bool:
    """Evalsets, configs and environments have rules of their own; what the user says of verdicts, and papers about the
    project, are read by people."""
    name = path.name
    return (
        name.endswith((*EVALSET_SUFFIXES, _TRIAGE))
        or name in CONFIG_NAMES
        or name == ".env"
        or bool(_PAPERS.match(name))
    )


def _is_anothers(path: Path, folder: Path, others: Iterable[Path]) -> bool:
    """Whether the file lies in the folder of an agent that lies in this one's."""
    return any(path.is_relative_to(other) for other in others if other.is_relative_to(folder))


def _own(path: Path, folder: Path, footprint: Collection[Path] | None) -> bool:
    """A file of the agent's own folder that it was not seen to read. A module may be imported where no case has led
    yet; of other files only the footprint tells, and whether others like it, beside it, were read."""
    if path.name in DEFINITION_FILES and path.parent == folder:
        return True
    if path.suffix in _MODULES:
        inside = path.relative_to(folder).parts
        return not (_TEST_FILE.fullmatch(path.name) or {"tests", "test"} & set(inside[:-1]))
    if footprint is None:
        return not path.name.startswith(".")
    siblings = (other for other in footprint if other.parent == path.parent and other.suffix == path.suffix)
    return path.parent != folder and not path.name.startswith(".") and any(True for _ in siblings)


def _names(path: Path, others: Iterable[Path]) -> set[str]:
    """One of what a source must name to read the file: the module or package that it is, or its name. Of another
    agent's file, the folder of that agent: `agent` and `prompt.txt` stand everywhere."""
    owners = [other for other in others if path.is_relative_to(other)]
    if owners:
        return {owner.name for owner in owners}
    if path.suffix not in _MODULES:
        return {path.name}
    return {path.stem, path.parent.name} - {"__init__"}


def _named_in_sources(names: Iterable[str], folder: Path) -> bool:
    """Whether a source of the agent holds one of these: what can be known of an agent that never ran."""
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

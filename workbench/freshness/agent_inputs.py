"""An agent's files, environment, interpreter and packages as inputs of a verdict.

Its files are those that it used, and those that it may read in the next run.
"""

import contextlib
import functools
import importlib.metadata
import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from workbench.agents.discovery import DEFINITION_FILES, is_evalset_file
from workbench.agents.environment import AgentEnvironment, package_folders
from workbench.agents.python_source import LARGEST_SOURCE
from workbench.agents.workspace import CONFIG_FILES
from workbench.files.file_access import read_regular
from workbench.files.walk import FROZEN_SUFFIX, Walk, relative_to
from workbench.store.digests import Digests
from workbench.store.inputs import INTERPRETER, ONLY_SENT, Bundle

_FAMILIES = re.compile(
    r"^(?:GOOGLE_|GEMINI_|VERTEX|ADK_|OPENAI_|AZURE_|ANTHROPIC_|LITELLM|AWS_|OLLAMA_|AGENT_WORKBENCH_|PYTHON(?:PATH|HOME|HASHSEED|OPTIMIZE)$)"
    r"|_(?:API_KEY|API_BASE|BASE_URL)$|^(?:HTTPS?|ALL|NO)_PROXY$",
    re.IGNORECASE,
)
"""Environment variables that models, clients and interpreters read, even if the agent's sources do not name them."""
_OF_THE_TERMINAL = frozenset({"PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "WINDOWID", "DISPLAY"})
_NAMED = re.compile(rb"\b[A-Z][A-Z0-9_]{2,}\b")
_LARGEST_READ = 1 << 20
_MOST_NAMES = 500
MANY_NAMES = "*"
"""Placeholder for the names of unset variables if there are too many. Then the sources are searched again for names."""
_INSTALLED = (".dist-info", ".egg-info", ".egg-link")
_OWN = "workbench"
"""The name under which the packages include the workbench's own version."""
_MOST_FILES = 2000
"""Maximum number of files in a folder that have a digest each. More files share one digest, under `FOLDER/`."""
_MODULES = (".py", ".pyi", ".so")
_DOCUMENTATION = re.compile(
    r"(readme|changelog|changes|license|licence|contributing|authors|notice|todo)\b", re.IGNORECASE
)
_TEST_FILE = re.compile(r"(test_.*|.*_test|conftest)\.py")
_SOURCES_READ = 200
_RESULT_SUFFIXES = (".triage.json", ".evalset_result.json", ".pyc", ".frozen.json")


@dataclass
class Touched:
    """An agent's use of the project's files in all runs so far.

    `files` were read, `folders` were listed, and `written` were written. Written files are results, even if they are
    read later.
    """

    files: set[Path] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    written: set[Path] = field(default_factory=set)
    written_in: set[Path] = field(init=False)
    """The folders of the written files."""

    def __post_init__(self) -> None:
        self.written_in = {path.parent for path in self.written}

    def add_written(self, paths: set[Path]) -> None:
        """Record written files. The time depends only on the number of new paths."""
        fresh = paths - self.written
        self.written |= fresh
        self.written_in |= {path.parent for path in fresh}
        self.files -= fresh

    def __or__(self, other: "Touched") -> "Touched":
        written = self.written | other.written
        return Touched((self.files | other.files) - written, self.folders | other.folders, written)


ALL, MODULES, LISTED, WRITTEN, RESULTS = "all", "modules", "listed", "written", "results"
"""Values of the input `agent_folder`, which say what counts in a folder.

`ALL`: each file. `MODULES`: modules, and files that were read. `LISTED`: the names of the files, which have this value
in `agent_file`. `WRITTEN` (for a file): nothing, because the agent wrote it. `RESULTS`: no new files, because the agent
writes to the folder.
"""


class AgentFiles:
    """The current files of the agent in `folder`. `others` are the folders of other agents."""

    def __init__(self, folder: Path, root: Path, others: Collection[Path], digests: Digests) -> None:
        self._folder, self._root, self._others, self._digests = folder, root, others, digests
        self._names: dict[Path, frozenset[str]] = {}
        """Cached words by Python file."""

    @functools.cached_property
    def own(self) -> tuple[Path, ...]:
        """All files in the agent's folder, as in `files_in`."""
        return tuple(files_in(self._folder, self._others))

    def read_all(self) -> None:
        """Compute the digests of all files in the agent's folder that may be inputs, for later calls of `bundle`."""
        self._digests.files(self.counting_files(None))

    def bundle(
        self, read: Collection[Path], listed: Iterable[Path], *, written: Collection[Path] = (), everything: bool
    ) -> Bundle:
        """Return the digests of the files that an execution depends on.

        `read` are the files that it read, and `listed` the folders that it listed. With `everything`, all files of the
        agent's folder count, too, because its reads are not known. `written` are files that the agent writes.
        """
        scopes = {self._name(path.parent): RESULTS for path in written if path.is_relative_to(self._folder)}
        scopes[self._name(self._folder)] = ALL if everything else MODULES
        scopes |= {f"{self._name(folder)}/": LISTED for folder in listed}
        return self._bundle(read, scopes, _MOST_FILES)

    def bundle_like(self, then: Mapping[str, str], scopes: Mapping[str, str]) -> Bundle:
        """Return the current state of the recorded files (`then`) and folders (`scopes`), and of new files there."""
        read = [self._root / name for name, value in then.items() if value != LISTED and not name.endswith("/")]
        found = self._bundle(read, scopes, 0 if f"{self._name(self._folder)}/" in then else _MOST_FILES)
        written = {name for name, scope in scopes.items() if scope == WRITTEN}
        files = {name: value for name, value in found.inputs["agent_file"].items() if name not in written}
        files |= {name: value for name, value in then.items() if name in written}
        return Bundle({**found.inputs, "agent_file": files})

    def names_in_sources(self, read: Iterable[Path]) -> frozenset[str]:
        """Return words in Python files that may be names of environment variables.

        The files are those in the agent's folder, and others: modules that it `read`, and functions that judge.
        """
        sources = {path for path in (*self.counting_files(None), *read) if path.suffix == ".py"}
        return frozenset[str]().union(*map(self._names_in, sources))

    def _names_in(self, path: Path) -> frozenset[str]:
        found = self._names.get(path)
        if found is None:
            words: list[bytes] = []
            with contextlib.suppress(OSError):
                words = _NAMED.findall(read_regular(path, _LARGEST_READ))
            found = self._names[path] = frozenset(word.decode("ascii") for word in words)
        return found

    def _bundle(self, read: Collection[Path], scopes: Mapping[str, str], most: int) -> Bundle:
        everything = scopes.get(self._name(self._folder)) == ALL
        seen = set(read)
        results = {self._root / folder for folder, scope in scopes.items() if scope == RESULTS}
        own = [path for path in self.counting_files(None if everything else seen, results) if path not in seen]
        digests = self._digests.files((*sorted(seen), *own))
        files = {self._name(path): digests[path] for path in seen}
        files |= self._named({self._name(path): digests[path] for path in own}, f"{self._name(self._folder)}/", most)
        for folder in (folder for folder, scope in scopes.items() if scope == LISTED):
            listed = {folder + name: LISTED for name in _names_in(self._root / folder)}
            files = {**self._named(listed, folder, _MOST_FILES), **files}
        return Bundle({"agent_file": files, "agent_folder": dict(scopes)})

    def _named(self, files: dict[str, str], folder: str, most: int) -> dict[str, str]:
        """Return the digests of files, or a single digest under the name of their folder if there are too many."""
        if len(files) <= most:
            return files
        return {folder: self._digests.text(json.dumps(sorted(files.items())).encode("ascii"))}

    def counting_files(self, read: Collection[Path] | None, results: Collection[Path] = ()) -> list[Path]:
        """Return the files in the agent's folder that may be inputs, as `AgentFileFilter` decides."""
        return list(filter(AgentFileFilter(self._folder, read, self._others, results).counts, self.own))

    def _name(self, path: Path) -> str:
        return relative_to(path, self._root)


def environment_bundles(
    environment: AgentEnvironment,
    root: Path,
    names: Collection[str],
    digests: Digests,
    sent: Collection[str] | None = None,
) -> tuple[Bundle, Bundle]:
    """Return the variables of the agent's `.env`, and other variables that the agent may use.

    On this machine, the others are those in `names`, and those that models and clients read. An unset variable of
    `names` has the value "". If too many are unset, `MANY_NAMES` stands for them. On another machine, the others are
    those in `sent`, which are sent there.
    """
    own = set(environment.names)
    unset = {name for name in names if name not in environment.values}
    if len(unset) > _MOST_NAMES or MANY_NAMES in names:
        names = {MANY_NAMES}.union(names) - (unset - {MANY_NAMES})
    relevant = [*names, *(name for name in environment.values if _FAMILIES.search(name))]
    others = set(relevant) - own - _OF_THE_TERMINAL
    if sent is not None:
        others = {*(set(sent) - own), ONLY_SENT}

    def bundle(wanted: Collection[str], file: str | None) -> Bundle:
        values = {name: _value(environment.values.get(name), name, digests) for name in sorted(wanted)}
        return Bundle({"environment": values}, file)

    file = None if environment.file is None else relative_to(environment.file, root)
    return bundle(own, file), bundle(others, None)


def packages_bundle(interpreter: Path, root: Path) -> Bundle:
    """Return the agent's interpreter, the versions of its packages, and the version of the workbench.

    The version of a package that is installed in editable mode from `root` does not count: the files that the agent
    reads do.
    """
    own = {INTERPRETER: str(interpreter), _OWN: _workbench()}
    return Bundle({"packages": {**_installed(interpreter, root), **own}})


def _value(value: str | None, name: str, digests: Digests) -> str:
    """Return a digest of a variable's value, too short to guess the value from it, or "" for None."""
    return "" if value is None else digests.text(f"{name}={value}".encode("utf-8", "surrogateescape"), size=4)


def _installed(interpreter: Path, root: Path) -> dict[str, str]:
    versions: dict[str, str] = {}
    for folder in package_folders(interpreter):
        try:
            entries = sorted(os.listdir(folder))  # noqa: PTH208
        except OSError:
            versions[str(folder)] = "unreadable"
            continue
        for entry in entries:
            if entry.endswith(_INSTALLED) and not entry.startswith("~"):  # pip is removing such an entry.
                name, _, version = entry.rpartition(".")[0].partition("-")
                name = re.sub(r"[-_.]+", "-", name).lower()
                # The version of an egg is followed by Python's.
                version = "in place" if _is_in_place(folder / entry, root) else version.partition("-py")[0]
                versions[name] = f"{versions[name]}, {version}" if name in versions else version
    return versions


def _is_in_place(folder: Path, root: Path) -> bool:
    """Return whether a package is installed in editable mode from sources in `root`."""
    try:
        source = json.loads(read_regular(folder / "direct_url.json", _LARGEST_READ))
        is_editable = source["dir_info"]["editable"] is True
        return is_editable and Path(unquote(urlsplit(source["url"]).path)).is_relative_to(root)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


@functools.cache
def _workbench() -> str:
    """Return the versions of the workbench (if installed) and its Python. Cached: the lookup reads all packages."""
    python = ".".join(map(str, sys.version_info[:3]))
    try:
        return f"{importlib.metadata.version('agent-workbench')}, Python {python}"
    except importlib.metadata.PackageNotFoundError:
        return f"Python {python}"


def _names_in(folder: Path) -> list[str]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    return [name for name in names if not name.startswith((".", "__pycache__"))]


class AgentFileFilter:
    """A filter for the files that the agent in `folder` may depend on.

    `read` are the files that it read, or None if the agent never ran or did not end. Then files of all types in its
    folder count. `others` are the folders of other agents. `results` are folders that the agent writes to.
    """

    def __init__(
        self, folder: Path, read: Collection[Path] | None, others: Iterable[Path], results: Collection[Path] = ()
    ) -> None:
        self._folder = folder
        self._read = None if read is None else frozenset(read)
        self._inside = [other for other in others if other != folder and other.is_relative_to(folder)]
        self._beside = {(path.parent, path.suffix) for path in read or () if path.parent not in results}

    def counts(self, path: Path) -> bool:
        """Return whether the agent may depend on a file.

        Modules in the agent's folder count even if it did not read them, because other cases may import them. Tests
        do not. Another file in a subfolder counts if the agent read a file of the same type there, unless the agent
        writes to that subfolder.
        """
        if self._read is not None and path in self._read:
            return True
        if _is_no_source(path) or not path.is_relative_to(self._folder):
            return False
        if any(path.is_relative_to(other) for other in self._inside):
            return False
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
    """Return whether the sources of an agent in `folder` name a file outside of it, or are too many to be searched."""
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


def _is_no_source(path: Path) -> bool:
    """Return whether a file is no source of an agent: evalset, config, `.env`, recording, result or documentation."""
    name = path.name
    return (
        is_evalset_file(path)
        or name.endswith(_RESULT_SUFFIXES)
        or name in CONFIG_FILES
        or name == ".env"
        or path.parent.name.endswith(FROZEN_SUFFIX)
        or bool(_DOCUMENTATION.match(name))
    )

"""Agents, evalsets and look-alikes in a folder, found by reading files.

An agent is a module that defines it (`workbench.agents.python_source`), or a `root_agent.yaml`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from workbench.agents.python_source import agent_attribute
from workbench.files.file_access import open_regular, real_path
from workbench.files.project_root import absolute, find_root, is_project
from workbench.files.walk import Folder, Walk, relative_to

PYTHON_FILES = ("agent.py", "__init__.py")
YAML_FILE = "root_agent.yaml"
EVALSET_SUFFIXES = (".evalset.json", ".test.json")
DEFINITION_FILES = frozenset({*PYTHON_FILES, YAML_FILE})
_RESULT_SUFFIX = ".evalset_result.json"
_DATASETS = "datasets"
"""The folder in which google-agents-cli keeps its datasets."""
_RESULTS = "artifacts"
"""The folder in which google-agents-cli keeps traces and results. Traces have the form of datasets."""
_HEADS_READ = 2000
_OTHER_NAME = (
    "looks like an evalset, but its name does not end in .evalset.json or .test.json: name it explicitly to open it"
)
HEAD_BYTES = 16 * 1024
_DATASET_CASES = re.compile(rb'"eval_?cases"\s*:', re.IGNORECASE)
_DATASET_KEYS = re.compile(rb'"(?:eval_?case_?id|prompt|agent_?data|user_?scenario)"\s*:', re.IGNORECASE)
_CASES = re.compile(rb'"(?:eval_cases|evalCases|expected_tool_use)"\s*:')
_QUERY = re.compile(rb'"query"\s*:')
_ANSWER = re.compile(rb'"(?:reference|expected_intermediate_agent_responses)"\s*:')
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """A folder that defines an agent.

    `name` is the folder's name, or the path relative to the root if two agents share it. `folder` is absolute, as found
    (links are not resolved). `definition` is the file that defines the agent. `attribute` is the name in it that the
    worker uses: `app`, `root_agent` or `get_agent_async`, "" for `root_agent.yaml`.
    """

    name: str
    folder: Path
    kind: Literal["python", "yaml"]
    definition: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that was found but not used, with the reason as text.

    `evalset` means that it looks like an evalset and can be opened by name.
    """

    path: Path
    reason: str
    evalset: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of a walk: agents, evalset files, ignored paths (each sorted by path) and the folders visited."""

    agents: tuple[AgentFolder, ...]
    evalsets: tuple[Path, ...]
    ignored: tuple[Ignored, ...]
    folders: frozenset[Path]


def discover(base: Path) -> Discovery:
    """Return the agents, evalsets and ignored paths in and below `base` (an absolute path).

    Agents are named by their folders; `name_agents` makes the names distinct. A missing or unreadable `base` is one
    entry of `ignored`.
    """
    walk = Walk(base)
    agents: list[AgentFolder] = []
    evalsets: list[Path] = []
    ignored: list[Ignored] = []
    others: list[Path] = []
    folders: set[Path] = set()
    for folder in walk:
        folders.add(folder.path)
        if not DEFINITION_FILES.isdisjoint(folder.files):
            agent, unreadable = _agent_in(folder)
            ignored += unreadable
            agents += [agent] if agent else []
        for name in folder.files:
            if name.endswith(".json"):
                _classify(folder, name, evalsets, others, ignored)
    ignored += _look_alikes(base, others)
    ignored += [Ignored(path, reason) for path, reason in walk.skipped]
    return Discovery(
        tuple(sorted(agents, key=lambda agent: agent.folder.parts)),
        tuple(sorted(evalsets, key=lambda path: path.parts)),
        tuple(sorted(ignored, key=lambda item: item.path.parts)),
        frozenset(folders),
    )


def agent_at(folder: Path) -> tuple[AgentFolder | None, tuple[Ignored, ...]]:
    """Return the agent that `folder` itself defines, or None, and its files that are unreadable or not valid Python.

    `agent.py` comes before `__init__.py`, which usually only imports the agent, and Python before YAML.
    """
    unreadable: list[Ignored] = []
    for file in (folder / name for name in PYTHON_FILES):
        if file.is_file():
            attribute, problem = agent_attribute(file)
            if problem:
                unreadable.append(Ignored(file, problem))
            if attribute:
                return AgentFolder(folder.name, folder, "python", file, attribute), tuple(unreadable)
    file = folder / YAML_FILE
    return AgentFolder(folder.name, folder, "yaml", file, "") if file.is_file() else None, tuple(unreadable)


def name_agents(agents: Iterable[AgentFolder], root: Path) -> tuple[AgentFolder, ...]:
    """Return the agents with distinct names.

    A name is the folder's name. If two agents share it, it is the path relative to `root`. If that clashes too (a root
    that is an agent itself), it is the path relative to the folder above `root`.
    """
    found = list(agents)
    counts = Counter(agent.folder.name for agent in found)
    shared = [agent.folder for agent in found if counts[agent.folder.name] > 1]
    names = {agent.folder: agent.folder.name for agent in found}
    names |= {folder: _relative(folder, root) for folder in shared}
    if len(set(names.values())) < len(names):
        names |= {folder: _relative(folder, root.parent) for folder in shared}
    return tuple(replace(agent, name=names[agent.folder]) for agent in found)


def _relative(folder: Path, root: Path) -> str:
    return folder.name if folder == root else relative_to(folder, root)


def _agent_in(folder: Folder) -> tuple[AgentFolder | None, Sequence[Ignored]]:
    """Return the agent of one folder of a walk, or None, and its unusable files.

    If git ignores one of the files that may define an agent, the folder defines none.
    """
    names = DEFINITION_FILES.intersection(folder.files)
    ignored = [Ignored(folder.path / name, reason) for name in names if (reason := folder.ignored(name))]
    return (None, ignored) if ignored else agent_at(folder.path)


def _classify(folder: Folder, name: str, evalsets: list[Path], others: list[Path], ignored: list[Ignored]) -> None:
    """Add a JSON file to one of the lists. `others` gets the files without the name of an evalset."""
    path = folder.path / name
    if name.endswith(_RESULT_SUFFIX):
        ignored.append(Ignored(path, "results that ADK wrote, not an evalset"))
        return
    if not is_evalset_file(path):
        others.append(path)
        return
    if reason := "a hidden file" if name.startswith(".") else folder.ignored(name):
        ignored.append(Ignored(path, reason))
    else:  # Broken links, pipes and devices are kept: opening them gives an error instead of silence.
        evalsets.append(path)


def _look_alikes(base: Path, files: Sequence[Path]) -> list[Ignored]:
    """Return the JSON files that look like evalsets under another name, or like results of agents-cli.

    Only a limited number is checked, and only their beginnings, because a folder of data must not slow down opening. If
    there are more files, the last item says so.
    """
    found = [
        Ignored(path, "results that agents-cli wrote, not an evalset")
        if _agents_cli_folder(path) == _RESULTS
        else Ignored(path, _OTHER_NAME, True)
        for path in files[:_HEADS_READ]
        if looks_like_evalset(path)
    ]
    if len(files) > _HEADS_READ:
        reason = f"only {_HEADS_READ:,} of {len(files):,} JSON files with other names were checked for evalsets"
        found.append(Ignored(base, reason))
    return found


def is_evalset_file(path: Path) -> bool:
    """Return whether a file has the name of an evalset, or is a dataset of google-agents-cli.

    Other evalsets are only opened if the user names them.
    """
    if path.name.endswith(EVALSET_SUFFIXES):
        return True
    if path.suffix != ".json" or _agents_cli_folder(path) != _DATASETS:
        return False
    head = _head(path)
    return bool(_DATASET_CASES.search(head) and _DATASET_KEYS.search(head))


def _agents_cli_folder(path: Path) -> str:
    """Return the name of the innermost folder of google-agents-cli that contains a file, or ""."""
    return next((step.name for step in path.parents if step.name in (_DATASETS, _RESULTS)), "")


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, or b"" if it is unreadable. The user did not name it, so this is no error."""
    try:
        with open_regular(path) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def looks_like_evalset(path: Path) -> bool:
    """Return whether the file begins like an evalset in the current schema or an old format."""
    head = _head(path)
    if _CASES.search(head):
        return True
    is_list = head.removeprefix(_MARK).lstrip().startswith(b"[")
    return is_list and bool(_QUERY.search(head)) and bool(_ANSWER.search(head))


def canonical_path(path: Path, root: Path) -> Path:
    """Return `path` as the walk from `root` reaches it.

    A file that defines an agent becomes its folder. A path through links inside the project becomes the direct path.
    Any other path outside the root stays unchanged.
    """
    if path.name in DEFINITION_FILES and path.is_file() and agent_at(path.parent)[0]:
        path = path.parent
    # A linked file keeps its own name: two agents may share one evalset through links.
    real = real_path(path) if path.is_dir() else real_path(path.parent) / path.name
    real_root = real_path(root)
    return root / real.relative_to(real_root) if real.is_relative_to(real_root) else path


def find_agent(path: Path, agents: Iterable[AgentFolder] = ()) -> AgentFolder | None:
    """Return the agent at `path` (its folder, or the file that defines it), or None.

    If the folder of one of `agents` is the same after resolving links, return that agent. Otherwise read the folder.
    """
    folder = absolute(path)
    if folder.name in DEFINITION_FILES and folder.is_file():
        folder = folder.parent
    real = real_path(folder)
    known = next((agent for agent in agents if real_path(agent.folder) == real), None)
    return known or (agent_at(folder)[0] if folder.is_dir() else None)


def discover_for(targets: Sequence[Path], root: Path) -> tuple[Discovery, tuple[Path, ...]]:
    """Return the agents and evalsets in the projects of `targets`, and the top folders of these projects.

    Targets are absolute, existing paths. A target inside a folder that is normally skipped (ignored by git, hidden, an
    environment) was requested explicitly, so its folder is searched too. If nothing marks a root, an agent may be above
    it. Then the nearest folder with a `pyproject.toml` is searched instead, unless the root is the current folder.
    Agents in the folders above are found, too.
    """
    bases = [root] if is_project(root) else _outermost([_base(find_root(target)) for target in targets])
    found = [discover(base) for base in bases]
    for target in targets:
        folder = target if target.is_dir() else target.parent
        if not any(folder in discovery.folders for discovery in found):
            found.append(discover(folder))
    around = (folder for base in bases if not is_project(base) for folder in base.parents)
    above = [agent for folder in around if (agent := agent_at(folder)[0])]
    agents = {agent.folder: agent for agent in (*above, *(agent for one in found for agent in one.agents))}
    evalsets = {path for one in found for path in one.evalsets} | {path for path in targets if path.is_file()}
    return Discovery(
        agents=tuple(sorted(agents.values(), key=lambda agent: agent.folder.parts)),
        evalsets=tuple(sorted(evalsets, key=lambda path: path.parts)),
        ignored=tuple(sorted({item for one in found for item in one.ignored}, key=lambda item: item.path.parts)),
        folders=frozenset(folder for one in found for folder in one.folders),
    ), tuple(bases)


def _base(root: Path) -> Path:
    """Return the folder to search for agents: `root` if it is marked as a root or is the current folder.

    Otherwise return the nearest folder with a `pyproject.toml`, at or above `root`. Without one, return `root`.
    """
    if is_project(root) or root == Path.cwd():
        return root
    return next((step for step in (root, *root.parents) if (step / "pyproject.toml").is_file()), root)


def _outermost(folders: Iterable[Path]) -> list[Path]:
    distinct = sorted(set(folders), key=lambda folder: folder.parts)
    return [folder for folder in distinct if not any(other in folder.parents for other in distinct)]

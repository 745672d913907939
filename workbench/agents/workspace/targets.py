"""The root of a project, and the folders to search for the paths that a user named."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workbench.agents.workspace.discovery import DEFINITION_FILES, AgentFolder, Discovery, agent_at, discover
from workbench.files.file_access import real_path
from workbench.files.home import home
from workbench.files.state_folder import STATE_FOLDER
from workbench.files.walk import is_repository


def find_root(path: Path) -> Path:
    """Return the root of the project that `path` belongs to. Every command and the screen use this.

    That is the nearest folder at or above `path` with `.workbench` or `.git`; else the current folder if it contains
    `path`; else `path` itself (for a file, its folder). Absolute; links are not resolved.
    """
    folder = absolute(path)
    folder = folder if folder.is_dir() else folder.parent
    marked = next((step for step in (folder, *folder.parents) if is_project(step)), None)
    return marked or _current_around(folder) or folder


def project_around(root: Path) -> Path | None:
    """Return the root that `root` would belong to without its own `.workbench`.

    None if it is a repository or there is no other root.
    """
    if is_repository(root):
        return None
    return next((step for step in root.parents if is_project(step)), None) or _current_around(root.parent)


def _current_around(folder: Path) -> Path | None:
    """Return the current folder if it contains `folder`.

    The home folder and the root of the file system do not count: they contain everything, so everything would be
    searched.
    """
    try:
        here = Path.cwd()
    except OSError:  # it is gone
        return None
    user = home()
    if here in (Path(here.anchor), user and real_path(user)):
        return None
    return here if real_path(folder).is_relative_to(real_path(here)) else None


def is_project(folder: Path) -> bool:
    """Return whether `folder` is marked as a root."""
    return is_repository(folder) or (folder / STATE_FOLDER).is_dir()


def absolute(path: Path) -> Path:
    """Return `path` as an absolute path without "..". Links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps "..", Path.resolve follows links


def canonical_path(path: Path, root: Path) -> Path:
    """Return `path` as the walk from `root` reaches it.

    A path through links inside the project becomes the direct path. A file that defines an agent becomes its folder.
    Paths outside the root stay unchanged.
    """
    if path.name in DEFINITION_FILES and path.is_file() and agent_at(path.parent)[0]:
        path = path.parent
    # A linked file keeps its own name: two agents may share one evalset through links.
    real = real_path(path) if path.is_dir() else real_path(path.parent) / path.name
    real_root = real_path(root)
    return root / real.relative_to(real_root) if real.is_relative_to(real_root) else path


def find_agent(path: Path, agents: Iterable[AgentFolder] = ()) -> AgentFolder | None:
    """Return the agent at `path` (its folder, or the file that defines it), or None.

    It is one of `agents` if the folder is the same after resolving links. Otherwise the folder is read, wherever it is.
    """
    folder = absolute(path)
    if folder.name in DEFINITION_FILES and folder.is_file():
        folder = folder.parent
    real = real_path(folder)
    known = next((agent for agent in agents if real_path(agent.folder) == real), None)
    return known or (agent_at(folder)[0] if folder.is_dir() else None)


def discover_for(targets: Sequence[Path], root: Path) -> tuple[Discovery, tuple[Path, ...]]:
    """Return the contents of the projects of `targets`, and the folders that were walked through.

    Targets are absolute, existing paths. A target inside a folder that is normally skipped (ignored by git, hidden, an
    environment) was requested explicitly, so it is walked through too. If nothing marks a root, an agent may be above
    it. Then the folder of `pyproject.toml` is searched instead, unless the root is the current folder. An agent whose
    folder contains everything is found as well.
    """
    bases = [root] if is_project(root) else _outermost([_base(find_root(target)) for target in targets])
    found = [discover(base) for base in bases]
    for target in targets:
        folder = target if target.is_dir() else target.parent
        if not any(folder in discovery.folders for discovery in found):
            found.append(discover(folder))
    above = [agent for base in bases if not is_project(base) for agent in _agents_above(base)]
    agents = {agent.folder: agent for agent in (*above, *(agent for one in found for agent in one.agents))}
    evalsets = {path for one in found for path in one.evalsets} | {path for path in targets if path.is_file()}
    return Discovery(
        agents=tuple(sorted(agents.values(), key=lambda agent: agent.folder.parts)),
        evalsets=tuple(sorted(evalsets, key=lambda path: path.parts)),
        ignored=tuple(sorted({item for one in found for item in one.ignored}, key=lambda item: item.path.parts)),
        folders=frozenset(folder for one in found for folder in one.folders),
    ), tuple(bases)


def _base(root: Path) -> Path:
    """Return the folder to search for agents if nothing marks `root` as a root."""
    if is_project(root) or root == Path.cwd():
        return root
    steps = (root, *root.parents)
    return next((step for step in steps if (step / "pyproject.toml").is_file()), root)


def _outermost(folders: Iterable[Path]) -> list[Path]:
    distinct = sorted(set(folders), key=lambda folder: folder.parts)
    return [folder for folder in distinct if not any(other in folder.parents for other in distinct)]


def _agents_above(base: Path) -> Iterator[AgentFolder]:
    for folder in base.parents:
        agent, _ = agent_at(folder)
        if agent:
            yield agent

"""The files that can make a verdict stale, and a cheap test for changes to them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.store.inputs import KINDS

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.freshness.agent_inputs import Touched
    from workbench.store.history.latest import LatestRun
    from workbench.store.inputs import Bundle

_NAMED = tuple(kind for kind, treated in KINDS.items() if treated.place == "name")
"""The kinds of inputs whose names are paths relative to the root."""
_MOST = 20_000
Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""Modification time, size and inode of each file, or None if it does not exist."""


def workspace_files(workspace: "Workspace") -> tuple[Path, ...]:
    """Return the files that define a workspace (evalsets, configs, agents), even if they do not exist yet."""
    # Imported late, because the first frame of the screen does not need them.
    from workbench.agents.discovery import DEFINITION_FILES
    from workbench.agents.workspace import CONFIG_FILES

    found = {entry.file for entry in workspace.evalsets}
    found |= {file for entry in workspace.evalsets for file in entry.criteria.config.files}
    parents = {entry.file.parent for entry in workspace.evalsets}
    folders = {folder for parent in parents for folder in _up_to(parent, workspace.root)}
    found.update(folder / name for folder in folders for name in (*CONFIG_FILES, *DEFINITION_FILES))
    return tuple(sorted(found))


def input_files(latest: "Iterable[LatestRun]", workspace: "Workspace") -> tuple[Path, ...]:
    """Return the files on which the verdicts of these runs depend, and folders in which such files may appear.

    Folders of installed packages are included.
    """
    from workbench.agents.environment import package_folders
    from workbench.files.settings import FILE
    from workbench.store.inputs import INTERPRETER

    bundles = [bundle.inputs for run in latest for _, bundle in _recorded(run)]
    recorded = {workspace.root / name for inputs in bundles for kind in _NAMED for name in inputs.get(kind, ())}
    found = {workspace.root / FILE, *workspace_files(workspace), *recorded, *(path.parent for path in recorded)}
    interpreters = {packages.get(INTERPRETER) for inputs in bundles if (packages := inputs.get("packages"))}
    found.update(folder for python in interpreters if python for folder in package_folders(Path(python)))
    folders = {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
    found.update(
        above / name for folder in folders for above in _up_to(folder, workspace.root) for name in (".env", ".venv")
    )
    return tuple(sorted(found)[:_MOST])


def touched_in(latest: "Iterable[LatestRun]", workspace: "Workspace") -> "dict[Path, Touched]":
    """Return the files that agents read and listed in these runs, grouped by agent folder.

    An agent is left out if its record has only one digest for many files, because such a record
    does not tell which files the agent read.
    """
    from workbench.freshness.agent_inputs import ALL, LISTED, Touched

    agents = {agent.name: agent.folder for agent in workspace.agents}
    found = {folder: Touched() for folder in agents.values()}
    unknown: set[Path] = set()
    for run in latest:
        for name, bundle in _recorded(run):
            if name not in agents:
                continue
            inputs = bundle.inputs
            files, folders = inputs.get("agent_file", {}), inputs.get("agent_folder", {})
            if any(scope == ALL and f"{folder}/" in files for folder, scope in folders.items()):
                unknown.add(agents[name])
            touched = found[agents[name]]
            touched.files.update(workspace.root / file for file, digest in files.items() if digest != LISTED)
            touched.folders.update(workspace.root / folder for folder, scope in folders.items() if scope == LISTED)
    return {folder: touched for folder, touched in found.items() if touched.files and folder not in unknown}


def signature_of(files: Iterable[Path]) -> Signature:
    """Return a value that differs once one of these files or folders has changed."""
    return tuple(map(_signature, files))


def _signature(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _recorded(run: "LatestRun") -> "Iterator[tuple[str, Bundle]]":
    """Yield the inputs of the executions, each once with each agent that has it."""
    shared = {(one.ref.agent, id(one.inputs)): one.inputs for one in run.executions}
    found = {(agent, id(bundle)): bundle for (agent, _), inputs in shared.items() for bundle in inputs}
    for (agent, _), bundle in found.items():
        yield agent, bundle


def _up_to(folder: Path, root: Path) -> Iterator[Path]:
    """Yield a folder and its parents up to the root."""
    yield folder
    yield from (above for above in folder.parents if above.is_relative_to(root))

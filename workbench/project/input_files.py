"""The files whose change may make a verdict stale, and what tells cheaply whether one has changed."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.dependencies.change import KINDS

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.engine.processes.agent_process import Touched
    from workbench.history.latest import LatestRun

_NAMED = tuple(kind for kind, treated in KINDS.items() if treated.place == "name")
"""The kinds of inputs whose names are paths relative to the root."""
_MOST = 20_000
Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""Time of change, size and number of each file; None where there is none."""


def workspace_files(workspace: "Workspace") -> tuple[Path, ...]:
    """Return the files that say what a workspace is: evalsets, configs and agents, also those that may appear."""
    # The first frame of the screen needs neither.
    from workbench.agents.criteria_choice import CONFIG_NAMES
    from workbench.agents.discovery import DEFINITION_FILES

    found = {entry.file for entry in workspace.evalsets}
    found |= {entry.criteria.config.path for entry in workspace.evalsets if entry.criteria.config.path is not None}
    folders = {folder for entry in workspace.evalsets for folder in _up_to(entry.file.parent, workspace.root)}
    found.update(folder / name for folder in folders for name in (*CONFIG_NAMES, *DEFINITION_FILES))
    return tuple(sorted(found))


def input_files(latest: "Iterable[LatestRun]", workspace: "Workspace") -> tuple[Path, ...]:
    """Return the files that the verdicts of these runs depend on, and the folders in which others may appear."""
    recorded = {workspace.root / name for run in latest for name in _recorded(run)}
    found = {*workspace_files(workspace), *recorded, *(path.parent for path in recorded)}
    folders = {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
    found.update(above / ".env" for folder in folders for above in _up_to(folder, workspace.root))
    return tuple(sorted(found)[:_MOST])


def touched_in(latest: "Iterable[LatestRun]", workspace: "Workspace") -> "dict[Path, Touched]":
    """Return what agents read and listed in these runs, by the agent's folder."""
    from workbench.dependencies.agent_inputs import LISTED
    from workbench.engine.processes.agent_process import Touched

    found = {agent.name: (agent.folder, Touched()) for agent in workspace.agents}
    for run in latest:
        for name, number in {(row["ref"][0], number) for row in run.rows for number in row["inputs"]}:
            if name not in found:
                continue
            _, touched = found[name]
            inputs = run.summary.bundle(number).inputs
            files, folders = inputs.get("agent_file", {}), inputs.get("agent_folder", {})
            touched.files.update(workspace.root / file for file, digest in files.items() if digest != LISTED)
            touched.folders.update(workspace.root / folder for folder, scope in folders.items() if scope == LISTED)
    return {folder: touched for folder, touched in found.values() if touched.files}


def signature_of(files: Iterable[Path]) -> Signature:
    """Return what tells whether one of these files or folders has changed."""
    return tuple(map(_signature, files))


def _signature(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _recorded(run: "LatestRun") -> Iterator[str]:
    for number in {number for row in run.rows for number in row["inputs"]}:
        for kind in _NAMED:
            yield from run.summary.bundle(number).inputs.get(kind, ())


def _up_to(folder: Path, root: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root."""
    yield folder
    yield from (above for above in folder.parents if above.is_relative_to(root))

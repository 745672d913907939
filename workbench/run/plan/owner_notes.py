"""Notices about the owners of evalsets, and the owners that a run stores. An owner never changes silently."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from workbench.agents.workspace.targets import find_agent
from workbench.agents.workspace.workspace import EvalsetEntry, Workspace, app_name
from workbench.events.events import Noticed
from workbench.files.file_access import real_path
from workbench.files.walk import relative_to
from workbench.store.owners import LastOwner, OwnersToKeep
from workbench.text.counting import few

_NAMED = 5


def owners_to_keep(running: Iterable[EvalsetEntry], named: Iterable[EvalsetEntry], root: Path) -> OwnersToKeep:
    """Collect the owners of the `running` evalsets. `named` are the evalsets on the command line.

    An agent that is given for one run is not an owner, unless the evalset's own agent is gone.
    """
    files = {entry.file for entry in named}
    last: dict[str, LastOwner] = {}
    choices: dict[str, Path] = {}
    for entry in running:
        if entry.agent is None:
            continue
        chosen = entry.owned.rule == "given" and bool(entry.owned.lost) and entry.file in files
        if chosen:
            choices[entry.relative] = entry.agent.folder
        if chosen or entry.owned.rule != "given":
            name = entry.owned.app_name
            known = app_name(entry.document) or "" if name is None else name
            last[entry.relative] = LastOwner(relative_to(entry.agent.folder, root), known)
    return OwnersToKeep(last, choices)


def owner_notices(entries: Sequence[EvalsetEntry]) -> Iterator[Noticed]:
    """Yield notices about evalsets that were matched by location or changed their agent."""
    matched: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.agent is not None and entry.owned.rule == "location":
            matched.setdefault((entry.agent.name, entry.agent_reason), []).append(entry.relative)
    for (agent, reason), files in matched.items():
        yield Noticed("info", f"{agent} runs {few(files, _NAMED)}, {reason}", "Use --agent to name another agent")
    for entry in entries:
        if entry.agent is None or entry.owned.rule == "given":
            continue
        if entry.owned.before:
            before = Path(entry.owned.before).name or entry.owned.before
            message = f"{entry.relative} used to run with {before} and now runs with {entry.agent.name}"
            yield Noticed("warning", f"{message}: {entry.agent_reason}")


def look_alike_notices(workspace: Workspace) -> Iterator[Noticed]:
    """Yield a notice about files that look like evalsets but have another name. They run only if they are named."""
    names = [relative_to(file, workspace.root) for file in workspace.look_alikes]
    if names:
        verb = "looks like an evalset" if len(names) == 1 else "look like evalsets"
        yield Noticed("info", f"not run: {few(names, _NAMED)} {verb} under another name", "Name a file to run it")


def foreign_agent_notices(entries: Iterable[EvalsetEntry], root: Path) -> Iterator[Noticed]:
    """Warn of evalsets that are in one agent's folder and run with another agent.

    If a command line names two agents' folders, the first word is taken as the agent, although the user may have meant
    it as a target. Agents inside each other count as one.
    """
    holder = cache(find_agent)
    for entry in entries:
        if entry.agent is None:
            continue
        ours = real_path(entry.agent.folder)
        steps = [step for step in real_path(entry.file).parents if step.is_relative_to(real_path(root))]
        if any(step == ours or (step in ours.parents and holder(step)) for step in steps):
            continue
        held = next((found for step in steps if (found := holder(step))), None)
        if held is not None:
            message = f"{entry.relative} is in the folder of {held.name} but runs with {entry.agent.name}"
            yield Noticed("warning", message, "The first of several words is the agent. To avoid this, name only files")

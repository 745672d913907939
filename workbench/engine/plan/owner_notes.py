"""What a run says and keeps about its evalsets and their owners: an owner never changes silently."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from workbench.agents.owners import LastOwner
from workbench.agents.targets import find_agent
from workbench.agents.walk import relative_to
from workbench.agents.workspace import EvalsetEntry, Workspace, app_name
from workbench.counting import few
from workbench.events import Noticed

_NAMED = 5


@dataclass(frozen=True, slots=True)
class OwnersToKeep:
    """Owners that a run keeps, by evalset: the agents that they run with now (`last`), and `choices` that the user made
    by naming both an evalset that lost its agent and another agent."""

    last: Mapping[str, LastOwner] = field(default_factory=dict)
    choices: Mapping[str, Path] = field(default_factory=dict)


def owners_to_keep(running: Iterable[EvalsetEntry], named: Iterable[EvalsetEntry], root: Path) -> OwnersToKeep:
    """Collect the owners of the evalsets that are `running`; `named` are those that stand on the command line. An agent
    that is given for one run is no owner, unless the evalset lost its own."""
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
    """What the user should know: which evalsets were matched by location, and which changed their agent."""
    matched: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.agent is not None and entry.owned.rule == "location":
            matched.setdefault((entry.agent.name, entry.agent_reason), []).append(entry.relative)
    for (agent, reason), files in matched.items():
        yield Noticed("info", f"{agent} runs {few(files, _NAMED)}, {reason}", "--agent names another one")
    for entry in entries:
        if entry.agent is None or entry.owned.rule == "given":
            continue
        if entry.owned.before:
            before = Path(entry.owned.before).name or entry.owned.before
            message = f"{entry.relative} ran with {before} before, and runs with {entry.agent.name} now"
            yield Noticed("warning", f"{message}: {entry.agent_reason}")


def look_alike_notices(workspace: Workspace) -> Iterator[Noticed]:
    """Files that look like evalsets under another name: they do not run unless they are named."""
    names = [relative_to(file, workspace.root) for file in workspace.look_alikes]
    if names:
        verb = "looks like an evalset" if len(names) == 1 else "look like evalsets"
        yield Noticed("info", f"not run: {few(names, _NAMED)} {verb} under another name", "Name a file to run it")


def foreign_agent_notices(entries: Iterable[EvalsetEntry], root: Path) -> Iterator[Noticed]:
    """Warn of evalsets that run with another agent than the one whose folder holds them.

    The first of two words on a command line may have been meant as what is to run, and is taken as the agent of the
    second. An agent inside another one, or around it, is part of the same.
    """
    holder = cache(find_agent)
    for entry in entries:
        if entry.agent is None:
            continue
        ours = entry.agent.folder.resolve()
        steps = [step for step in entry.file.resolve().parents if step.is_relative_to(root.resolve())]
        if any(step == ours or (step in ours.parents and holder(step)) for step in steps):
            continue
        held = next((found for step in steps if (found := holder(step))), None)
        if held is not None:
            message = f"{entry.relative} lies in the folder of {held.name} and runs with {entry.agent.name}"
            yield Noticed("warning", message, "Of several words the first is the agent, if it is one: name files only")

"""Which agent an evalset belongs to.

In this order: the agent whose folder holds it (the innermost); the one that its `session_input.app_name` names; the
only agent under the nearest common folder; what the user answered when asked; none.

An agent inside another agent's folder is usually a sub-agent with a `root_agent` of its own. It owns what lies in its
folder and what names it, but does not count where the only agent under a folder is looked for: a project with one
agent and its three sub-agents has one agent.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from workbench.agents.discovery import DEFINITION_FILES, AgentFolder, Ignored

_SHOWN = 5


class Ownership:
    """The rules above for the `agents` that were found in `bases`, the folders that were looked through.
    `kept_owners` maps evalset to agent folder, both relative to `root`, as `workbench.agents.owners` keeps them.
    `ignored` is what was found and not taken: a definition that cannot be read explains a missing agent."""

    def __init__(
        self,
        agents: Sequence[AgentFolder],
        root: Path,
        bases: Sequence[Path],
        kept_owners: Mapping[str, str],
        ignored: Sequence[Ignored] = (),
    ) -> None:
        self._root = root
        self._bases = bases
        self._kept = kept_owners
        self._by_folder = {agent.folder: agent for agent in agents}
        outermost = [agent for agent in agents if not any(step in self._by_folder for step in agent.folder.parents)]
        self._outermost = frozenset(outermost)
        self._unreadable = {item.path.parent: item for item in ignored if item.path.name in DEFINITION_FILES}
        self._by_name: dict[str, list[AgentFolder]] = defaultdict(list)
        for agent in agents:
            for name in {agent.name, agent.folder.name}:
                self._by_name[name].append(agent)
        self._under: dict[Path, list[AgentFolder]] = defaultdict(list)
        for agent in outermost:
            for parent in agent.folder.parents:
                self._under[parent].append(agent)

    def is_agent(self, folder: Path) -> bool:
        """Whether `folder` is that of an agent."""
        return folder in self._by_folder

    def holder(self, file: Path) -> AgentFolder | None:
        """The innermost agent whose folder holds `file`."""
        return next((self._by_folder[parent] for parent in file.parents if parent in self._by_folder), None)

    def owner(self, file: Path, app_name: Callable[[], str | None]) -> tuple[AgentFolder | None, str]:
        """The agent that `file` (absolute) belongs to, and why that one or why none, in words. `app_name` reads the
        name from the file; it is called only if the folders do not decide."""
        holder = self.holder(file)
        if holder:
            return holder, "its folder holds the evalset"
        name = app_name()
        if name:
            named = self._named(file, name)
            if named:
                return named, f'session_input.app_name names it: "{name}"'
        nearest = next((folder for folder in self._folders_above(file) if folder in self._under), None)
        near = self._under[nearest] if nearest else []
        if nearest and len(near) == 1:
            return near[0], f"the only agent under {self._show(nearest)}"
        relative = relative_to(file, self._root)
        answer = self._kept.get(relative)
        if answer is not None:
            chosen = self._by_folder.get(self._root / answer)
            if chosen:
                return chosen, "chosen by you (.workbench/owners.json)"
        return None, self._why_none(file, name, near, answer)

    def _folders_above(self, file: Path) -> list[Path]:
        return [folder for folder in file.parents if any(folder.is_relative_to(base) for base in self._bases)]

    def _named(self, file: Path, name: str) -> AgentFolder | None:
        """The agent called `name`, of several the one nearest to `file`; as written, else with the blanks, hyphens and
        capitals that a repository has and a package cannot have."""
        found = self._by_name.get(name) or [
            agent for known, agents in self._by_name.items() if _loose(known) == _loose(name) for agent in agents
        ]
        found = [agent for agent in found if agent in self._outermost] or found
        depths = {agent.folder: len(Path(os.path.commonpath((agent.folder, file))).parts) for agent in found}
        nearest = [folder for folder, depth in depths.items() if depth == max(depths.values())]
        return self._by_folder[nearest[0]] if len(nearest) == 1 else None

    def _why_none(self, file: Path, name: str | None, near: Sequence[AgentFolder], answer: str | None) -> str:
        unreadable = next((self._unreadable[step] for step in file.parents if step in self._unreadable), None)
        if unreadable:
            return f"{relative_to(unreadable.path, self._root)}: {unreadable.reason}"
        if answer is not None:
            return f"the agent chosen for it, {answer}, is not there any more"
        if not near:
            return f"no agent was found under {self._root}"
        names = [agent.name for agent in near]
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        which = f'session_input.app_name is "{name}"' if name else "it has no session_input.app_name"
        return f"{which}, and there are {len(names)} agents near it: {shown}"

    def _show(self, folder: Path) -> str:
        relative = relative_to(folder, self._root)
        return f"{self._root.name or self._root}/" if relative == "." else f"{relative}/"


def relative_to(path: Path, root: Path) -> str:
    """`path` relative to `root` with "/"; as it is where it lies elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _loose(name: str) -> str:
    return name.strip().replace("-", "_").replace(" ", "_").casefold()

"""Rules that decide which agent an evalset belongs to.

The first match counts: the innermost agent whose folder contains the evalset; the agent that its
`session_input.app_name` names; the user's stored answer; the only agent under the nearest common folder ("matched by
location"); none.

An `app_name` that is not an agent here decides nothing: public projects use names that differ from their folders. The
reason mentions it.

An owner never changes silently. If the last owner is no longer an agent, the evalset belongs to none until the user
chooses an agent or the file names another one. The last owner is known from past runs (`workbench.store.owners`), from
the previous reading, or from signs that a folder was an agent's: the folder that contains the evalset or the one that
`app_name` names. If the last owner still exists but the rules find another agent, the evalset runs with that agent. If
the evalset has another owner than the last one, `Owned.before` names the last one.

An agent inside another agent's folder is usually a sub-agent with its own `root_agent`. It owns the evalsets in its
folder and those that name it. The search for the only agent under a folder ignores it: a project with one agent and
its three sub-agents has one agent.
"""

import ast
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from workbench.agents.discovery import DEFINITION_FILES, AgentFolder, Ignored, agent_at
from workbench.agents.python_source import LARGEST_SOURCE, parse_source, read_source
from workbench.files.file_access import read_regular
from workbench.files.walk import relative_to
from workbench.store.owners import LastOwner, StoredOwners
from workbench.text.counting import counted

OwnerRule: TypeAlias = Literal["folder", "app_name", "choice", "location", "given", "none"]
"""The rule that found the owner. `given` means named for this run, by `--agent` or in a test."""
AppName: TypeAlias = Callable[[], str | None]
_NAMES = 'session_input.app_name names it: "{}"'
_LARGEST = 1 << 20
_IN_YAML = re.compile(r"""^name:\s*+["']?([^"'#\n]++)["']?[ \t\r]*+(?:#.*)?$""", re.MULTILINE)
_IMPORTS_AGENT = re.compile(rb"\bagent\b")
_MODULE, _PACKAGE, _OF_ADK = "agent.py", "__init__.py", ".adk"


@dataclass(frozen=True, slots=True)
class Owned:
    """The way in which an evalset got its agent.

    `app_name` is the name in the file ("" if it has none, None if it was not read). `lost` is the folder of an earlier
    owner that is no longer an agent, because of which the evalset has none. `before` is the folder of the last owner if
    the evalset now has another one. Both are relative to the root, or "".
    """

    rule: OwnerRule = "folder"
    app_name: str | None = None
    lost: str = ""
    before: str = ""
    last: LastOwner | None = None
    """The stored last owner, if it is lost."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The agent of an evalset (or None), the reason as text, and how it was found."""

    agent: AgentFolder | None
    reason: str
    owned: Owned


class Ownership:
    """The rules of this module for the `agents` found in `bases`, the searched folders.

    Paths in `stored` are relative to `root`. `ignored` are paths that were found but not used. An unreadable definition
    among them explains a missing agent.
    """

    def __init__(
        self,
        agents: Sequence[AgentFolder],
        root: Path,
        bases: Sequence[Path],
        stored: StoredOwners,
        ignored: Sequence[Ignored] = (),
    ) -> None:
        self._root = root
        self._bases = bases
        self._stored = stored
        self._agents = agents
        self._by_folder = {agent.folder: agent for agent in agents}
        self._outermost = [
            agent for agent in agents if not any(step in self._by_folder for step in agent.folder.parents)
        ]
        self._unreadable = {item.path.parent: item for item in ignored if item.path.name in DEFINITION_FILES}
        self._under: dict[Path, list[AgentFolder]] = defaultdict(list)
        for agent in self._outermost:
            for parent in agent.folder.parents:
                self._under[parent].append(agent)
        self._agent_exists = cache(self._finds_agent)
        self._missing_agent_module = cache(_missing_agent_module)

    def is_agent(self, folder: Path) -> bool:
        """Return whether `folder` is the folder of an agent."""
        return folder in self._by_folder

    def holder(self, file: Path) -> AgentFolder | None:
        """Return the innermost agent whose folder contains `file`, or None."""
        return next((self._by_folder[parent] for parent in file.parents if parent in self._by_folder), None)

    def owner(self, file: Path, app_name: AppName) -> Owner:
        """Return the owner of `file` (an absolute path).

        `app_name` reads the name from the file. It is called only if the owner depends on the name.
        """
        relative = self._relative(file)
        last, answer = self._stored.last.get(relative), self._stored.answers.get(relative)
        chosen = None if answer is None else self._by_folder.get(self._root / answer)
        gone = last is not None and not self._agent_exists(last.folder)
        if chosen is not None and last is not None and (gone or last.folder == answer):
            return _chosen(chosen)
        if last is not None and gone:
            return self._after_loss(file, app_name, last)
        found = self._by_rules(file, app_name, chosen, last)
        if last is None or found.agent is None or self._relative(found.agent.folder) == last.folder:
            return found
        return Owner(found.agent, found.reason, Owned(found.owned.rule, found.owned.app_name, before=last.folder))

    def _finds_agent(self, folder: str) -> bool:
        """Return whether a stored folder has an agent, even if the walk does not reach it."""
        path = self._root / folder
        return path in self._by_folder or (path.is_dir() and agent_at(path)[0] is not None)

    def _after_loss(self, file: Path, app_name: AppName, last: LastOwner) -> Owner:
        """Return the owner of a file whose last owner is no longer an agent: none, unless the file names another."""
        name = app_name() or ""
        if name and last.app_name is not None and name != last.app_name:
            named = self._named(file, name)
            if named:
                return Owner(named, _NAMES.format(name), Owned("app_name", name, before=last.folder))
        folder = self._root / last.folder
        why = "its folder no longer exists"
        if folder.is_dir():
            why = self._missing_agent_module(folder) or _former_agent_sign(folder)
            why = why or "its folder no longer defines an agent"
        if folder in self._unreadable:
            why = self._cannot_be_read(folder)
        return self._lost(file, f"its agent {self._shown_agent(last.folder)} is gone: {why}", last.folder, name, last)

    def _by_rules(self, file: Path, app_name: AppName, chosen: AgentFolder | None, last: LastOwner | None) -> Owner:
        holder = self.holder(file)
        if last is None:
            lost = self._former_owner(file, holder)
            if lost:
                return _chosen(chosen) if chosen else self._lost(file, lost[1], lost[0], None, None)
        if holder:
            return Owner(holder, "its folder contains the evalset", Owned("folder"))
        name = app_name() or ""
        named = self._named(file, name) if name else None
        if named:
            return Owner(named, _NAMES.format(name), Owned("app_name", name))
        if chosen:
            return _chosen(chosen, name)
        return self._by_location(file, name, last)

    def _by_location(self, file: Path, name: str, last: LastOwner | None) -> Owner:
        answer = self._stored.answers.get(self._relative(file))
        if answer is not None:
            message = f"the agent chosen for it, {answer}, no longer exists"
            return self._lost(file, message, answer, name, None)
        nearest = self._nearest(file)
        near = self._under[nearest] if nearest else []
        if nearest is None or len(near) != 1:
            return Owner(None, self._why_none(name, near), Owned("none", name))
        only = near[0]
        is_last = last is not None and self._relative(only.folder) == last.folder
        doubt = None if is_last else self._doubtful_folder(file, nearest, name)
        if doubt:
            return self._lost(file, doubt[1], doubt[0], name, None)
        reason = f"matched by location: the only agent under {self._show(nearest)}"
        if name and not self._called(name):
            reason += f' (session_input.app_name "{name}" is not an agent here)'
        return Owner(only, reason, Owned("location", name))

    def _nearest(self, file: Path) -> Path | None:
        return next((folder for folder in self._folders_above(file) if folder in self._under), None)

    def _folders_above(self, file: Path) -> list[Path]:
        return [folder for folder in file.parents if any(folder.is_relative_to(base) for base in self._bases)]

    def _former_owner(self, file: Path, holder: AgentFolder | None) -> tuple[str, str] | None:
        """Return the innermost folder around `file` whose agent is surely missing or unreadable, and why, or None."""
        nearest = self._nearest(file)
        for folder in self._folders_above(file):
            if holder is not None and folder == holder.folder:
                return None
            relative = self._relative(folder)
            if holder is None and folder in self._unreadable:
                return relative, self._cannot_be_read(folder)
            sign = self._missing_agent_module(folder)
            if sign:
                return relative, f"its agent {self._shown_agent(relative)} is gone: {sign}"
            if folder == nearest:
                return None
        return None

    def _doubtful_folder(self, file: Path, nearest: Path, name: str) -> tuple[str, str] | None:
        """Return a folder that may have been the agent's, and the reason as text, or None.

        The folder is between `file` and the common folder `nearest`, or `name` names it.
        """
        above = self._folders_above(file)
        for folder in above[: above.index(nearest)]:
            sign = _former_agent_sign(folder)
            if not sign and name and _loose(folder.name) == _loose(name):
                sign = f'session_input.app_name is "{name}", but it defines no agent'
            if sign:
                relative = self._relative(folder)
                return relative, f"it is in {relative}/, which may have been its agent: {sign}"
        # A name from a file may be anything, also a path.
        is_name = name != ".." and Path(name).name == name
        named = [step / name for step in above if is_name and os.path.isdir(step / name)]  # noqa: PTH112 - Path.is_dir raises
        for folder in named:
            sign = self._cannot_be_read(folder) if folder in self._unreadable else ""
            sign = sign or self._missing_agent_module(folder) or _former_agent_sign(folder)
            if sign and folder not in self._by_folder:
                relative = self._relative(folder)
                return relative, f"session_input.app_name names {relative}/, which may have been its agent: {sign}"
        return None

    def _named(self, file: Path, name: str) -> AgentFolder | None:
        """Return the agent called `name`, or None.

        Of several, outermost ones are preferred, then the one nearest to `file`. If two are equally near, return None.
        """
        found = self._called(name)
        found = [agent for agent in found if agent in self._outermost] or found
        depths = {agent.folder: len(Path(os.path.commonpath((agent.folder, file))).parts) for agent in found}
        nearest = [folder for folder, depth in depths.items() if depth == max(depths.values())]
        return self._by_folder[nearest[0]] if len(nearest) == 1 else None

    def _called(self, name: str) -> Sequence[AgentFolder]:
        """Return the agents called `name`.

        The name is their folder's name, else their declared name, else the name of their project's folder. An exact
        match comes first. Then blanks, hyphens and capitals do not matter, because a repository's name may have them
        but a package's cannot.
        """
        for names in (self._folder_names, self._declared_names, self._project_names):
            found = names.get(name) or _distinct(
                agent for known, agents in names.items() if _loose(known) == _loose(name) for agent in agents
            )
            if found:
                return found
        return ()

    @cached_property
    def _folder_names(self) -> Mapping[str, list[AgentFolder]]:
        return _by(self._agents, lambda agent: {agent.name, agent.folder.name})

    @cached_property
    def _declared_names(self) -> Mapping[str, list[AgentFolder]]:
        return _by(self._agents, lambda agent: {declared_name(agent)} - {""})

    @cached_property
    def _project_names(self) -> Mapping[str, list[AgentFolder]]:
        """The agents by the name of a folder that contains just one, such as `shop-bot` with the package `app`."""
        names: dict[str, list[AgentFolder]] = defaultdict(list)
        for folder, agents in self._under.items():
            if len(agents) == 1 and folder.is_relative_to(self._root):
                names[folder.name].append(agents[0])
        return {name: _distinct(agents) for name, agents in names.items()}

    def _lost(self, file: Path, why: str, lost: str, name: str | None, last: LastOwner | None) -> Owner:
        nearest = self._nearest(file)
        near = [agent.name for agent in self._under[nearest]] if nearest else []
        if near:
            why += f". Near it: {', '.join(near)}"
        return Owner(None, why, Owned("none", name, lost, last=last))

    def _why_none(self, name: str, near: Sequence[AgentFolder]) -> str:
        if not near:
            return f"no agent was found under {self._root}"
        which = f'session_input.app_name is "{name}"' if name else "it has no session_input.app_name"
        if name and not self._called(name):
            which += ", which is not an agent here"
        names = ", ".join(agent.name for agent in near)
        return f"{which}, and there are {counted(len(near), 'agent')} near it: {names}"

    def _cannot_be_read(self, folder: Path) -> str:
        item = self._unreadable[folder]
        return f"{self._relative(item.path)}: {item.reason}"

    def _shown_agent(self, folder: str) -> str:
        """Return `shop_bot (bots/shop_bot/)`, or `shop_bot` if this is also the folder's path."""
        name = Path(folder).name or self._root.name
        return name if name == folder else f"{name} ({folder}/)"

    def _relative(self, path: Path) -> str:
        return relative_to(path, self._root)

    def _show(self, folder: Path) -> str:
        relative = self._relative(folder)
        return f"{self._root.name or self._root}/" if relative == "." else f"{relative}/"


def _chosen(agent: AgentFolder, name: str | None = None) -> Owner:
    return Owner(agent, "chosen by you", Owned("choice", name))


def _by(agents: Iterable[AgentFolder], names_of: Callable[[AgentFolder], set[str]]) -> Mapping[str, list[AgentFolder]]:
    found: dict[str, list[AgentFolder]] = defaultdict(list)
    for agent in agents:
        for name in names_of(agent):
            found[name].append(agent)
    return found


def _distinct(agents: Iterable[AgentFolder]) -> list[AgentFolder]:
    return list({agent.folder: agent for agent in agents}.values())


def _loose(name: str) -> str:
    return name.strip().replace("-", "_").replace(" ", "_").casefold()


def declared_name(agent: AgentFolder) -> str:
    """Return the agent's declared name, or "" if the defining file has none as plain text."""
    try:
        if agent.kind == "yaml":
            found = _IN_YAML.search(read_regular(agent.definition, _LARGEST).decode("utf-8", errors="replace"))
            return found[1].rstrip() if found else ""
        module = read_source(agent.definition)
    except (OSError, SyntaxError, ValueError):
        return ""
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == agent.attribute for target in targets):
                return _name_of(statement.value)
    return ""


def _name_of(call: ast.Call) -> str:
    match [keyword.value for keyword in call.keywords if keyword.arg == "name"]:
        case [ast.Constant(value=str(name))]:
            return name
    return ""


# Signs that a folder used to be an agent's. Files are read, never run


def _missing_agent_module(folder: Path) -> str:
    """Return a text if the package in `folder` imports its missing module `agent`, or "" if it does not.

    ADK's agents are such packages. Nothing else explains the import, so this sign is certain.
    """
    if (folder / _MODULE).exists() or not _imports_agent_module(folder / _PACKAGE):
        return ""
    return f"its {_PACKAGE} imports `agent`, but there is no {_MODULE}"


def _former_agent_sign(folder: Path) -> str:
    """Return a text about an uncertain sign of a former agent, or "" if there is none.

    The signs: an `agent.py` that defines no agent, the compiled form of a deleted one, or the folder `.adk` in which
    ADK stores an agent's results.
    """
    if (folder / _MODULE).is_file():
        return f"its {_MODULE} defines no root_agent"
    if any((folder / "__pycache__").glob("agent.*.pyc")):
        return f"an {_MODULE} was imported there but no longer exists"
    return f"ADK stored results in its {_OF_ADK}, but it defines no agent" if (folder / _OF_ADK).is_dir() else ""


def _imports_agent_module(package: Path) -> bool:
    """Return whether the `__init__.py` at `package` imports the module `agent` beside it."""
    try:
        source = read_regular(package, LARGEST_SOURCE)
        if not _IMPORTS_AGENT.search(source):
            return False
        module = parse_source(source)
    except (OSError, SyntaxError, ValueError):
        return False
    return any(_is_of_agent(node, package.parent.name) for node in module.body)


def _is_of_agent(node: ast.stmt, own: str) -> bool:
    if isinstance(node, ast.Import):
        return any(f".{alias.name}".endswith(f".{own}.agent") for alias in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    named = any(alias.name == "agent" for alias in node.names)
    if node.level == 1:
        return node.module == "agent" or (node.module is None and named)
    path = f".{node.module or ''}"
    return node.level == 0 and (path.endswith(f".{own}.agent") or (path.endswith(f".{own}") and named))

"""The contents of a folder: agents, evalsets, their owners, and which criteria apply to each and why."""

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from workbench.agents.discovery import DEFINITION_FILES, AgentFolder, Ignored, canonical_path, discover_for, name_agents
from workbench.agents.ownership import Owned, Owner, Ownership
from workbench.events.events import CaseName
from workbench.files.criteria import CriteriaConfig, default_config, read_config
from workbench.files.evalset import BrokenCaseError, EvalsetDocument, open_evalset
from workbench.files.folders import state_dir
from workbench.files.metrics_config import METRICS_FILE, MetricsConfig, read_metrics, with_metrics
from workbench.files.project_root import absolute, find_root
from workbench.files.walk import relative_to, up_to
from workbench.store.owners import LastOwner, StoredOwners, read_owners

CONFIG_NAMES = ("test_config.json", "eval_config.json")
DATASET_CONFIG = "test_config.json"
"""The config beside a dataset of google-agents-cli, whose own config has no thresholds."""
CONFIG_FILES = (*CONFIG_NAMES, METRICS_FILE)
"""Names of all files that define criteria."""
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class CriteriaChoice:
    """The criteria of an evalset and their origin as text, such as "test_config.json beside the evalset".

    A file without `criteria` keeps its other settings (a user simulator, custom metrics) and gets the default criteria.
    `given` means that the user named the file, for all evalsets.
    """

    config: CriteriaConfig
    reason: str
    changed: tuple[str, ...] = ()
    """The user's changes for one run that are not in the file: one sentence for each criterion."""
    given: bool = False


class CriteriaChooser:
    """The choice of criteria for the evalsets of one workspace. Each config is read once.

    `config` is a file that the user named for all evalsets, or None. If it is in JSON, no other file is used. Without
    it, the config is the first of `CONFIG_NAMES` in the evalset's folder, then in each folder above it up to `root`.
    For an evalset outside `root`, only its own folder counts. Without any file, the defaults apply. A missing or broken
    config is still chosen, with faults. Another file instead would give verdicts by unwanted criteria.

    A dataset of google-agents-cli has the metrics of the nearest `eval_config.yaml`, and thresholds and further
    criteria from the `test_config.json` beside the dataset. It has no default criteria. A `config` in YAML replaces
    `eval_config.yaml` and applies to all files.
    """

    def __init__(self, root: Path, config: Path | None) -> None:
        self._root = root
        self._given: CriteriaChoice | None = None
        self._given_metrics: MetricsConfig | None = None
        if config is not None and config.suffix in _YAML:
            self._given_metrics = read_metrics(config, root)
        elif config is not None:
            self._given = CriteriaChoice(read_config(config), f"given: {config}", given=True)
        self._found: dict[tuple[Path, bool], CriteriaChoice] = {}

    def choose(self, evalset: Path, *, is_dataset: bool = False) -> CriteriaChoice:
        """Return the criteria for the file `evalset` (an absolute path)."""
        if self._given is not None:
            return self._given if is_dataset else _with_defaults(self._given)
        has_metrics = is_dataset or self._given_metrics is not None
        key = evalset.parent, has_metrics
        if key not in self._found:
            self._found[key] = self._of_dataset(evalset.parent) if has_metrics else self._search(evalset.parent)
        return self._found[key]

    def _of_dataset(self, folder: Path) -> CriteriaChoice:
        metrics, beside = self._given_metrics, folder / DATASET_CONFIG
        reasons = [] if metrics is None else [f"given: {metrics.path}"]
        above = (step for step in up_to(folder, self._root) if _is_there(step / METRICS_FILE))
        if metrics is None and (step := next(above, None)) is not None:
            metrics = read_metrics(step / METRICS_FILE, self._root)
            reasons = [f"{METRICS_FILE} {self._place(step, folder, 'dataset')}"]
        config = None
        if _is_there(beside):
            config = read_config(beside)
            reasons.append(f"{DATASET_CONFIG} beside the dataset")
        nothing = f"none: no {METRICS_FILE} beside the dataset or above it, and no {DATASET_CONFIG} beside it"
        choice = CriteriaChoice(with_metrics(config, metrics, beside), " and ".join(reasons) or nothing)
        return replace(choice, given=self._given_metrics is not None)

    def _search(self, folder: Path) -> CriteriaChoice:
        for step in up_to(folder, self._root):
            for name in CONFIG_NAMES:
                if _is_there(step / name):
                    reason = f"{name} {self._place(step, folder, 'evalset')}"
                    return _with_defaults(CriteriaChoice(read_config(step / name), reason))
        reason = f"defaults: no {' or '.join(CONFIG_NAMES)} beside the evalset or above it"
        return CriteriaChoice(default_config(), reason)

    def _place(self, step: Path, folder: Path, what: str) -> str:
        if step == folder:
            return f"beside the {what}"
        shown = "the root" if step == self._root else f"{step.relative_to(self._root).as_posix()}/"
        return f"in {shown}, above the {what}"


def _is_there(path: Path) -> bool:
    """Return whether `path` is meant as a config, even if it is a broken link, a pipe or a device."""
    return os.path.lexists(path) and not path.is_dir()


def _with_defaults(choice: CriteriaChoice) -> CriteriaChoice:
    if choice.config.broken or choice.config.has_criteria:
        return choice
    filled = replace(choice.config, criteria=default_config().criteria)
    return replace(choice, config=filled, reason=f'defaults: no "criteria" in the config ({choice.reason})')


@dataclass(frozen=True)
class EvalsetEntry:
    """An evalset with its agent (None: see `agent_reason`) and its criteria.

    `relative` is the path from the root with "/". `owned` says how the agent was found, and which one was lost.
    """

    file: Path
    relative: str
    document: EvalsetDocument
    agent: AgentFolder | None
    agent_reason: str
    criteria: CriteriaChoice
    owned: Owned = field(default_factory=Owned)

    @property
    def eval_set_id(self) -> str:
        """The ID of the evalset in its file, or one made of the file's name."""
        return self.document.eval_set_id

    @property
    def owner(self) -> Owner:
        """The agent of the evalset, with the reason."""
        return Owner(self.agent, self.agent_reason, self.owned)

    @property
    def case_ids(self) -> list[str]:
        """The IDs of the cases, in the order of the file."""
        return [case.eval_id for case in self.document.cases]

    @property
    def case_names(self) -> list[CaseName]:
        """The names of the cases, in the order of the file."""
        return [(self.relative, case.eval_id) for case in self.document.cases]

    @property
    def broken(self) -> bool:
        """Whether ADK would reject the file."""
        return self.document.broken

    @property
    def agent_folder(self) -> Path | None:
        """The folder of the agent, or None without an agent."""
        return None if self.agent is None else self.agent.folder

    @property
    def agent_name(self) -> str:
        """The name of the agent or of the lost agent, or "" without either."""
        return self.agent.name if self.agent is not None else Path(self.owned.lost).name


@dataclass(frozen=True)
class Workspace:
    """The agents and evalsets found in a project. `target` is the requested path (the common folder of several).

    `agents` are all agents of the project, also those outside `target`: an agent has the same name in every part of the
    project. `evalsets` and `ignored` belong to the target. `searched` are all folders that were searched. `warnings`
    are about stored owners that cannot be read.
    """

    root: Path
    target: Path
    agents: tuple[AgentFolder, ...]
    evalsets: tuple[EvalsetEntry, ...]
    ignored: tuple[Ignored, ...]
    searched: frozenset[Path] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def agents_here(self) -> tuple[AgentFolder, ...]:
        """The agents in and around the target. Agents elsewhere in the project do not matter for it."""
        return tuple(
            agent
            for agent in self.agents
            if agent.folder.is_relative_to(self.target) or self.target.is_relative_to(agent.folder)
        )

    def case_name(self, evalset: int, case: int) -> CaseName:
        """Return the name of the case at a position: its evalset, relative to the root, and its ID."""
        entry = self.evalsets[evalset]
        return entry.relative, entry.document.cases[case].eval_id

    @property
    def case_ids(self) -> dict[str, set[str]]:
        """The IDs of the cases of each evalset, by its path relative to the root."""
        return {entry.relative: set(entry.case_ids) for entry in self.evalsets}

    @property
    def case_names(self) -> set[CaseName]:
        """The names of all cases."""
        return {name for entry in self.evalsets for name in entry.case_names}

    @property
    def look_alikes(self) -> tuple[Path, ...]:
        """Files that look like evalsets under another name, and were not named explicitly."""
        opened = {entry.file for entry in self.evalsets}
        return tuple(item.path for item in self.ignored if item.evalset and item.path not in opened)


OnEvalset: TypeAlias = Callable[[Workspace], None]
"""A function called after each evalset with a workspace of all evalsets so far. The last one is new."""


def open_workspace(
    *paths: Path,
    config: Path | None = None,
    stored_owners: StoredOwners | None = None,
    previous: Workspace | None = None,
    initial_session: dict[str, Any] | None = None,
    on_evalset: OnEvalset | None = None,
) -> Workspace:
    """Open folders, evalsets (of any name) and agents (a folder, or the file that defines one). Run nothing.

    A folder gives the evalsets in and below it. An agent's folder also gives evalsets elsewhere in the project that
    belong to it. An evalset in several of the paths is included once. The root is the root of the nearest common
    folder.

    `config` applies to all evalsets. `stored_owners` are by default read from the root's `.workbench`
    (`workbench.store.owners`). `previous` is an earlier reading of the same folder; it gives the last owner of an
    evalset that never ran. `initial_session` is for test files of the old format. `on_evalset` is called after each
    evalset is read.

    Raises:
        FileNotFoundError: one of the paths does not exist.
    """
    for path in paths:
        if not path.is_dir() and not path.is_file():
            raise FileNotFoundError(f"{path} {'is neither a file nor a folder' if path.exists() else 'does not exist'}")
    root = root_of(paths)
    targets = [canonical_path(absolute(path), root) for path in paths]
    found, bases = discover_for(targets, root)
    agents = name_agents(found.agents, root)
    stored = read_owners(state_dir(root)) if stored_owners is None else stored_owners
    if previous is not None and previous.root == root:
        stored = replace(stored, last={**owners_of(previous), **stored.last})
    ownership = Ownership(agents, root, bases, stored, found.ignored)
    chooser = CriteriaChooser(root, config)

    def is_inside(path: Path) -> bool:
        return any(path.is_relative_to(target) for target in targets)

    owners = [target for target in targets if ownership.is_agent(target)]
    workspace = Workspace(
        root=root,
        target=Path(os.path.commonpath(targets)),
        agents=agents,
        evalsets=(),
        # Broken definitions are always reported, because they may explain an evalset without an agent.
        ignored=tuple(one for one in found.ignored if is_inside(one.path) or one.path.name in DEFINITION_FILES),
        searched=found.folders,
        warnings=stored.faults,
    )
    for file in found.evalsets:
        if not is_inside(file):
            # One of the requested agents may own it.
            holder = ownership.holder(file)
            if not owners or (holder is not None and holder.folder not in owners):
                continue
        entry = _entry(file, root, ownership, chooser, initial_session)
        if is_inside(file) or (entry.agent is not None and entry.agent.folder in targets):
            workspace = replace(workspace, evalsets=(*workspace.evalsets, entry))
            if on_evalset is not None:
                on_evalset(workspace)
    return workspace


def root_of(paths: Sequence[Path]) -> Path:
    """Return the root of the nearest common folder of several paths."""
    return find_root(Path(os.path.commonpath([absolute(path) for path in paths])))


def assign_agent(workspace: Workspace, agent: AgentFolder) -> Workspace:
    """Return the workspace with all its evalsets assigned to `agent`, which may come from outside it."""
    agents = workspace.agents
    known = next((item for item in agents if item.folder == agent.folder), None)
    if known is None:
        taken = any(item.name == agent.name for item in agents)
        known = replace(agent, name=agent.folder.as_posix()) if taken else agent
        agents = (*agents, known)
    entries = tuple(
        replace(entry, agent=known, agent_reason="named on the command line", owned=replace(entry.owned, rule="given"))
        for entry in workspace.evalsets
    )
    return replace(workspace, agents=agents, evalsets=entries)


def owners_of(workspace: Workspace) -> dict[str, LastOwner]:
    """Return the owner to be stored for each evalset (relative to the root), including lost owners."""
    found: dict[str, LastOwner] = {}
    for entry in workspace.evalsets:
        if entry.agent is not None and entry.owned.rule != "given":
            found[entry.relative] = LastOwner(relative_to(entry.agent.folder, workspace.root), entry.owned.app_name)
        elif entry.owned.last is not None:
            found[entry.relative] = entry.owned.last
    return found


def duplicate_set_ids(workspace: Workspace) -> dict[tuple[str, str], tuple[EvalsetEntry, ...]]:
    """Return the groups of evalsets with the same agent and the same `eval_set_id`, which is ambiguous then.

    The keys are (agent name or "", ID). The evalsets are in the order of the workspace.
    """
    groups: dict[tuple[str, str], list[EvalsetEntry]] = defaultdict(list)
    for entry in workspace.evalsets:
        groups[entry.agent.name if entry.agent else "", entry.document.eval_set_id].append(entry)
    return {key: tuple(entries) for key, entries in groups.items() if len(entries) > 1}


def _entry(
    file: Path, root: Path, ownership: Ownership, chooser: CriteriaChooser, initial_session: dict[str, Any] | None
) -> EvalsetEntry:
    document = open_evalset(file, initial_session=initial_session)
    owner = ownership.owner(file, lambda: app_name(document))
    relative = relative_to(file, root)
    criteria = chooser.choose(file, is_dataset=document.format == "dataset")
    return EvalsetEntry(file, relative, document, owner.agent, owner.reason, criteria, owner.owned)


def app_name(document: EvalsetDocument) -> str | None:
    """Return the app name of the first case, or None if there is none or the case is broken. No other case is read."""
    if not document.cases:
        return None
    try:
        session = document.case(0).session_input
    except BrokenCaseError:
        return None
    name = session.get("app_name") if session else None
    return name if isinstance(name, str) and name else None

"""All check rules applied to all files of a workspace, its recordings included."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.agents.declared_tools import DeclaredTools, declared_tools
from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import adk_version, agent_environment, choose_interpreter
from workbench.agents.workspace import EvalsetEntry, Workspace, duplicate_set_ids
from workbench.criteria.registry import check_criteria
from workbench.editing.check.agent_rules import agent_problems, source_problems, unusable_definitions
from workbench.editing.check.criteria_rules import (
    CaseCounts,
    case_problems,
    count_case,
    criteria_problems,
    function_problems,
    history_problem,
    judge_problems,
    retiring_models,
    simulator_problems,
    splits_a_path,
    use_problems,
)
from workbench.editing.check.problem import Problem, Rule
from workbench.editing.check.recording_rules import recording_problems
from workbench.files.breaches import resolve
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import BrokenCaseError
from workbench.files.faults import Breach, Fault, Location, Places, json_path, unexpected
from workbench.files.json_text.scanner import LARGEST_TREE, is_scannable, scan
from workbench.files.json_text.text_file import TextFile
from workbench.files.metrics_config import metric_place, own_entry
from workbench.judges.base import JudgeEnvironment
from workbench.run.plan.preflight_cases import Obstacle, obstacle
from workbench.text.counting import counted

_NO_TOOLS = DeclaredTools({}, complete=False)


def check_project(workspace: Workspace) -> list[Problem]:
    """Return all problems of a workspace, by file and place. Reads every case, so large files take time."""
    check = ProjectCheck()
    found = [problem for entry in workspace.evalsets for problem in check.evalset(entry, workspace.root)]
    return in_order([*found, *check.rest(workspace)])


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems by file and place, without duplicates."""
    return sorted(
        dict.fromkeys(problems),
        key=lambda problem: (str(problem.fault.file), problem.fault.line, problem.fault.column, problem.rule),
    )


def checked_agents(workspace: Workspace) -> list[AgentFolder]:
    """Return the agents inside the target and the agents of its evalsets."""
    used = {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
    return [
        agent for agent in workspace.agents if agent.folder in used or agent.folder.is_relative_to(workspace.target)
    ]


class ProjectCheck:
    """Check of one project: first each of its evalsets, then the rest.

    If a rule raises an exception, the check of that file ends with a problem, and other files are still checked.
    """

    def __init__(self) -> None:
        self._tools: dict[Path, DeclaredTools] = {}
        self._environments: dict[Path, JudgeEnvironment] = {}
        self._configs: dict[Path | None, tuple[CriteriaConfig, CaseCounts, set[Path]]] = {}

    def evalset(self, entry: EvalsetEntry, root: Path) -> list[Problem]:
        """Return the problems of an evalset, in the order of the file."""
        return in_order(_within(entry.file, self._evalset(entry, root)))

    def rest(self, workspace: Workspace) -> list[Problem]:
        """Return the problems that are not of a single evalset: of agents, configs, shared IDs and file names.

        The configs are those of the evalsets that were checked before.
        """
        found = list(_within(workspace.target, _same_ids(workspace)))
        message = "this looks like an evalset, but its name does not end in .evalset.json or .test.json"
        hint = "Rename it, or name it on the command line"
        found += [Problem("name", Fault(file, 0, 0, "", message, hint, "note")) for file in workspace.look_alikes]
        for config, counts, folders in self._configs.values():
            if config.path is not None:
                found += _within(config.path, self._config(config, counts, folders, workspace.root))
        found += _within(workspace.target, unusable_definitions(workspace))
        for agent in checked_agents(workspace):
            found += _within(agent.definition, self._agent(agent, workspace.root))
        return in_order(found)

    def _evalset(self, entry: EvalsetEntry, root: Path) -> Iterator[Problem]:
        document, config = entry.document, entry.criteria.config
        yield from (Problem("file", fault) for fault in document.check())
        yield from _owner(entry)
        yield from self._frame(entry)
        seeded: list[int] = []
        judges = JudgeEnvironment("", {}) if entry.agent is None else self._judges(entry.agent.folder)
        counts = CaseCounts()
        not_simulated: dict[Obstacle, list[int]] = defaultdict(list)
        for summary in document.cases:
            try:
                case = document.case(summary.index)
            except BrokenCaseError:
                continue  # Its faults are reported already.
            counts = counts.plus(count_case(case))
            is_simulated = case.scenario is not None and entry.agent is not None and not config.broken
            if is_simulated and (found := obstacle(config, case.scenario or {}, case.rubrics, judges)):
                not_simulated[found].append(summary.index)
            if (case.session_input or {}).get("events") and document.format != "dataset":
                seeded.append(summary.index)
            for rule, breach in case_problems(case, config, self._tools_of(entry.agent)):
                yield Problem(rule, document.fault(summary.index, breach))
        yield from simulator_problems(document, not_simulated)
        if seeded:
            agent = entry.agent
            adk = None if agent is None else adk_version(choose_interpreter(agent.folder, root, None).path)
            yield history_problem(document, seeded, adk)
        yield from recording_problems(entry, self._tools_of(entry.agent))
        self._note(entry, counts)

    def _frame(self, entry: EvalsetEntry) -> Iterator[Problem]:
        document = entry.document
        if document.broken or not document.cases:
            return
        if splits_a_path(document.eval_set_id):
            message = f"ADK cannot save results of the evalset `{document.eval_set_id}`: ADK reads the id as a path"
            hint = "Use letters, digits and _"
            yield Problem("set-id", _placed(entry.file, ("eval_set_id",), message, hint))
        if document.kind == "test" and document.format == "current" and len(document.cases) > 1:
            message = f"a test file should hold one session, but this one has {counted(len(document.cases), 'case')}"
            hint = "Rename it to *.evalset.json, or split it into one file per case"
            yield Problem("test-file-sessions", _placed(entry.file, ("eval_cases", 1), message, hint))

    def _note(self, entry: EvalsetEntry, counts: CaseCounts) -> None:
        """Count the cases and collect the agents that the entry's config applies to."""
        config = entry.criteria.config
        known = self._configs.get(config.path, (config, CaseCounts(), set()))
        folders = known[2] | ({entry.agent.folder} if entry.agent is not None else set())
        self._configs[config.path] = (config, known[1].plus(counts), folders)

    def _config(self, config: CriteriaConfig, counts: CaseCounts, folders: set[Path], root: Path) -> Iterator[Problem]:
        unreachable = {breach.location[-1] for rule, breach in criteria_problems(config) if rule == "never-passes"}
        for fault in (*config.faults, *check_criteria(config)):
            if fault.severity == "error" or fault.json_path not in {f"criteria.{name}" for name in unreachable}:
                yield Problem("config", fault)
        found = [*criteria_problems(config), *use_problems(config, counts), *retiring_models(config, counts)]
        for folder in sorted(folders):
            found += function_problems(config, root, folder)
            found += judge_problems(config, self._judges(folder))
        yield from _in_config(config, dict.fromkeys(found))

    def _agent(self, agent: AgentFolder, root: Path) -> Iterator[Problem]:
        yield from source_problems(agent, root)
        yield from agent_problems(agent, self._tools_of(agent).models, agent_environment(agent.folder, os.environ))

    def _judges(self, folder: Path) -> JudgeEnvironment:
        """Return the environment for judges and simulated users."""
        if folder not in self._environments:
            environment = agent_environment(folder, os.environ)
            self._environments[folder] = JudgeEnvironment(environment.fingerprint, environment.values)
        return self._environments[folder]

    def _tools_of(self, agent: AgentFolder | None) -> DeclaredTools:
        if agent is None:
            return _NO_TOOLS
        if agent.folder not in self._tools:
            self._tools[agent.folder] = declared_tools(agent)
        return self._tools[agent.folder]


def _owner(entry: EvalsetEntry) -> Iterator[Problem]:
    """Yield a problem for an evalset without an agent, with a changed agent, or matched by location."""
    owned = entry.owned
    if entry.agent is None:
        message = entry.agent_reason if owned.lost else f"the evalset belongs to no agent: {entry.agent_reason}"
        hint = "Move it into an agent's folder, choose an agent on the screen, or run it with --agent"
        yield Problem("owner", Fault(entry.file, 0, 0, "", message, hint))
        return
    if owned.before:
        now = f"now belongs to {entry.agent.name}: {entry.agent_reason}"
        message = f"the evalset used to run with {owned.before} and {now}"
        yield Problem("owner", Fault(entry.file, 0, 0, "", message, "", "warning"))
    if owned.rule == "location":
        message = f"the evalset runs with {entry.agent.name}, {entry.agent_reason}"
        yield Problem("owner", Fault(entry.file, 0, 0, "", message, "", "note"))


def _within(file: Path, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems, and report an exception as a problem of the file."""
    try:
        yield from problems
    except Exception as error:
        yield Problem("file", unexpected(file, error))


def _same_ids(workspace: Workspace) -> Iterator[Problem]:
    for (_, set_id), entries in duplicate_set_ids(workspace).items():
        for entry in entries[1:]:
            message = f"the eval_set_id `{set_id}` is also used in {entries[0].relative}"
            hint = "Use another one: results are stored by this id"
            yield Problem("same-set-id", _placed(entry.file, ("eval_set_id",), message, hint))


def _in_config(config: CriteriaConfig, found: Iterable[tuple[Rule, Breach]]) -> Iterator[Problem]:
    assert config.path is not None  # The default criteria have no problems.
    for rule, breach in found:
        path = json_path(breach.location)
        name = str(breach.location[1]) if len(breach.location) > 1 else ""
        if config.metrics_file is not None and own_entry(config.custom_metrics.get(name)):
            line, column, path = metric_place(config.metrics_file, name)
            yield Problem(rule, breach.at(config.metrics_file, (line, column), path))
        else:
            yield Problem(rule, breach.at(config.path, config.place(breach.location), path))


def _placed(file: Path, location: Location, message: str, hint: str) -> Fault:
    """Return a warning at a location, or about the whole file if that place cannot be found."""
    line = column = 0
    with contextlib.suppress(OSError):
        read = TextFile.read(file, LARGEST_TREE)
        places = Places(read.text())
        root = scan(read.text(), places=places).root if is_scannable(read.data) else None
        if root is not None and (child := resolve(root, location)[1]) is not None:
            line, column = places.at(child.node.start)
    return Fault(file, line, column, json_path(location), message, hint, "warning")

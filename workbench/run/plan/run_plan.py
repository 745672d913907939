"""Plans, with an entry for each repeat of the selected cases, of a fork, of a fault, or of a stored transcript.

The plan for a selection also has notices about the owners of evalsets, and the owners to store.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from workbench.agents.discovery import AgentFolder, find_agent
from workbench.agents.workspace import CriteriaChoice, EvalsetEntry, Workspace, app_name
from workbench.events.events import CaseError, CaseName, CaseRef, Noticed
from workbench.files.criteria import default_config, stored_config
from workbench.files.evalset import open_evalset
from workbench.files.faults import Fault
from workbench.files.file_access import real_path
from workbench.files.folders import STATE_FOLDER, why_untrusted
from workbench.files.project_root import project_around
from workbench.files.project_settings import with_place, with_project_setting
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.files.walk import relative_to
from workbench.run.fault_outcome import faults_of
from workbench.run.forking import Fork
from workbench.run.plan.plan import (
    AgentSetting,
    ConfigFaults,
    Plan,
    PlanEntry,
    agent_notices,
    agent_setting,
    fault_notices,
    new_run_id,
    planned_case,
    refuse_named,
    unused_notices,
    why_blocked,
    why_broken,
)
from workbench.run.plan.selection import Chosen, Selection, choose, refuse_unknown_cases, select_cases
from workbench.run.plan.source import AgentSource, StoredSource
from workbench.store.owners import LastOwner, OwnersToKeep
from workbench.store.rates import fewest_for_sure
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.text.counting import counted, exact_percent, few

_CHATS = "chats.evalset.json"
"""The name of the file for conversations that belong to no evalset."""
_NAMED = 5
CriteriaOf = Callable[[str], CriteriaChoice | None]
"""A function from an evalset's path, relative to the root, to its current criteria; None if it no longer exists."""
LostOf = Callable[[str], CaseError | None]
"""A function from an evalset's path, relative to the root, to the error that its agent is lost, or None."""


def make_plan(workspace: Workspace, selection: Selection, options: RunOptions) -> Plan:
    """Return the plan for the selected cases. Test files come before evalsets, because they should be fast.

    It reads and checks the files, which is slow for large ones. Do not call it in an event loop's thread.

    Raises:
        UsageFaultError: a named config or evalset, `--python` or a setting of the project is wrong, a named evalset
            belongs to no agent, an id does not exist, or nothing is selected.
    """
    options = with_project_setting(options, workspace.root)
    chosen = sorted(
        choose(selection, workspace.root, workspace.evalsets, workspace.ignored),
        key=lambda item: item.entry.document.kind != "test",
    )
    configs = ConfigFaults(workspace.root)
    configs.refuse_given(item.entry.criteria for item in chosen)
    for item in chosen:
        item.entry.document.check()
    named = [item.entry for item in chosen if item.named]
    refuse_named(named, workspace.root)
    made = [(item.entry, tuple(_entries(item, options.runs, configs))) for item in chosen]
    entries = tuple(entry for _, own in made for entry in own)
    if not entries:
        raise UsageFaultError(f"no cases in {', '.join(item.entry.relative for item in chosen)}", "", "nothing")
    startable = (evalset for evalset, own in made if any(entry.blocked is None for entry in own))
    running = list({evalset.file: evalset for evalset in startable}.values())
    agents = {
        entry.agent.name: agent_setting(entry.agent, workspace.root, options)
        for entry in running
        if entry.agent is not None
    }
    notices = (
        *_root_notices(workspace.root),
        *(Noticed("warning", warning) for warning in workspace.warnings),
        *look_alike_notices(workspace),
        *fault_notices(_warnings(running, configs), workspace.root),
        *unused_notices(_indexes(made), workspace.root),
        *agent_notices(agents.values()),
        *owner_notices(running),
        *(foreign_agent_notices((item.entry for item in chosen), workspace.root) if selection.agent else ()),
        *_option_notices(options),
    )
    owners = owners_to_keep(running, named if selection.agent else (), workspace.root)
    plan = Plan(new_run_id(), workspace.root, entries, agents, notices, owners, options)
    return replace(plan, project_agents=workspace.agents)


def plan_cases(workspace: Workspace, names: Iterable[CaseName], options: RunOptions) -> Plan:
    """Return the plan for these cases. A fault in one file does not stop the others. Errors are as in `make_plan`."""
    return make_plan(*select_cases(workspace, names), options)


def _warnings(running: Iterable[EvalsetEntry], configs: ConfigFaults) -> list[Fault]:
    """Return the warnings about the files that will run, without repetitions. Warnings about configs come first."""
    entries = list(running)
    used = {entry.criteria.config.path: entry.criteria.config for entry in entries}
    faults = [fault for config in used.values() for fault in configs.faults_of(config)]
    faults += [fault for entry in entries for fault in entry.document.faults]
    return [fault for fault in faults if fault.severity == "warning"]


def _indexes(made: Iterable[tuple[EvalsetEntry, Sequence[PlanEntry]]]) -> Iterator[tuple[EvalsetEntry, Iterable[int]]]:
    """Yield each evalset with the positions of its cases that will run."""
    for entry, own in made:
        sources = [each.source for each in own if each.blocked is None and isinstance(each.source, AgentSource)]
        yield entry, dict.fromkeys(source.index for source in sources if source.index is not None)


def _entries(item: Chosen[EvalsetEntry], runs: int, configs: ConfigFaults) -> Iterator[PlanEntry]:
    entry, document = item.entry, item.entry.document
    agent = entry.agent_name
    matched_by = "" if entry.agent is None else entry.owned.rule
    config, broken = entry.criteria.config, why_broken(entry, configs.root)
    ref = CaseRef(agent, entry.relative, document.eval_set_id, "")
    planned = planned_case(ref, entry.criteria, matched_by, configs.root)
    if broken is not None:
        yield PlanEntry(planned, config, AgentSource(entry, None), broken)
        return
    blocked = why_blocked(entry, configs)
    wanted = None if item.indexes is None else set(item.indexes)
    for case in document.cases:
        if wanted is None or case.index in wanted:
            source = AgentSource(entry, case.index)
            for repeat in range(1, runs + 1):
                ref = CaseRef(agent, entry.relative, document.eval_set_id, case.eval_id, repeat)
                yield PlanEntry(replace(planned, case=ref), config, source, blocked)


def _root_notices(root: Path) -> Iterator[Noticed]:
    """Yield a notice if `root` has its own `.workbench`, although it is a part of a larger project."""
    is_used = (root / STATE_FOLDER).is_dir() and not why_untrusted(root)
    around = project_around(root) if is_used else None
    if around is not None:
        folder = relative_to(root / STATE_FOLDER, around)
        hint = f"Delete or move it to keep runs in {around / STATE_FOLDER}"
        yield Noticed("info", f"{folder} already exists and is used for {relative_to(root, around)}", hint)


def _option_notices(options: RunOptions) -> Iterator[Noticed]:
    """Yield a notice if the repeats are too few, and one if a file says which calls of tools fail."""
    if options.until_sure is not None and (notice := too_few(options.until_sure, options.runs)):
        yield notice
    if options.inject is not None and not isinstance(options.inject, str) and options.inject.file is not None:
        text = f"faults are injected into calls of tools, as {options.inject.file.name} says"
        yield Noticed("info", text, "The verdicts of this run are stored separately from all others")


def matrix_of(plan: Plan, tools: Mapping[CaseName, Sequence[str]], raised: int = 0) -> Plan:
    """Return the plan for the matrix of tool faults. Entries that cannot start stay as they are.

    `tools` are the tools that each case calls. `raised` is the number of cases that ended with an error before any tool
    call. No criteria are scored, because a recovery differs from the reference.

    Raises:
        UsageFaultError: no case calls a tool.
    """
    entries = tuple(fault_entries(plan, tools))
    if not entries:
        why = f"; {counted(raised, 'case')} ended with an error before any tool call" if raised else ""
        raise UsageFaultError(f"no case calls a tool, so none can fail{why}", "", "nothing")
    without = sum(entry.blocked is None and not tools.get(entry.ref.name) for entry in plan.entries) - raised
    notices = list(plan.notices)
    if raised:
        left_out = "is left out" if raised == 1 else "are left out"
        text = f"{counted(raised, 'case')} ended with an error before any tool call and {left_out}"
        notices.append(Noticed("warning", text))
    if without:
        calls = "calls no tool and is left out" if without == 1 else "call no tool and are left out"
        notices.append(Noticed("info", f"{counted(without, 'case')} {calls}"))
    return replace(plan, entries=entries, notices=tuple(notices))


def fault_entries(plan: Plan, tools: Mapping[CaseName, Sequence[str]]) -> Iterator[PlanEntry]:
    """Yield the entries of the matrix of tool faults. Cases without tools have none, unless they cannot start."""
    for entry in plan.entries:
        if entry.blocked is not None:
            yield entry
            continue
        unscored = replace(entry.config, criteria=())
        for number, fault in enumerate(faults_of(tools.get(entry.ref.name, ())), 1):
            planned = replace(entry.planned, case=replace(entry.ref, repeat=number), fault=fault)
            yield replace(entry, planned=planned, config=unscored, judging=entry.config)


def fork_plan(workspace: Workspace, fork: Fork, options: RunOptions) -> Plan:
    """Return the plan that tries a fork `options.runs` times.

    The criteria are the current ones of the case's evalset. A conversation without an evalset is not scored. Do not
    call it in an event loop's thread: it reads files.

    Raises:
        UsageFaultError: the agent or the evalset of the conversation no longer exists, or its criteria, `--python` or
            a setting of the project are wrong.
    """
    evalset = _evalset(workspace, fork)
    if evalset.agent is None:
        raise UsageFaultError(f"{evalset.relative} no longer belongs to an agent", "", "nothing")
    configs = ConfigFaults(workspace.root)
    blocked = why_blocked(evalset, configs) if evalset.relative else None
    if blocked is not None:
        raise UsageFaultError(blocked.message, blocked.hint, "config")
    # The fork itself says which calls are frozen.
    options = with_place(replace(options, frozen="", inject=None, until_sure=None), workspace.root)
    ref, source = fork.original.ref, AgentSource(evalset, 0, fork=fork)
    planned = replace(planned_case(ref, evalset.criteria, evalset.owned.rule, workspace.root), fork=fork.origin())
    entries = tuple(
        PlanEntry(replace(planned, case=replace(ref, repeat=number)), evalset.criteria.config, source)
        for number in range(1, options.runs + 1)
    )
    setting = agent_setting(evalset.agent, workspace.root, options)
    faults = [fault for fault in configs.faults_of(evalset.criteria.config) if fault.severity == "warning"]
    notices = (*fault_notices(faults, workspace.root), *agent_notices([setting]))
    return Plan(
        new_run_id(),
        workspace.root,
        entries,
        {evalset.agent.name: setting},
        notices,
        options=options,
        project_agents=workspace.agents,
    )


def _evalset(workspace: Workspace, fork: Fork) -> EvalsetEntry:
    ref = fork.original.ref
    found = next((entry for entry in workspace.evalsets if entry.relative == ref.evalset_file), None)
    if found is not None:
        return found
    agent = next((agent for agent in workspace.agents if agent.name == ref.agent), None)
    if ref.evalset_file or agent is None:
        what = ref.evalset_file or f"the agent {ref.agent}"
        raise UsageFaultError(f"{what} no longer exists, so its conversation cannot be forked", "", "nothing")
    file = agent.folder / _CHATS  # The conversation is in no file.
    criteria = CriteriaChoice(replace(default_config(), criteria=()), "none: the conversation belongs to no evalset")
    return EvalsetEntry(file, "", open_evalset(agent.folder), agent, "", criteria)


def owners_to_keep(running: Iterable[EvalsetEntry], named: Iterable[EvalsetEntry], root: Path) -> OwnersToKeep:
    """Return the owners of the `running` evalsets to store. `named` are the evalsets on the command line.

    An agent that was named for one run becomes the owner only of a named evalset whose own agent no longer exists.
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
    """Yield warnings about evalsets that are in one agent's folder and run with another agent.

    If a command line names two agents' folders, the first word names the agent, although the user may have meant a
    target. Agents inside each other count as one.
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


def too_few(threshold: float, runs: int) -> Noticed | None:
    """Return a warning if `runs` repeats can never show that the pass rate reaches `threshold`, else None."""
    needed = fewest_for_sure(threshold)
    if needed is None or runs >= needed:
        return None
    wanted = exact_percent(threshold)
    return Noticed(
        "warning",
        f"{counted(runs, 'repeat')} of a case can show a pass rate below {wanted}, but can never confirm {wanted}",
        f"Allow more repeats: to confirm it takes at least {counted(needed, 'pass', 'passes')} in a row",
    )


def make_rescore_plan(
    run: StoredRun,
    root: Path,
    criteria_of: CriteriaOf,
    agents: Iterable[AgentFolder],
    options: RunOptions,
    *,
    case_ids: Sequence[str] = (),
    lost_of: LostOf = lambda file: None,
) -> Plan:
    """Return a plan that scores the cases of a stored run again, or only `case_ids`.

    `agents` are the project's current agents. Cases with a wrong config get an error. So do cases whose agent is lost
    (`lost_of`), unless the agent was named for the stored run.

    Raises:
        UsageFaultError: a named config has an error, `--python` is not an interpreter, a case does not exist, or the
            run has no cases.
    """
    stored = _chosen(run, case_ids)
    now = {file: criteria_of(file) for file in {case.ref.evalset_file for case in stored}}
    configs = ConfigFaults(root)
    configs.refuse_given(choice for choice in now.values() if choice is not None)
    used = {choice.config.path: choice.config for choice in now.values() if choice is not None}
    faults = [fault for config in used.values() for fault in configs.faults_of(config)]
    lost = {file: lost_of(file) for file in now}
    entries = tuple(
        PlanEntry(
            planned_case(case.ref, choice, case.planned.matched_by, root),
            choice.config,
            StoredSource(case),
            (None if case.planned.matched_by == "given" else lost[case.ref.evalset_file]) or configs.blocked(choice),
        )
        for case in stored
        for choice in [now[case.ref.evalset_file] or _as_stored(case, run)]
    )
    scored = [case for case, entry in zip(stored, entries, strict=True) if entry.blocked is None]
    settings, missing = _settings(scored, {agent.name: agent for agent in agents}, root, options)
    notices = [Noticed("warning", trouble) for trouble in run.trouble]
    for file, choice in sorted(now.items()):
        if choice is None and file:
            text = f"{file} no longer exists, so its cases are scored by the criteria of the stored run"
            notices.append(Noticed("warning", text, "Use --config to name other criteria"))
    for name in missing:
        gone = f"the agent {name or '(none)'} no longer exists"
        notices.append(Noticed("warning", f"{gone}, so judges of its cases use the environment of {root}"))
    notices += fault_notices([fault for fault in faults if fault.severity == "warning"], root)
    notices += agent_notices(setting for name, setting in settings.items() if name not in missing)
    return Plan(new_run_id(), root, entries, settings, tuple(notices), options=options, scored_from=run.run_id)


def _chosen(run: StoredRun, case_ids: Sequence[str]) -> list[StoredCase]:
    cases = list(run.cases.values())
    if not cases:
        raise UsageFaultError(f"run {run.run_id} has no cases", "", "nothing")
    refuse_unknown_cases(case_ids, {case.ref.eval_id for case in cases}, f"run {run.run_id}")
    return [case for case in cases if not case_ids or case.ref.eval_id in case_ids]


def _as_stored(case: StoredCase, run: StoredRun) -> CriteriaChoice:
    """Return the criteria of the stored run, for an evalset that no longer exists."""
    started = case.started
    if started is None:
        return CriteriaChoice(stored_config({}, {}, None), f"not known: run {run.run_id} did not start this case")
    config = stored_config(started.criteria, started.custom_metrics, started.simulator)
    return CriteriaChoice(config, f"those of run {run.run_id}, because the evalset no longer exists")


def _settings(
    stored: Iterable[StoredCase], agents: Mapping[str, AgentFolder], root: Path, options: RunOptions
) -> tuple[dict[str, AgentSetting], list[str]]:
    """Return the agents' settings for judges of complete cases, and the names of agents that no longer exist.

    The cases of missing agents are judged with the environment of an agent in the root folder.
    """
    settings: dict[str, AgentSetting] = {}
    for name in dict.fromkeys(case.ref.agent for case in stored if case.why_incomplete() is None):
        agent = agents.get(name) or AgentFolder(name, root, "python", root / "agent.py", "root_agent")
        settings[name] = agent_setting(agent, root, options)
    return settings, [name for name in settings if name not in agents]

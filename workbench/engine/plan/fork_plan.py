"""Plans that try a fork of a recorded conversation, several times."""

from dataclasses import replace

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.engine.plan.blocking import ConfigFaults, why_blocked
from workbench.engine.plan.plan import (
    Plan,
    PlanEntry,
    agent_notices,
    agent_setting,
    fault_notices,
    new_run_id,
    planned_case,
)
from workbench.engine.plan.project_setting import with_place
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.engine.plan.source import AgentSource
from workbench.forking.fork import Fork
from workbench.model.criteria import default_config
from workbench.model.evalset import open_evalset

_CHATS = "chats.evalset.json"
"""The name of the file for conversations that belong to no evalset."""


def fork_plan(workspace: Workspace, fork: Fork, options: RunOptions) -> Plan:
    """Return the plan that tries a fork `options.runs` times.

    The criteria are the current ones of the case's evalset. A conversation without an evalset is not scored. Do not
    call it in an event loop's thread: it reads files.

    Raises:
        UsageFaultError: the agent or the evalset of the conversation is gone, their criteria are wrong, or a setting of
            the project is.
    """
    evalset = _evalset(workspace, fork)
    if evalset.agent is None:
        raise UsageFaultError(f"{evalset.relative} belongs to no agent any more", "", "nothing")
    configs = ConfigFaults(workspace.root)
    blocked = why_blocked(evalset, configs) if evalset.relative else None
    if blocked is not None:
        raise UsageFaultError(blocked.message, blocked.hint, "config")
    # The fork itself says which calls are frozen.
    options = with_place(replace(options, frozen="", inject=None, until_sure=None), workspace.root)
    ref, source = fork.original.ref, AgentSource(evalset, 0, fork=fork)
    planned = replace(planned_case(ref, evalset.criteria, evalset.owned.rule, workspace.root), fork=fork.of())
    entries = tuple(
        PlanEntry(replace(planned, case=replace(ref, repeat=number)), evalset.criteria.config, source)
        for number in range(1, options.runs + 1)
    )
    setting = agent_setting(evalset.agent, workspace.root, options)
    faults = [fault for fault in configs.of(evalset.criteria.config) if fault.severity == "warning"]
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
        what = ref.evalset_file or f"an agent {ref.agent}"
        raise UsageFaultError(f"there is no {what} any more, so its conversation cannot be forked", "", "nothing")
    return _without_evalset(agent)


def _without_evalset(agent: AgentFolder) -> EvalsetEntry:
    """Return an entry for a conversation that is in no file."""
    file = agent.folder / _CHATS
    criteria = CriteriaChoice(replace(default_config(), criteria=()), "none: the conversation belongs to no evalset")
    return EvalsetEntry(file, "", open_evalset(agent.folder), agent, "", criteria)

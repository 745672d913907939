"""Checks of a plan before its first case.

They find criteria that will not be evaluated and the line that would change that, the judges and their addresses,
criteria without anything to judge, agents without google-adk or a key for their own model, and the number of expected
calls. The checks call no judge and import nothing. One cause is one notice, however many cases it affects.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from workbench.agents.declared_tools import declared_tools
from workbench.agents.environment import lacks_adk
from workbench.criteria.registry import needs_bench
from workbench.events.events import Noticed
from workbench.files.evalset import BrokenCaseError, EvalCase
from workbench.files.file_access import read_regular
from workbench.files.frozen_path import frozen_path
from workbench.files.run_options import RunOptions
from workbench.judges.base import DEFAULT_MODEL, JudgeEnvironment, NotAvailableError
from workbench.judges.google_access import gemini_access
from workbench.judges.retiring import NAMES, retires, successor_hint
from workbench.run.plan.judge_calls import judge_environment
from workbench.run.plan.plan import AgentSetting, Plan, PlanEntry
from workbench.run.plan.preflight_cases import PreflightCase, notices
from workbench.run.plan.source import AgentSource, StoredSource
from workbench.text.counting import counted, few
from workbench.worker.faults import install_adk

CHECKED_CASES = 1000
"""Limit of cases that are checked one by one, so that preflight does not delay a large run.

The other cases are assumed to be similar.
"""
_CONVERSATION = EvalCase("", (), None, None, (), None, None)
"""A placeholder for all cases of a file that have a reference and nothing else to check."""
_GEMINI = re.compile(rb"gemini-")
_IMPORTS_ADK = re.compile(rb"^\s*(from|import) google(\.adk\b| import adk\b)", re.MULTILINE)
_SOURCES = ("*.py", "*/*.py", "*.yaml")


def recordings(entries: Sequence[tuple[PlanEntry, AgentSource]], options: RunOptions) -> Iterator[Noticed]:
    """Yield a notice if cases of a frozen run have no recording. `entries` has each case once."""
    if not options.frozen:
        return
    files = (frozen_path(source.evalset.file, entry.ref.eval_id) for entry, source in entries)
    missing = sum(not file.exists() for file in files)
    if missing:
        text = f"{missing:,} of {counted(len(entries), 'case')} {'has' if missing == 1 else 'have'} no recording"
        if options.on_miss == "live":
            yield Noticed("info", f"{text} and will run live", forecast=True)
        else:
            hint = "Run them without --frozen, then keep their calls with `agent-workbench freeze last`"
            yield Noticed("warning", f"{text} and will end with an error", hint, forecast=True)


def preflight(plan: Plan, options: RunOptions) -> list[Noticed]:
    """Return the notices for a plan. It reads cases, so do not call it in an event loop's thread."""
    if plan.scored_from:
        return _of_transcripts(plan, options)
    environments = _environments(plan)
    entries = list(_to_run(plan))
    here = options.place is None or options.place.is_local
    before = [*(agents_without_adk(plan) if here else ()), *recordings(entries, options)]
    one_of_each = {entry.ref.evalset_file: (entry, source) for entry, source in entries}
    plain = {file: entry for file, (entry, source) in one_of_each.items() if _is_plain(entry, source)}
    cases = [_preflight_case(plan, entry, _CONVERSATION) for entry in plain.values()]
    entries = [(entry, source) for entry, source in entries if entry.ref.evalset_file not in plain]
    for entry, source in entries[:CHECKED_CASES]:
        try:
            case = source.evalset.document.case(source.index if source.index is not None else -1)
        except (BrokenCaseError, IndexError):
            continue  # The case reports this itself.
        cases.append(_preflight_case(plan, entry, case))
    scale = len(entries) / max(1, min(len(entries), CHECKED_CASES))
    # Frozen models are not asked.
    asked = not (options.frozen == "all" and options.on_miss == "error")
    own = [*without_keys(plan.agents, environments), *retiring_agents(plan)] if asked else []
    found = [*own, *notices(cases, environments.__getitem__, options, scale)]
    if found and scale > 1:
        message = f"these notices are based on the first {CHECKED_CASES} of {len(entries)} cases"
        found.append(Noticed("info", message))
    return [*before, *found]


def _of_transcripts(plan: Plan, options: RunOptions) -> list[Noticed]:
    """Return the notices for a plan with stored transcripts."""
    entries = [
        (entry, started)
        for entry in plan.entries
        if entry.blocked is None and isinstance(entry.source, StoredSource)
        for started in [entry.source.case.started]
        if started is not None and entry.source.case.why_incomplete() is None
    ]
    cases = [
        _preflight_case(
            plan, entry, EvalCase(entry.ref.eval_id, now.expected, now.scenario, None, now.rubrics, None, None)
        )
        for entry, now in entries[:CHECKED_CASES]
    ]
    scale = len(entries) / max(1, len(cases))
    return list(notices(cases, _environments(plan).__getitem__, options, scale, played=False))


def _to_run(plan: Plan) -> Iterator[tuple[PlanEntry, AgentSource]]:
    """Yield one execution of each case that will run."""
    seen: set[tuple[str, str]] = set()
    for entry in plan.entries:
        source = entry.source
        if entry.blocked is None and isinstance(source, AgentSource) and not source.fork and entry.ref.name not in seen:
            seen.add(entry.ref.name)
            yield entry, source


def _environments(plan: Plan) -> dict[str, JudgeEnvironment]:
    return {name: JudgeEnvironment(**judge_environment(setting)) for name, setting in plan.agents.items()}


def _preflight_case(plan: Plan, entry: PlanEntry, case: EvalCase) -> PreflightCase:
    return PreflightCase(entry.ref.agent, entry.ref.evalset_file, case, entry.config, entry.planned.config_file or "")


def _is_plain(entry: PlanEntry, source: AgentSource) -> bool:
    """Return whether the cases of this file need no check: no judges, simulated users or rubrics.

    Checking them one by one would take as long as running some of them.
    """
    config = entry.config
    if any(needs_bench(item.name, custom=item.name in config.custom_metrics) for item in config.criteria):
        return False
    return not (config.user_simulator_config or source.evalset.document.mentions("cenario", "ubrics"))


def without_keys(
    settings: Mapping[str, AgentSetting], environments: Mapping[str, JudgeEnvironment]
) -> Iterator[Noticed]:
    """Yield a notice for each of the agents' own Gemini models without a key, and the line that adds one."""
    for name, setting in settings.items():
        agent, values = setting.agent, environments[name].values
        try:
            gemini_access(DEFAULT_MODEL, values)
        except NotAvailableError:
            models = declared_tools(agent).models if _names(agent.folder, _GEMINI) else ()
            for model in sorted(model for model in models if model.startswith("gemini-")):
                try:
                    gemini_access(model, values)
                except NotAvailableError as error:
                    yield Noticed("warning", f"{agent.name}: its own model {error}", error.hint)


def retiring_agents(plan: Plan) -> Iterator[Noticed]:
    """Yield a notice for each of the agents' own models with an announced end."""
    for name, setting in plan.agents.items():
        models = declared_tools(setting.agent).models if _names(setting.agent.folder, NAMES) else ()
        for model in sorted(models):
            if message := retires(f"the agent {name}", model):
                yield Noticed("warning", message, successor_hint(model), in_report=True)


def agents_without_adk(plan: Plan) -> Iterator[Noticed]:
    """Yield a notice for each interpreter on this machine that runs agents of google-adk and lacks it."""
    agents: dict[Path, list[str]] = {}
    for name, setting in plan.agents.items():
        agent = setting.agent
        if agent.kind == "yaml" or _names(agent.folder, _IMPORTS_ADK):
            agents.setdefault(setting.interpreter.path, []).append(name)
    for python, names in agents.items():
        if lacks_adk(python):
            needs = "need" if len(names) > 1 else "needs"
            message = f"google-adk is not installed in {python}; {few(names)} {needs} it"
            yield Noticed("warning", message, install_adk(str(python)))


def _names(folder: Path, word: re.Pattern[bytes]) -> bool:
    """Return whether the sources contain `word`. Parsing them would take ten times as long."""
    try:
        return any(word.search(read_regular(file)) for pattern in _SOURCES for file in folder.glob(pattern))
    except OSError:
        return False  # The import of the agent gives a better message.

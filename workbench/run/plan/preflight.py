"""Checks of a plan before its first case.

They find criteria that will not be evaluated and how to change that, judges at unusual addresses, retiring models,
criteria without anything to judge, agents without google-adk or a key for their own model, and the number of expected
calls. The checks call no judge and import nothing. One cause is one notice, however many cases it affects.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.agents.declared_tools import declared_tools
from workbench.agents.environment import lacks_adk
from workbench.criteria.registry import described_criteria, descriptions, needs_bench, rubric_types
from workbench.events.events import Noticed
from workbench.files.criteria import Criterion
from workbench.files.evalset import BrokenCaseError, EvalCase
from workbench.files.file_access import read_regular
from workbench.files.frozen_path import frozen_path
from workbench.files.metrics_config import own_entry
from workbench.files.run_options import RunOptions
from workbench.judges.base import DEFAULT_MODEL, JudgeEnvironment, NotAvailableError
from workbench.judges.google_access import gemini_access
from workbench.judges.kinds import NAMES, retires, successor_hint
from workbench.judges.scenario import read_simulator
from workbench.run.plan.plan import AgentSetting, Plan, PlanEntry
from workbench.run.plan.preflight_cases import (
    EnvironmentOf,
    PreflightCase,
    PreflightCases,
    applies,
    calls_to_come,
    defaults_apply,
    judges,
    lacks_rubrics,
    listed,
    missing_functions,
    not_evaluated,
    not_played,
    retiring_models,
)
from workbench.run.plan.source import AgentSource, StoredSource
from workbench.text.counting import counted, few
from workbench.worker.faults import install_adk_hint

CHECKED_CASES = 1000
"""Maximum number of cases that are checked one by one. More would delay a large run.

The other cases are assumed to be similar.
"""
_CONVERSATION = EvalCase("", (), None, None, (), None, None)
"""A placeholder for all cases of a file that have a reference and nothing else to check."""
_GEMINI = re.compile(rb"gemini-")
_IMPORTS_ADK = re.compile(rb"^[ \t]*(from|import) google(\.adk\b| import adk\b)", re.MULTILINE)
_SOURCES = ("*.py", "*/*.py", "*.yaml")


def recordings(entries: Sequence[tuple[PlanEntry, AgentSource]], options: RunOptions) -> Iterator[Noticed]:
    """Yield a notice if cases of a frozen run have no recording. `entries` has each case once."""
    if not options.frozen:
        return
    files = (frozen_path(source.evalset.file, entry.ref.eval_id) for entry, source in entries)
    missing = sum(not os.path.lexists(file) for file in files)
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
    executions = list(_to_run(plan))
    entries = list({entry.ref.name: (entry, source) for entry, source in reversed(executions)}.values())[::-1]
    here = options.place is None or options.place.is_local
    before = [*(agents_without_adk(plan) if here else ()), *recordings(entries, options)]
    one_of_each = {entry.ref.evalset_file: (entry, source) for entry, source in entries}
    plain = {file: entry for file, (entry, source) in one_of_each.items() if _is_plain(entry, source)}
    cases = [_preflight_case(entry, _CONVERSATION) for entry in plain.values()]
    entries = [(entry, source) for entry, source in entries if entry.ref.evalset_file not in plain]
    for entry, source in entries[:CHECKED_CASES]:
        try:
            case = source.evalset.document.case(source.index if source.index is not None else -1)
        except (BrokenCaseError, IndexError):
            continue  # The case reports this itself.
        cases.append(_preflight_case(entry, case))
    scale = len(entries) / max(1, min(len(entries), CHECKED_CASES))
    # A shard or a resumed run has not all repeats of its cases.
    repeats = sum(entry.ref.evalset_file not in plain for entry, _ in executions) / max(1, len(entries))
    once = replace(options, runs=1)
    # Frozen models are not asked.
    asked = not (options.frozen == "all" and options.on_miss == "error")
    own = [*without_keys(plan.agents, environments), *retiring_agents(plan)] if asked else []
    found = [*own, *notices(cases, environments.__getitem__, once, scale * repeats)]
    if found and scale > 1:
        message = f"these notices are based on the first {CHECKED_CASES:,} of {len(entries):,} cases"
        found.append(Noticed("info", message))
    return [*before, *found]


def notices(
    cases: Sequence[PreflightCase],
    environment_of: EnvironmentOf,
    options: RunOptions,
    scale: float = 1.0,
    *,
    played: bool = True,
) -> Iterator[Noticed]:
    """Yield the notices for these cases. The run has `scale` times as many cases.

    `played` is False if the cases have transcripts already.
    """
    checked = PreflightCases(cases, environment_of, played=played)
    yield from not_evaluated(checked)
    yield from missing_functions(checked)
    yield from not_played(checked)
    yield from retiring_models(checked)
    yield from judges(checked)
    yield from idle_criteria(cases)
    yield from missing_thresholds(cases)
    yield from stop_signals(cases)
    yield from untyped_rubrics(cases)
    spoken = (item for item in cases if played and item.case.scenario is None)
    for file in dict.fromkeys(
        item.config_file for item in spoken if read_simulator(item.config.user_simulator_config).audio
    ):
        yield Noticed("warning", f"{file}: llm_audio is not supported yet, so messages are sent as text")
    yield from calls_to_come(checked, scale, options)


def idle_criteria(cases: Sequence[PreflightCase]) -> Iterator[Noticed]:
    """Yield notices about criteria that have nothing to judge in any case of their config."""
    by_config: dict[str, list[PreflightCase]] = defaultdict(list)
    for item in cases:
        if not defaults_apply(item.config):
            by_config[item.config_file].append(item)
    for file, items in by_config.items():
        for criterion in items[0].config.criteria:
            if why := _idle(criterion, items):
                yield Noticed("warning", f"{file}: {criterion.name} has nothing to judge: {why}")


def _idle(criterion: Criterion, items: Sequence[PreflightCase]) -> str:
    info = descriptions().get(criterion.name)
    if info is None or criterion.name in items[0].config.custom_metrics:
        return ""
    if not any(applies(criterion.name, item) for item in items):
        if info.scenarios == "only":
            return "no case has a simulated user"
        return "all cases have a simulated user, so there is no reference"
    if lacks_rubrics(criterion, [rubric for item in items for rubric in item.rubrics]):
        return f"it has no rubrics, and no case or turn has a rubric of type {info.rubric_type}"
    return ""


def missing_thresholds(cases: Iterable[PreflightCase]) -> Iterator[Noticed]:
    """Yield notices with the line to add for metrics of google-agents-cli, whose format has no thresholds."""
    for folder, config in {item.file.rpartition("/")[0]: item.config for item in cases}.items():
        lacking = {
            item.name: own_entry(config.custom_metrics[item.name])["suggested"]
            for item in config.criteria
            if item.is_informational and item.name in config.custom_metrics
        }
        if not lacking:
            continue
        file = f"{folder}/test_config.json".lstrip("/")
        there = config.path is not None and config.path != config.metrics_file
        line = json.dumps(lacking)[1:-1] if there else json.dumps({"criteria": lacking})
        hint = f"Add {line} to the criteria in {file}" if there else f"Write {line} into {file}"
        have = "has" if len(lacking) == 1 else "have"
        message = f"{listed(lacking)} {have} no threshold, because eval_config.yaml cannot contain any"
        yield Noticed("warning", message, f"{hint}, with the threshold that you expect")


def stop_signals(cases: Iterable[PreflightCase]) -> Iterator[Noticed]:
    """Yield notices about configs that wait for a stop signal that no simulated user sends."""
    found = {
        (item.config_file, criterion.name, *useless): None
        for item in cases
        for criterion, info in described_criteria(item.config)
        for useless in info.useless_options(criterion.options)
    }
    for file, name, option, value, only in found:
        message = f"{file}: {name} waits for {value}, but simulated users end with {only}"
        yield Noticed("warning", message, f"Remove `{option}`: {only} is the only stop signal")


def untyped_rubrics(cases: Iterable[PreflightCase]) -> Iterator[Noticed]:
    """Yield notices about rubrics of cases and turns that no criterion reads, because none has their type."""
    types = rubric_types().values()
    by_file: dict[str, dict[str, None]] = defaultdict(dict)
    for item in cases:
        for rubric in item.rubrics:
            if rubric.get("type") not in types:
                by_file[item.file][str(rubric.get("rubric_id"))] = None
    for file, names in by_file.items():
        have, them = ("has", "it") if len(names) == 1 else ("have", "them")
        message = (
            f"{counted(len(names), 'rubric')} ({listed(names)}) {have} no known type, so no criterion reads {them}"
        )
        hint = f'Set "type" to one of {", ".join(rubric_types().values())}'
        yield Noticed("warning", f"{file}: {message}", hint)


def _of_transcripts(plan: Plan, options: RunOptions) -> list[Noticed]:
    entries = [
        (entry, started)
        for entry in plan.entries
        if entry.blocked is None and isinstance(entry.source, StoredSource)
        for started in [entry.source.case.started]
        if started is not None and entry.source.case.why_incomplete() is None
    ]
    cases = [
        _preflight_case(entry, EvalCase(entry.ref.eval_id, now.expected, now.scenario, None, now.rubrics, None, None))
        for entry, now in entries[:CHECKED_CASES]
    ]
    scale = len(entries) / max(1, len(cases))
    once = replace(options, runs=1)  # The entries have all repeats.
    return list(notices(cases, _environments(plan).__getitem__, once, scale, played=False))


def _to_run(plan: Plan) -> Iterator[tuple[PlanEntry, AgentSource]]:
    """Yield each execution that will run."""
    for entry in plan.entries:
        source = entry.source
        if entry.blocked is None and isinstance(source, AgentSource) and not source.fork:
            yield entry, source


def _environments(plan: Plan) -> dict[str, JudgeEnvironment]:
    return {name: JudgeEnvironment(**setting.judge_environment()) for name, setting in plan.agents.items()}


def _preflight_case(entry: PlanEntry, case: EvalCase) -> PreflightCase:
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
    """Yield a notice for each of the agents' own Gemini models that lacks a key. Its hint says which one to set."""
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
            yield Noticed("warning", message, install_adk_hint(str(python)))


def _names(folder: Path, word: re.Pattern[bytes]) -> bool:
    """Return whether the agent's sources contain `word`, or False if one of them cannot be read."""
    try:
        return any(word.search(read_regular(file)) for pattern in _SOURCES for file in folder.glob(pattern))
    except OSError:
        return False  # The import of the agent gives a better message.

"""The plan of one shard, and the state of the project that all shards must share."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.events.events import CaseRef, Noticed
from workbench.events.shards import Shard, ShardNumber
from workbench.files.criteria import CriteriaConfig
from workbench.files.frozen_path import FILE_SUFFIX, frozen_folder
from workbench.files.git import commit_of, run_git
from workbench.files.run_options import RESULT_OPTIONS, RunOptions, stored_options
from workbench.files.walk import Walk, relative_to
from workbench.freshness.current import other_files
from workbench.run.plan.plan import Plan, PlanEntry
from workbench.run.plan.source import AgentSource
from workbench.run.provenance import is_source, versions
from workbench.store.digests import Digests
from workbench.store.inputs import digest

_SALT = "shards"
"""A salt that is not secret, so that digests can be compared between machines."""
_GIT_SECONDS = 10.0
_FILES = 300
"""Number of an agent's files up to which each has a digest of its own."""
_DATA = frozenset({".json", ".md", ".toml", ".txt"})
"""Endings of files that may be data, or prompts."""
DEFAULTS = "defaults"
"""Placeholder for the config of cases without one."""


def plan_of_shard(plan: Plan, number: ShardNumber) -> Plan:
    """Return the part of a plan that a shard runs: every N-th execution, from the K-th on.

    It reads the files that the verdicts depend on, so do not call it in an event loop's thread.
    """
    shard = describe_shard(plan, number)
    entries = plan.entries[number.index - 1 :: number.count]
    names = {entry.ref.agent for entry in entries if entry.blocked is None}
    agents = {name: setting for name, setting in plan.agents.items() if name in names}
    text = f"shard {number}: {len(entries):,} of {shard.executions:,} executions"
    return replace(plan, entries=entries, agents=agents, shard=shard, notices=(Noticed("info", text), *plan.notices))


def describe_shard(plan: Plan, number: ShardNumber) -> Shard:
    """Return the shard with this number of a whole plan."""
    digests = Digests(_SALT)
    made = versions(plan.agents.values(), plan.options.place)
    return Shard(
        number.index,
        number.count,
        executions=len(plan.entries),
        plan=plan_digest(entry.ref for entry in plan.entries),
        files=dict(sorted(_files(plan, digests))),
        criteria=_criteria(plan),
        options=_options(plan.options),
        versions={name: version for name, version in made.items() if name != "place"},
        commit=str(commit_of(plan.root, _GIT_SECONDS).get("commit", "")),
    )


def plan_digest(refs: Iterable[CaseRef]) -> str:
    """Return a digest of the executions of a plan, in order."""
    return digest([[ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat] for ref in refs])


def _options(options: RunOptions) -> dict[str, Any]:
    usual, given = stored_options(RunOptions()), stored_options(options)
    found = {name: given[field] for field, name in RESULT_OPTIONS.items() if given[field] != usual[field]}
    if not options.use_cache:
        found[RESULT_OPTIONS["use_cache"]] = True
    return found | ({"--inject": given["inject"]} if "inject" in given else {})


def _criteria(plan: Plan) -> dict[str, str]:
    """Return the criteria by config. A dataset and an evalset may take different ones from the same file."""
    configs: dict[str, dict[int, CriteriaConfig]] = {}
    for entry in plan.entries:
        configs.setdefault(entry.planned.config_file or DEFAULTS, {})[id(entry.config)] = entry.config
    return {name: digest([_as_json(config) for config in found.values()]) for name, found in sorted(configs.items())}


def _as_json(config: CriteriaConfig) -> list[Any]:
    criteria = [[criterion.name, criterion.value] for criterion in config.criteria]
    return [criteria, config.custom_metrics, config.user_simulator_config]


def _files(plan: Plan, digests: Digests) -> Iterator[tuple[str, str]]:
    """Yield the files that the verdicts depend on, except criteria configs, with their digests."""
    evalsets: dict[Path, PlanEntry] = {}
    for entry in plan.entries:
        if isinstance(entry.source, AgentSource):
            evalsets.setdefault(entry.source.evalset.file, entry)
    for file, entry in evalsets.items():
        yield relative_to(file, plan.root), digests.file(file)
        if plan.options.frozen or plan.options.thaw:
            yield from _recordings(frozen_folder(file), plan.root, digests)
        agent = plan.agents.get(entry.ref.agent)
        if agent is not None and entry.blocked is None:
            judges = other_files(entry.config, plan.root, agent.agent.folder)
            for path in {path for paths in judges.values() for path in paths if path.is_relative_to(plan.root)}:
                yield relative_to(path, plan.root), digests.file(path)
    tracked = frozenset(os.fsdecode(run_git(plan.root, "ls-files", "-z", seconds=_GIT_SECONDS) or b"").split("\0"))
    for setting in plan.agents.values():
        yield from _sources(setting.agent.folder, plan.root, tracked, digests)


def _recordings(folder: Path, root: Path, digests: Digests) -> Iterator[tuple[str, str]]:
    """Yield the folder with the recordings of an evalset as one file, because it has a file for each case."""
    found = {path.name: digests.file(path) for path in sorted(folder.glob(f"*{FILE_SUFFIX}"))}
    if found:
        yield relative_to(folder, root), digest(found)


def _sources(folder: Path, root: Path, tracked: frozenset[str], digests: Digests) -> Iterator[tuple[str, str]]:
    """Yield the files of an agent. Data counts only if git tracks it: runs may write other data, such as reports."""
    paths = (step.path / name for step in Walk(folder) for name in step.files if is_source(name))
    found = {
        name: digests.file(path)
        for path in paths
        if (name := relative_to(path, root)) in tracked or path.suffix not in _DATA
    }
    yield from found.items() if len(found) <= _FILES else [(relative_to(folder, root), digest(found))]

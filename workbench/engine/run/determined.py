"""What determines a run besides its agents' files: cases, criteria, options, interpreters and environment, as digests.

A run that was interrupted is resumed only where all of it is the same. Values of the environment are told by a digest
with the run's own salt, so short that no value can be found from it; the values themselves are never kept.

The shape, in `RunStarted.determined`: `salt`; `options` name → value; `cases` evalset → case id → digest; `criteria`
evalset → digest; `packages` agent → digest of its interpreter and what is installed there, "" for ours; `environment`
agent → name → digest.
"""

import hashlib
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.agents.workspace import EvalsetEntry
from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import AgentSetting, Plan
from workbench.engine.plan.source import AgentSource
from workbench.engine.run.provenance import Kept
from workbench.engine.scoring.judging_functions import function_files
from workbench.model.evalset import BrokenCaseError
from workbench.regular_file import read_regular

OPTIONS = {
    "runs": "--runs",
    "timeout": "--timeout",
    "isolation": "--isolation",
    "allow_not_evaluated": "--allow-not-evaluated",
    "use_cache": "--no-cache",
    "all_votes": "--all-votes",
    "max_judge_calls": "--max-judge-calls",
    "until_sure": "--until-sure",
}
"""The options that matter to results, by their names on the command line."""
_FAMILIES = re.compile(
    r"^(?:GOOGLE_|GEMINI_|VERTEX|ADK_|OPENAI_|AZURE_|ANTHROPIC_|LITELLM|AWS_|OLLAMA_|AGENT_WORKBENCH_|PYTHON(?:PATH|HOME|HASHSEED|OPTIMIZE)$)"
    r"|_(?:API_KEY|API_BASE|BASE_URL)$|^(?:HTTPS?|ALL|NO)_PROXY$",
    re.IGNORECASE,
)
"""Variables that models, clients and interpreters read, whether or not the agent's sources name them."""
_OF_THE_TERMINAL = frozenset({"PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "WINDOWID", "DISPLAY"})
_NAMED = re.compile(rb"[A-Z][A-Z0-9_]{2,}")
_INSTALLED = (".dist-info", ".egg-info", ".egg-link")


def new_salt() -> str:
    """Another one for each run."""
    return secrets.token_hex(16)


def determined(plan: Plan, options: RunOptions, kept: Kept, salt: str) -> dict[str, Any]:
    """What determines this run, with the agents' files in `kept`. Reads files: for a thread."""
    cases: dict[str, dict[str, str]] = {}
    criteria: dict[str, str] = {}
    for entry in plan.entries:
        file, source = entry.ref.evalset_file, entry.source
        if not isinstance(source, AgentSource):
            continue
        if file not in criteria:
            criteria[file] = _digest(_criteria(source.evalset, plan.root))
        if entry.ref.repeat == 1:
            cases.setdefault(file, {})[entry.ref.eval_id] = _digest(_case(source))
    agents = plan.agents
    interpreters = {"": Path(sys.executable), **{name: setting.interpreter.path for name, setting in agents.items()}}
    installed = {interpreter: _packages(interpreter) for interpreter in interpreters.values()}  # Mostly one for all.
    return {
        "salt": salt,
        "options": {name: getattr(options, name) for name in OPTIONS},
        "cases": cases,
        "criteria": criteria,
        "packages": {name: installed[interpreter] for name, interpreter in interpreters.items()},
        "environment": {name: _environment(setting, kept, name, salt) for name, setting in agents.items()},
    }


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What is not as it was, each as a few words. Both as `determined` makes them; the first may be of any shape."""
    options, packages = _object(then.get("options")), _object(then.get("packages"))
    for name, value in now["options"].items():
        if options.get(name) != value:
            yield f"{OPTIONS[name]} is another one"
    for file, digests in now["cases"].items():
        before = _object(_object(then.get("cases")).get(file))
        changed = [eval_id for eval_id, digest in digests.items() if before.get(eval_id) != digest]
        if changed:
            yield f"{changed[0] or 'the file'} in {file} changed" + f" and {len(changed) - 1} more" * (len(changed) > 1)
    for file, digest in now["criteria"].items():
        if _object(then.get("criteria")).get(file) != digest:
            yield f"the criteria of {file} changed"
    for agent, digest in now["packages"].items():
        if packages.get(agent) != digest:
            yield f"the interpreter of {agent or 'the workbench'}, or what is installed there, changed"
    for agent, variables in now["environment"].items():
        yield from _changed_variables(_object(_object(then.get("environment")).get(agent)), variables)


def _changed_variables(then: Mapping[str, Any], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            yield f"the environment variable {name} {'changed' if name in then and name in now else 'came or went'}"


def changed_files(then: Mapping[str, Any], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The files of agents (`workbench.events.Sources`) that are not as they were, each as a few words."""
    for agent in now:
        before = _object(then.get(agent))
        for path in sorted({*before, *now[agent]}):
            if path not in now[agent]:
                yield f"{path} is gone"
            elif path not in before:
                yield f"{path} is new"
            elif before[path] != now[agent][path]:
                yield f"{path} changed"


def _case(source: AgentSource) -> Iterator[bytes]:
    document = source.evalset.document
    if source.index is None:
        yield from (fault.sentence("").encode("utf-8", "replace") for fault in document.faults)
        return
    yield document.text(source.index)
    if document.format != "current":
        # Of the old formats, the session stands in another file.
        try:
            yield json.dumps(document.case(source.index).session_input, sort_keys=True).encode("ascii")
        except BrokenCaseError as broken:
            yield str(broken).encode("utf-8", "replace")


def _criteria(evalset: EvalsetEntry, root: Path) -> Iterator[bytes]:
    config = evalset.criteria.config
    settings = [{item.name: item.value for item in config.criteria}, config.custom_metrics]
    yield json.dumps([*settings, config.user_simulator_config], sort_keys=True).encode("ascii")
    folder = evalset.agent.folder if evalset.agent is not None else root
    for file in function_files(config, root, folder):
        try:
            yield read_regular(file)
        except OSError:
            yield b"?"


def _packages(interpreter: Path) -> str:
    """Which interpreter, and the names and versions of what is installed beside it."""
    names = [str(interpreter)]
    for folder in sorted(interpreter.parent.parent.glob("lib/python*/*-packages")):
        try:
            names += sorted(name for name in os.listdir(folder) if name.endswith(_INSTALLED))  # noqa: PTH208
        except OSError:
            names.append(f"? {folder}")
    return _digest(name.encode("utf-8", "surrogateescape") for name in names)


def _environment(setting: AgentSetting, kept: Kept, agent: str, salt: str) -> dict[str, str]:
    named: set[str] = set(setting.environment.names)
    # Its own files; which others it reads may not be known yet when the run begins.
    own = os.path.relpath(setting.agent.folder, setting.root).replace(os.sep, "/") + "/"
    for path, digest in kept.sources.get(agent, {}).items():
        if path.startswith(own) or own == "./":
            named.update(name.decode("ascii") for name in _NAMED.findall(kept.contents.get(digest, b"")))
    return {
        name: hashlib.blake2b(f"{salt}{name}={value}".encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
        for name, value in setting.environment.values.items()
        if name not in _OF_THE_TERMINAL and (name in named or _FAMILIES.search(name))
    }


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        found.update(b"%d:" % len(part) + part)
    return found.hexdigest()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

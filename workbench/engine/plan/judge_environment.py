"""The environment of an agent for the scorer, so that judges use the same keys and settings as the agent."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from workbench.engine.plan.plan import AgentSetting


def judge_environment(setting: AgentSetting) -> dict[str, Any]:
    """Return the fields of the agent's `workbench.judge.environment.JudgeEnvironment`.

    Agents in different folders have different environments, because their functions are imported from there.
    """
    spec = setting.spec()
    fields = {
        "values": spec["env"],
        "interpreter": str(setting.interpreter.path),
        "root": spec["root"],
        "folder": spec["folder"],
        "cwd": spec["cwd"],
    }
    written = json.dumps(fields, sort_keys=True).encode("ascii")
    return {"key": hashlib.sha256(written).hexdigest()[:32], **fields}


def judge_environments(settings: Mapping[str, AgentSetting]) -> Callable[[str], dict[str, Any]]:
    """Return a function from an agent's name to its judge environment.

    It is computed on first use, because most runs ask no judge.
    """
    return cache(lambda agent: judge_environment(settings[agent]))

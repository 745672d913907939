"""What the scorer is told of an agent, so that its judges are asked as the agent itself would ask."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from workbench.engine.plan.plan import AgentSetting


def judge_environment(setting: AgentSetting) -> dict[str, Any]:
    """The fields of the agent's `workbench.judge.environment.JudgeEnvironment`. Two agents that differ in nothing but
    where they lie have two of them: their functions are imported from there."""
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
    """That of each agent, by its name. Made when it is first needed: most runs ask nobody."""
    return cache(lambda agent: judge_environment(settings[agent]))

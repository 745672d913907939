"""The files of Python functions that judge: verdicts hang on them as on the agent's own."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.agents.function_source import function_file
from workbench.judge.own_kinds import FUNCTION
from workbench.model.criteria import CriteriaConfig

_NAME = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")


def function_files(config: CriteriaConfig, root: Path, folder: Path) -> list[Path]:
    """Those of the project that `config` names, sorted: custom metrics, judges, simulated users; `folder` is the
    agent's. What they import is not looked at."""
    values = [{item.name: item.value for item in config.criteria}, config.custom_metrics, config.user_simulator_config]
    names = {text.removeprefix(FUNCTION) for text in _texts(values)}
    files = {function_file(name, root, folder) for name in names if _NAME.fullmatch(name)}
    return sorted(file for file in files if file is not None)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)

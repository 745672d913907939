"""The files of Python functions that a criteria config names: verdicts depend on them as on the agent's own."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.agents.function_source import function_file
from workbench.judge.own_kinds import FUNCTION
from workbench.model.criteria import CriteriaConfig

_NAME = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")


def judging_files(config: CriteriaConfig, root: Path, folder: Path) -> list[Path]:
    """Return the project's files of custom metrics and judges, sorted; `folder` is the agent's. What they import is not
    looked at."""
    return _files([{item.name: item.value for item in config.criteria}, config.custom_metrics], root, folder)


def simulating_files(config: CriteriaConfig, root: Path, folder: Path) -> list[Path]:
    """Return the project's files of functions that play the user, sorted."""
    return _files(config.user_simulator_config, root, folder)


def _files(settings: Any, root: Path, folder: Path) -> list[Path]:
    names = {text.removeprefix(FUNCTION) for text in _texts(settings)}
    files = {function_file(name, root, folder) for name in names if _NAME.fullmatch(name)}
    return sorted(file for file in files if file is not None)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)

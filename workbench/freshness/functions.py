"""Files of Python functions that judge or play the user, which verdicts depend on too."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.agents.workspace.function_source import function_file
from workbench.criteria.description import JUDGE
from workbench.criteria.registry import CRITERIA
from workbench.files.criteria import CriteriaConfig
from workbench.files.metrics_config import own_entry
from workbench.files.plugins import module_file
from workbench.judges.base import NotAvailableError
from workbench.judges.kinds import JUDGES, is_own, kind_of
from workbench.judges.model_options import read_judge_options
from workbench.judges.own_kinds import FUNCTION
from workbench.store.inputs import Input
from workbench.worker.imports import imports_of

_NAME = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")


def other_files(config: CriteriaConfig, root: Path, folder: Path) -> dict[Input, list[Path]]:
    """Return sorted files by kind of input. `folder` is the agent's.

    Files of the kind `simulator` count only for cases with a simulated user.
    """
    return {
        "function": _judging_files(config, root, folder),
        "simulator": _files(config.user_simulator_config, root, folder),
    }


def _judging_files(config: CriteriaConfig, root: Path, folder: Path) -> list[Path]:
    """Return the files of custom metrics and judges, of the project and of other packages.

    Modules of the project that they import count too.
    """
    named = [root / file for entry in config.custom_metrics.values() if (file := own_entry(entry).get("file"))]
    values = [{item.name: item.value for item in config.criteria}, config.custom_metrics]
    return sorted({*_files(values, root, folder, named), *_plugin_files(config)})


def _files(settings: Any, root: Path, folder: Path, named: Iterable[Path] = ()) -> list[Path]:
    names = {text.removeprefix(FUNCTION) for text in _texts(settings)}
    files = {*named, *(function_file(name, root, folder) for name in names if _NAME.fullmatch(name))}
    start = [str(file) for file in files if file is not None]
    return sorted(Path(source.file) for source in imports_of(start, str(folder), str(root)).sources)


def _plugin_files(config: CriteriaConfig) -> Iterator[Path]:
    for criterion in config.criteria:
        if criterion.name in CRITERIA.others() and (info := CRITERIA.get(criterion.name)) is not None:
            yield from _modules(CRITERIA.extension(criterion.name).value, info.score)
        options = criterion.options.get(JUDGE)
        if JUDGES.others() and isinstance(options, dict):
            with contextlib.suppress(NotAvailableError, ValueError):
                kind = kind_of(read_judge_options(options).model)
                if not is_own(kind):
                    yield from _modules(JUDGES.extension(kind.name).value, kind.connect)


def _modules(*values: str) -> Iterator[Path]:
    for value in values:
        with contextlib.suppress(ImportError):
            yield module_file(value.partition(":")[0])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)

"""The choice of the criteria for an evalset, and its reason."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.files.criteria import CriteriaConfig, default_config, read_config
from workbench.files.metrics_config import METRICS_FILE, MetricsConfig, read_metrics, with_metrics
from workbench.files.walk import up_to

CONFIG_NAMES = ("test_config.json", "eval_config.json")
DATASET_CONFIG = "test_config.json"
"""The config beside a dataset of google-agents-cli, whose own config has no thresholds."""
CONFIG_FILES = (*CONFIG_NAMES, METRICS_FILE)
"""Names of all files that define criteria."""
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class CriteriaChoice:
    """The criteria of an evalset and their origin as text, such as "test_config.json beside the evalset".

    A file without `criteria` keeps its other settings (a user simulator, custom metrics) and gets the default criteria.
    `given` means that the user named the file, for all evalsets.
    """

    config: CriteriaConfig
    reason: str
    changed: tuple[str, ...] = ()
    """The user's changes for one run that are not in the file: one sentence for each criterion."""
    given: bool = False


class CriteriaChooser:
    """The choice of criteria for the evalsets of one workspace. Each config is read once.

    `config` is a file that the user named for all evalsets; then no other file is used. Otherwise it is the first of
    `CONFIG_NAMES` in the evalset's folder, then in each folder above it up to `root`. For an evalset outside `root`,
    only its own folder counts. Without any file, the defaults apply. A missing or broken config is still chosen, with
    faults. Another file instead would give verdicts by unwanted criteria.

    A dataset of google-agents-cli has the metrics of the nearest `eval_config.yaml`, and thresholds and further
    criteria from the `test_config.json` beside it. It has no default criteria. A `config` in YAML is such an
    `eval_config.yaml` for all files.
    """

    def __init__(self, root: Path, config: Path | None) -> None:
        self._root = root
        self._given: CriteriaChoice | None = None
        self._given_metrics: MetricsConfig | None = None
        if config is not None and config.suffix in _YAML:
            self._given_metrics = read_metrics(config, root)
        elif config is not None:
            self._given = CriteriaChoice(read_config(config), f"given: {config}", given=True)
        self._found: dict[tuple[Path, bool], CriteriaChoice] = {}

    def choose(self, evalset: Path, *, is_dataset: bool = False) -> CriteriaChoice:
        """Return the criteria for the file `evalset` (an absolute path)."""
        if self._given is not None:
            return self._given if is_dataset else _with_defaults(self._given)
        has_metrics = is_dataset or self._given_metrics is not None
        key = evalset.parent, has_metrics
        if key not in self._found:
            self._found[key] = self._of_dataset(evalset.parent) if has_metrics else self._search(evalset.parent)
        return self._found[key]

    def _of_dataset(self, folder: Path) -> CriteriaChoice:
        metrics, beside = self._given_metrics, folder / DATASET_CONFIG
        reasons = [] if metrics is None else [f"given: {metrics.path}"]
        above = (step for step in up_to(folder, self._root) if _is_there(step / METRICS_FILE))
        if metrics is None and (step := next(above, None)) is not None:
            metrics = read_metrics(step / METRICS_FILE, self._root)
            reasons = [f"{METRICS_FILE} {self._place(step, folder, 'dataset')}"]
        config = None
        if _is_there(beside):
            config = read_config(beside)
            reasons.append(f"{DATASET_CONFIG} beside the dataset")
        nothing = f"none: no {METRICS_FILE} beside the dataset or above it, and no {DATASET_CONFIG} beside it"
        choice = CriteriaChoice(with_metrics(config, metrics, beside), " and ".join(reasons) or nothing)
        return replace(choice, given=self._given_metrics is not None)

    def _search(self, folder: Path) -> CriteriaChoice:
        for step in up_to(folder, self._root):
            for name in CONFIG_NAMES:
                if _is_there(step / name):
                    reason = f"{name} {self._place(step, folder, 'evalset')}"
                    return _with_defaults(CriteriaChoice(read_config(step / name), reason))
        reason = f"defaults: no {' or '.join(CONFIG_NAMES)} beside the evalset or above it"
        return CriteriaChoice(default_config(), reason)

    def _place(self, step: Path, folder: Path, what: str) -> str:
        if step == folder:
            return f"beside the {what}"
        shown = "the root" if step == self._root else f"{step.relative_to(self._root).as_posix()}/"
        return f"in {shown}, above the {what}"


def _is_there(path: Path) -> bool:
    """Return whether `path` is meant as a config, even if it cannot be read.

    So broken links, pipes and devices count. Folders do not.
    """
    return os.path.lexists(path) and not path.is_dir()


def _with_defaults(choice: CriteriaChoice) -> CriteriaChoice:
    if choice.config.broken or choice.config.has_criteria:
        return choice
    filled = replace(choice.config, criteria=default_config().criteria)
    return replace(choice, config=filled, reason=f'defaults: no "criteria" in the config ({choice.reason})')

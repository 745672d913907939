"""The choice of the criteria for an evalset, and its reason."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.agents.walk import up_to
from workbench.model.criteria import CriteriaConfig, default_config, read_config

CONFIG_NAMES = ("test_config.json", "eval_config.json")


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
    """

    def __init__(self, root: Path, config: Path | None) -> None:
        self._root = root
        self._given = (
            None if config is None else replace(_with_defaults(read_config(config), f"given: {config}"), given=True)
        )
        self._found: dict[Path, CriteriaChoice] = {}

    def choose(self, evalset: Path) -> CriteriaChoice:
        """Return the criteria for the file `evalset` (an absolute path)."""
        if self._given is not None:
            return self._given
        folder = evalset.parent
        if folder not in self._found:
            self._found[folder] = self._search(folder)
        return self._found[folder]

    def _search(self, folder: Path) -> CriteriaChoice:
        for step in up_to(folder, self._root):
            for name in CONFIG_NAMES:
                if _is_there(step / name):
                    return _with_defaults(read_config(step / name), f"{name} {self._place(step, folder)}")
        return CriteriaChoice(
            default_config(), f"defaults: no {' or '.join(CONFIG_NAMES)} beside the evalset or above it"
        )

    def _place(self, step: Path, folder: Path) -> str:
        if step == folder:
            return "beside the evalset"
        shown = "the root" if step == self._root else f"{step.relative_to(self._root).as_posix()}/"
        return f"in {shown}, above the evalset"


def _is_there(path: Path) -> bool:
    """Return whether `path` is meant as a config, even if it cannot be read.

    So broken links, pipes and devices count. Folders do not.
    """
    return os.path.lexists(path) and not path.is_dir()


def _with_defaults(config: CriteriaConfig, reason: str) -> CriteriaChoice:
    if config.broken or config.has_criteria:
        return CriteriaChoice(config, reason)
    filled = replace(config, criteria=default_config().criteria)
    return CriteriaChoice(filled, f'defaults: no "criteria" in the config ({reason})')

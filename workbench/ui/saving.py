"""The criteria of the run to come, written into their config files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.ui.draft import Draft, Setting, configs

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.criteria_edit import CriterionChange

NEW_CONFIG = "test_config.json"
"""What ADK looks for beside an evalset."""


def save(entries: "Sequence[EvalsetEntry]", draft: Draft) -> list[Path]:
    """Writes what the draft changes for these evalsets into their configs, and forgets it there. Where the defaults
    applied, a new file beside the evalset takes all of the criteria. Returns the files written.

    Raises:
        OSError, ValueError: a file cannot be changed or written; those before it are done. Says which and why.
    """
    from workbench.authoring.criteria_edit import new_config, save_criteria

    written: list[Path] = []
    for choice in configs(entry.criteria for entry in entries):
        config = choice.config
        changed = draft.changed(config)
        if not changed:
            continue
        if config.path is not None and config.has_criteria:
            save_criteria(config.path, map(_change, changed))
            written.append(config.path)
        elif config.path is not None:
            raise ValueError(f"{config.path} has no criteria of its own: write them there by hand first")
        else:
            file = _folder(entries) / NEW_CONFIG
            new_config(file, map(_change, draft.settings(config)))
            written.append(file)
        draft.forget(config)
    return written


def _folder(entries: "Sequence[EvalsetEntry]") -> Path:
    """The folder of the evalsets for which the defaults apply, if it is one."""
    folders = {entry.file.parent for entry in entries if entry.criteria.config.path is None}
    if len(folders) > 1:
        raise ValueError(f"the evalsets are in {len(folders)} folders: save for one of them at a time")
    return folders.pop()


def _change(setting: Setting) -> "CriterionChange":
    from workbench.authoring.criteria_edit import CriterionChange

    return CriterionChange(setting.name, setting.on, setting.threshold, setting.match_type)

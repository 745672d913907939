"""The criteria of the run to come, written into their config files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.counting import counted
from workbench.ui.draft import Draft, Setting, configs
from workbench.ui.judge_setting import judge_setting, said, with_judge

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.criteria_change import Content
    from workbench.authoring.saving import Saver


def save(entries: "Sequence[EvalsetEntry]", draft: Draft, saver: "Saver") -> list[Path]:
    """Writes what the draft changes for these evalsets into their configs, and forgets it there. Where the defaults
    applied, a new file beside the evalset takes all of the criteria. Returns the files written. For a thread.

    Raises:
        ChangedOnDiskError, OSError, ValueError: a file cannot be changed or written; those before it are done. Says
            which and why.
    """
    from workbench.authoring.config_file import NEW_CONFIG, new_draft, open_config, save_config

    written: list[Path] = []
    for choice in configs(entry.criteria for entry in entries):
        config = choice.config
        changed = draft.changed(config)
        if not changed:
            continue
        if config.path is None:
            file = _folder(entries) / NEW_CONFIG
            opened = new_draft(file)
        else:
            file = config.path
            opened = open_config(file)
        save_config(saver, opened, drafted(opened.content, changed))
        written.append(file)
        draft.forget(config)
    return written


def drafted(content: "Content", changed: Iterable[Setting]) -> "Content":
    """A config's content with the settings that were changed."""
    from workbench.authoring.criteria_change import with_criterion, with_value, without
    from workbench.authoring.spelling import key_in

    for setting in changed:
        place = ("criteria", setting.name)
        if not setting.on:
            content = without(content, place)
            continue
        content = with_criterion(content, setting.name, setting.threshold)
        value = content["criteria"][setting.name]
        options = value if isinstance(value, dict) else {}
        content = with_value(content, (*place, "threshold") if options else place, setting.threshold)
        key = key_in(options, "match_type")
        if setting.match_type is not None and (key is not None or setting.match_type != "EXACT"):
            content = with_value(content, (*place, key or "match_type"), setting.match_type)
        content = _with_judge(content, setting)
    return content


def _with_judge(content: "Content", setting: Setting) -> "Content":
    from workbench.authoring.criteria_change import with_value
    from workbench.model.breaches import snake

    value = content["criteria"][setting.name]
    there = {snake(key): item for key, item in value.items()} if isinstance(value, dict) else {}
    options = there.get("judge_model_options")
    plain = {snake(key): item for key, item in options.items()} if isinstance(options, dict) else {}
    told = said(setting.judge, judge_setting(setting.name, {"judge_model_options": plain})) if setting.judge else {}
    if not told:
        return content
    object_value = value if isinstance(value, dict) else {"threshold": value}
    return with_value(content, ("criteria", setting.name), with_judge(object_value, told))


def _folder(entries: "Sequence[EvalsetEntry]") -> Path:
    """The folder of the evalsets for which the defaults apply, if it is one."""
    folders = {entry.file.parent for entry in entries if entry.criteria.config.path is None}
    if len(folders) > 1:
        raise ValueError(f"the evalsets are in {counted(len(folders), 'folder')}: save for one of them at a time")
    return folders.pop()

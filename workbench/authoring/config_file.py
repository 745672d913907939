"""A criteria config on its way from the disk into a form and back: nothing is written that would not run, and no byte
that was not meant."""

import json
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path

from workbench.authoring.criteria_change import Content, changed_names, settled
from workbench.counting import few
from workbench.metrics.registry import check_criteria
from workbench.model.criteria import DEFAULTS, parse_config
from workbench.model.faults import Fault
from workbench.model.json_edit import EditError, revised
from workbench.regular_file import read_regular

NEW_CONFIG = "test_config.json"
"""What ADK looks for beside an evalset."""


class ConfigRejectedError(ValueError):
    """The config would stop a run before it starts; nothing was written. `faults` are those that the change brought."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults[0].sentence(faults[0].file.name))
        self.faults = faults


@dataclass(frozen=True)
class ConfigDraft:
    """`before` is what the file held when the edit began, None for no file; `content` what it said, with the default
    criteria where it names none: they hold then (`defaults`)."""

    file: Path
    before: bytes | None
    content: Content
    defaults: bool = False

    def bytes_of(self, content: Content) -> bytes:
        """The file saying `content` instead.

        Raises:
            EditError: it cannot be changed without harm.
        """
        if self.before is None:
            return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        mark = BOM_UTF8 if self.before.startswith(BOM_UTF8) else b""
        text = _text(self.before)
        return mark + revised(text, settled(json.loads(text), content)).encode("utf-8")


def open_config(file: Path) -> ConfigDraft:
    """Begins to edit a config; for a thread.

    Raises:
        OSError, EditError: it cannot be read, or is no JSON object.
    """
    return draft_of(file, read_regular(file))


def draft_of(file: Path, before: bytes) -> ConfigDraft:
    """The same with a content that was read.

    Raises:
        EditError: it is no JSON object.
    """
    faults = [fault for fault in parse_config(file, before).faults if not fault.json_path]
    try:
        content = json.loads(_text(before))
    except (ValueError, RecursionError):
        why = next((fault.sentence(file.name) for fault in faults if fault.severity == "error"), file.name)
        raise EditError(f"{why}: it is not in order, so nothing is changed in it") from None
    if not isinstance(content, dict):
        raise EditError(f"{file.name} holds no object")
    defaults = "criteria" not in content
    return ConfigDraft(file, before, {**content, "criteria": dict(DEFAULTS)} if defaults else content, defaults)


def new_draft(file: Path) -> ConfigDraft:
    """A config that is not there yet, with the criteria that hold without one."""
    return ConfigDraft(file, None, {"criteria": dict(DEFAULTS)}, defaults=True)


def faults_in(file: Path, content: bytes) -> tuple[Fault, ...]:
    """What a run would say about this content of the file, and what is odd."""
    config = parse_config(file, content)
    return (*config.faults, *check_criteria(config))


def faults_of_draft(draft: ConfigDraft, content: Content) -> tuple[Fault, ...]:
    """The same for what a draft is to say.

    Raises:
        EditError: as `bytes_of`.
    """
    return faults_in(draft.file, draft.bytes_of(content))


def new_faults(draft: ConfigDraft, content: Content) -> tuple[Fault, ...]:
    """Return what would stop a run under this content, and does not under the file.

    Raises:
        EditError: as `bytes_of`.
    """
    known = {(fault.json_path, fault.message) for fault in faults_in(draft.file, draft.before or b"{}")}
    return tuple(
        fault
        for fault in faults_of_draft(draft, content)
        if fault.severity == "error" and (fault.json_path, fault.message) not in known
    )


def edit_of(draft: ConfigDraft, content: Content) -> tuple[str, bytes]:
    """Return what the edit to `content` is called, and the file after it.

    Raises:
        ConfigRejectedError: it would say something that stops a run, and did not before.
        EditError: the file cannot be changed without harm.
    """
    after = draft.bytes_of(content)
    if new := new_faults(draft, content):
        raise ConfigRejectedError(new)
    return f"criteria: {few(changed_names(draft.content, content)) or 'written'}", after


def _text(content: bytes) -> str:
    try:
        return content.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditError(f"it is not UTF-8 ({error.reason})") from None

"""Reading and writing of a criteria config in a form. Configs that could not run are not written."""

import json
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path

from workbench.criteria.registry import check_criteria
from workbench.editing.criteria_change import Content, changed_names, settled
from workbench.files.criteria import DEFAULTS, parse_config
from workbench.files.faults import Fault
from workbench.files.file_access import read_regular
from workbench.files.json_text.json_edit import EditError, revised
from workbench.files.metrics_config import MetricsConfig, with_metrics
from workbench.text.counting import few

NEW_CONFIG = "test_config.json"
"""Name of the config that ADK looks for beside an evalset."""


class ConfigRejectedError(ValueError):
    """The config would stop a run before it starts; nothing was written.

    `faults` are the faults that the change causes.
    """

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults[0].sentence(faults[0].file.name))
        self.faults = faults


@dataclass(frozen=True)
class ConfigDraft:
    """A config being edited.

    `before` is the file's content when the edit began, or None without a file. `content` is its data. If it names no
    criteria, `content` has the default criteria, and `defaults` is True.
    """

    file: Path
    before: bytes | None
    content: Content
    defaults: bool = False
    metrics: MetricsConfig | None = None
    """The metrics of the dataset beside the file, which has no default criteria; None for evalsets."""

    def bytes_of(self, content: Content) -> bytes:
        """Return the file's bytes with `content` in it.

        Raises:
            EditError: the file cannot be changed without damage.
        """
        if self.before is None:
            return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        mark = BOM_UTF8 if self.before.startswith(BOM_UTF8) else b""
        text = _text(self.before)
        return mark + revised(text, settled(json.loads(text), content)).encode("utf-8")


def open_config(file: Path, metrics: MetricsConfig | None = None) -> ConfigDraft:
    """Open a config for editing. May block, so call it in a thread.

    Raises:
        OSError: the file cannot be read.
        EditError: the file is not a JSON object.
    """
    return draft_of(file, read_regular(file), metrics)


def draft_of(file: Path, before: bytes, metrics: MetricsConfig | None = None) -> ConfigDraft:
    """Return the draft of a file whose content was read already.

    Raises:
        EditError: the content is not a JSON object.
    """
    faults = [fault for fault in parse_config(file, before).faults if not fault.json_path]
    try:
        content = json.loads(_text(before))
    except (ValueError, RecursionError):
        why = next((fault.sentence(file.name) for fault in faults if fault.severity == "error"), file.name)
        raise EditError(f"{why}: invalid config; file left unchanged") from None
    if not isinstance(content, dict):
        raise EditError(f"{file.name} does not contain an object")
    defaults = "criteria" not in content
    filled = {**content, "criteria": _default_criteria(metrics)} if defaults else content
    return ConfigDraft(file, before, filled, defaults, metrics)


def new_draft(file: Path, metrics: MetricsConfig | None = None) -> ConfigDraft:
    """Return the draft of a new config with the default criteria."""
    return ConfigDraft(file, None, {"criteria": _default_criteria(metrics)}, True, metrics)


def _default_criteria(metrics: MetricsConfig | None) -> Content:
    return dict(DEFAULTS) if metrics is None else {}


def faults_in(file: Path, content: bytes, metrics: MetricsConfig | None = None) -> tuple[Fault, ...]:
    """Return the errors and warnings that a run would report for this content of the file."""
    config = parse_config(file, content)
    if metrics is not None:
        config = with_metrics(config, metrics, file)
    return (*config.faults, *check_criteria(config))


def faults_of_draft(draft: ConfigDraft, content: Content) -> tuple[Fault, ...]:
    """Return the errors and warnings that a run would report for a draft with this content.

    Raises:
        EditError: as in `bytes_of`.
    """
    return faults_in(draft.file, draft.bytes_of(content), draft.metrics)


def new_faults(draft: ConfigDraft, content: Content) -> tuple[Fault, ...]:
    """Return the errors that would stop a run with this content, and that the file does not have.

    Raises:
        EditError: as in `bytes_of`.
    """
    known = {(fault.json_path, fault.message) for fault in faults_in(draft.file, draft.before or b"{}", draft.metrics)}
    return tuple(
        fault
        for fault in faults_of_draft(draft, content)
        if fault.severity == "error" and (fault.json_path, fault.message) not in known
    )


def edit_of(draft: ConfigDraft, content: Content) -> tuple[str, bytes]:
    """Return the label of the edit to `content`, and the file's new bytes.

    Raises:
        ConfigRejectedError: the new content has an error that stops a run, and the old one did not.
        EditError: the file cannot be changed without damage.
    """
    after = draft.bytes_of(content)
    if new := new_faults(draft, content):
        raise ConfigRejectedError(new)
    return f"criteria: {few(changed_names(draft.content, content)) or 'written'}", after


def _text(content: bytes) -> str:
    try:
        return content.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditError(f"the file is not UTF-8 ({error.reason})") from None

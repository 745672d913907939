"""Paths of the project, here and on another machine."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from workbench.agents.channel import Frame

_LISTS = ("files", "folders")
_TEXTS = {
    **dict.fromkeys(("Failed", "TurnFailed", "import_failed"), "error"),
    **dict.fromkeys(("Printed", "printed"), "text"),
    "Stopped": "where",
    "Ended": "warnings",
}
"""Message → what in it is text for the user, rather than data of the conversation."""


@dataclass(frozen=True)
class Paths:
    """The project's root on this machine (`local`) and on another one (`remote`), both absolute."""

    local: Path
    remote: PurePosixPath

    def to_remote(self, path: str) -> str | None:
        """Return the other machine's path of a file or folder, or None if it is not in the project."""
        return _moved(path, str(self.local), str(self.remote))

    def to_local(self, path: str) -> str | None:
        """Return this machine's path of a file or folder of the other one, or None if it is not in the project."""
        return _moved(path, str(self.remote), str(self.local))

    def value(self, text: str) -> str:
        """Return the value of an environment variable with the project's paths in it as the other machine has them."""
        if not text.startswith("/") and ":/" not in text:
            return text
        return os.pathsep.join(self.to_remote(entry) or entry for entry in text.split(os.pathsep))

    def localized(self, frame: Frame) -> Frame:
        """Return a message of the other machine with our paths in its lists and in texts for the user.

        Files outside the project are left out of lists.
        """
        changed: dict[str, Any] = {name: self._local_list(frame[name]) for name in _LISTS if name in frame}
        kind = frame.get("event") or frame.get("op")
        text = _TEXTS.get(kind) if isinstance(kind, str) else None
        if text is not None and text in frame:
            changed[text] = self._told_here(frame[text])
        if kind == "Spans" and isinstance(frame.get("spans"), str):
            changed["spans"] = _told_in_json(frame["spans"], str(self.remote), str(self.local))
        return {**frame, **changed} if changed else frame

    def _told_here(self, told: Any) -> Any:
        """Return a text, or all texts in a list or object, with the project's folder as it is here."""
        if isinstance(told, str):
            return _told(told, str(self.remote), str(self.local))
        if isinstance(told, list):
            return [self._told_here(one) for one in told]
        return {key: self._told_here(one) for key, one in told.items()} if isinstance(told, dict) else told

    def _local_list(self, names: Any) -> list[str]:
        if not isinstance(names, list):
            return []
        found = (self.to_local(name) for name in names if isinstance(name, str))
        return [name for name in found if name is not None]


def _moved(path: str, old: str, new: str) -> str | None:
    # Names with `..` could leave the folder.
    if path == old:
        return new
    inside = path.startswith(old.rstrip("/") + "/")
    rest = path[len(old.rstrip("/")) + 1 :]
    return f"{new.rstrip('/')}/{rest}" if inside and ".." not in rest.split("/") else None


def _told(text: str, old: str, new: str) -> str:
    """Return a text with another name of a folder."""
    return re.sub(re.escape(old) + r"(?![\w.-])", lambda _: new, text) if old in text else text


def _told_in_json(text: str, old: str, new: str) -> str:
    """Return JSON text with another name of a folder in its strings."""
    return _told(text, *(json.dumps(name)[1:-1] for name in (old, new)))


_MACHINES_OWN = frozenset(
    {
        *("_", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "HOME", "HOSTNAME", "LOGNAME", "LS_COLORS", "MAIL", "OLDPWD"),
        *("PATH", "PWD", "SHELL", "SHLVL", "TEMP", "TERM", "TERM_PROGRAM", "TMP", "TMPDIR", "TMUX", "TMUX_PANE"),
        *("USER", "WINDOWID", "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "VIRTUAL_ENV"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONEXECUTABLE", "PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONSTARTUP"),
    }
)
_MACHINES_OWN_BEGIN = ("XDG_", "SSH_", "LD_", "DYLD_", "LC_", "AGENT_WORKBENCH_STARTED_BY")


def carried_environment(values: Mapping[str, str], paths: Paths) -> dict[str, str]:
    """Return the variables of an agent that go with it to another machine.

    Variables that describe a machine or a login are that machine's own, such as PATH and HOME. Paths in the project are
    those of the other machine.
    """
    return {
        name: paths.value(value)
        for name, value in values.items()
        if name not in _MACHINES_OWN and not name.startswith(_MACHINES_OWN_BEGIN)
    }

"""The use of recordings by the next runs: what is answered from them, and what happens at a call that they lack."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from workbench.store.execution import Execution

Mode: TypeAlias = Literal["", "tools", "all", "thaw"]
"""What is answered from recordings. "": nothing; `thaw`: nothing, but live answers are compared with them."""
_MODES: tuple[Mode, ...] = ("", "tools", "all", "thaw")
_WORDS = {"": "off", "tools": "tools", "all": "tools and models", "thaw": "thaw"}
_SHORT = {"tools": "tools", "all": "all", "thaw": "thaw"}
_HELP = {
    "": "agents call their tools and models",
    "tools": "tools are answered from the recordings",
    "all": "tools and models are answered from the recordings",
    "thaw": "runs live, and shows how the answers drifted from the recordings",
}


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """The options of the next runs. `mode` None means that of the project, which is `project`."""

    mode: Mode | None = None
    live_on_miss: bool = False
    project: Mode = ""

    @property
    def effective(self) -> Mode:
        """The mode of the next run."""
        return self.project if self.mode is None else self.mode

    @property
    def next_mode(self) -> Mode:
        """The mode after the current one."""
        return _MODES[(_MODES.index(self.effective) + 1) % len(_MODES)]

    @property
    def label(self) -> str:
        """The mode in words: `tools (pyproject.toml)`."""
        return _WORDS[self.effective] + (" (pyproject.toml)" if self.mode is None and self.project else "")

    @property
    def help(self) -> str:
        """One sentence about the mode, without a full stop."""
        return _HELP[self.effective]

    @property
    def on_miss_words(self) -> str:
        """The rule for calls without a recording, or "" if nothing is replayed."""
        if self.effective not in ("tools", "all"):
            return ""
        return "call live" if self.live_on_miss else "error"

    @property
    def for_bar(self) -> tuple[str, str]:
        """The option that is on, in full and in short, or two ""."""
        if not self.effective:
            return "", ""
        sign = _SHORT[self.effective]
        words = sign if sign == "thaw" else f"frozen {sign}"
        live = self.live_on_miss and self.effective != "thaw"
        return f"{words}{', live on a miss' if live else ''}", f"{words}{'+live' if live else ''}"

    @property
    def for_chat(self) -> str:
        """A notice for a user who talks to an agent although runs are frozen, else ""."""
        if self.effective not in ("tools", "all"):
            return ""
        where = " (pyproject.toml)" if self.mode is None else ""
        return f"live: this conversation really calls {_WORDS[self.effective]}, only runs are frozen{where}"

    def run_options(self) -> dict[str, Any]:
        """Return the fields of `RunOptions`."""
        if self.mode is None:
            return {"on_miss": "live"} if self.live_on_miss else {}
        if self.mode == "thaw":
            return {"frozen": "", "thaw": True}
        return {"frozen": self.mode, "on_miss": "live" if self.live_on_miss else "error"}


def lacks_recording(record: Execution | None) -> bool:
    """Return whether a case ended because its recording lacks a call, or cannot be used."""
    error = record.error if record is not None else None
    return error is not None and error.kind in ("frozen_miss", "frozen_file")

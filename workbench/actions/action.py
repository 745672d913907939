"""What an action of the screen is, where its keys work, and the groups of the help."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Where: TypeAlias = Literal[
    "main",
    "editor",
    "conflict",
    "chat",
    "review",
    "criteria",
    "accept",
    "history",
    "stored",
    "compare",
    "triage",
]


@dataclass(frozen=True, slots=True)
class Action:
    """`id` names it in the keymap of the user's settings; `label` is for footer and palette (two or three words),
    `help` is one sentence. `footer` > 0 puts it into the footer, small numbers first. No keys: palette only. `by` names
    the controller of the main screen whose method does it; elsewhere a screen's method `action_<method>` does."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: str
    footer: int = 0
    by: str = ""
    call: str = ""
    """The method and its arguments, as `move('down')`. By default the method is `id`, without arguments."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "call", self.call or self.id)

    @property
    def where(self) -> Where:
        """The place whose keys these are."""
        return _PLACES.get(self.group, "main")

    @property
    def method(self) -> str:
        """The name of the method that does it."""
        return self.call.partition("(")[0]


MOVE, PANES, MARK, RUN, FIND, COPY, GENERAL = "Move", "Panes", "Mark", "Run", "Find", "Copy", "General"
EDIT = "Edit"
EDITOR = "In the editor"
CHAT = "In a conversation, outside the message"
REVIEW = "Before a conversation is kept"
CONFLICT = "Where somebody else changed the file"
ACCEPT = "Where what the agent did is accepted"
CRITERIA = "In the editor of criteria"
TRIAGE = "Where a verdict is triaged"
HISTORY = "In the history"
STORED = "In a run of the history"
COMPARE = "Where two runs are compared"
_PLACES: Mapping[str, Where] = {
    EDITOR: "editor",
    CHAT: "chat",
    REVIEW: "review",
    CONFLICT: "conflict",
    ACCEPT: "accept",
    CRITERIA: "criteria",
    TRIAGE: "triage",
    HISTORY: "history",
    STORED: "stored",
    COMPARE: "compare",
}
"""Groups of the help whose keys work outside of the main screen."""
DIGITS = tuple("123456789")

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
    """`does` is the call behind it: `controller.method('argument')` on the main screen; on another one, `method` for
    its `action_<method>`. `keys_typed` are separated by spaces; without any it is in the palette only. `label` is for
    footer and palette (two or three words), `help` is one sentence. `footer` > 0 puts it into the footer, small numbers
    first. `id` names it in the keymap of the user's settings; by default it is the name of the method."""

    does: str
    keys_typed: str
    label: str
    help: str
    group: str
    footer: int = 0
    id: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id or self.method)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys before the user's settings."""
        return tuple(self.keys_typed.split())

    @property
    def by(self) -> str:
        """The name of the controller, "" outside of the main screen."""
        return self.does.partition("(")[0].rpartition(".")[0]

    @property
    def call(self) -> str:
        """The method with its arguments."""
        return self.does.removeprefix(f"{self.by}.")

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

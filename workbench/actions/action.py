"""An action of the screen, the places where keys work, and the groups of the help."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from workbench.fast_dataclass import dataclass

Where: TypeAlias = Literal[
    "main",
    "empty",
    "editor",
    "conflict",
    "chat",
    "capture",
    "review",
    "criteria",
    "accept",
    "freeze",
    "history",
    "stored",
    "compare",
    "triage",
    "table",
    "fork",
    "forked",
    "try_faults",
    "faults",
]


@dataclass(frozen=True, slots=True)
class Action:
    """An action with its keys and texts.

    Attributes:
        does: The call that it makes. On the main screen: `controller.method('argument')`. On other screens: `method`,
            which calls `action_<method>`.
        keys_typed: Its keys, separated by spaces. If empty, the action is only in the palette.
        label: Two or three words for the footer and the palette.
        help: One sentence.
        group: Its group in the help, which also says where the keys work.
        footer: Its place in the footer of a dialog or another screen, smallest first; 0 keeps it out. On the main
            screen, `places.py` decides.
        id: Its name in the keymap of the user's settings. Default: the name of the method.
        also: Further words that find it in the palette and in the help.
    """

    does: str
    keys_typed: str
    label: str
    help: str
    group: str
    footer: int = 0
    id: str = ""
    also: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id or self.method)

    @property
    def keys(self) -> tuple[str, ...]:
        """Default keys, before the user's settings."""
        return tuple(self.keys_typed.split())

    @property
    def by_digit(self) -> bool:
        """Whether its keys are digits. The method gets the one that was pressed."""
        return len(self.keys) > 1 and set(self.keys) <= set(DIGITS)

    @property
    def by(self) -> str:
        """Name of the controller, or "" outside of the main screen."""
        return self.does.partition("(")[0].rpartition(".")[0]

    @property
    def call(self) -> str:
        """Method with its arguments."""
        return self.does.removeprefix(f"{self.by}.")

    @property
    def where(self) -> Where:
        """Screen or dialog where the keys work."""
        return _PLACES.get(self.group, "main")

    @property
    def leads_on(self) -> bool:
        """Whether it leads to all other actions, so that the footer always shows it."""
        return self.method in ("palette", "keys")

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.call.partition("(")[0]


MOVE, PANES, MARK, RUN, FIND, COPY, GENERAL = "Move", "Panes", "Mark", "Run", "Find", "Copy", "General"
EDIT = "Edit"
EMPTY = "In a folder without agents"
EDITOR = "In the editor"
CHAT = "In a conversation, outside the message field"
CAPTURE = "Reviewing a conversation before it becomes a case"
REVIEW = "Reviewing failures one by one"
CONFLICT = "Resolving a conflict with the file on disk"
ACCEPT = "Accepting actual as expected"
FREEZE = "Before freezing"
CRITERIA = "In the criteria editor"
TRIAGE = "In the triage dialog"
HISTORY = "In the history"
STORED = "In a stored run"
COMPARE = "Comparing two runs"
TABLE = "In the table"
FORK = "Choosing what a fork changes"
FORKED = "Looking at the tries of a fork"
TRY_FAULTS = "Before faults in tools are tried"
FAULTS = "In the table of tool faults"
_PLACES: Mapping[str, Where] = {
    EMPTY: "empty",
    EDITOR: "editor",
    CHAT: "chat",
    CAPTURE: "capture",
    REVIEW: "review",
    CONFLICT: "conflict",
    ACCEPT: "accept",
    FREEZE: "freeze",
    CRITERIA: "criteria",
    TRIAGE: "triage",
    HISTORY: "history",
    STORED: "stored",
    COMPARE: "compare",
    TABLE: "table",
    FORK: "fork",
    FORKED: "forked",
    TRY_FAULTS: "try_faults",
    FAULTS: "faults",
}
"""Groups of the help whose keys work outside of the main screen, with their place."""
DIGITS = tuple("1234567890")
"""The digits that choose a pane, in the order of the panes."""

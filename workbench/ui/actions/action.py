"""The type of an action, and the names of keys, places and groups."""

import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

_RENAMED = {
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "low_line": "underscore",
    "plus_sign": "plus",
    "reverse_solidus": "backslash",
    "solidus": "slash",
}
_SHOWN = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→"}


def key_name(key: str) -> str:
    """Return Textual's name of a key: `question_mark` for `?`. Letters, digits and names stay the same."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace(" ", "_").replace("-", "_")
    return _RENAMED.get(name, name)


_SIGNS = {key_name(sign): sign for sign in string.punctuation}


def digits_label(keys: Sequence[str]) -> str:
    """Return the text for a range of digit keys: `1 … 9`, `0 … 9`."""
    return f"{min(keys)} … {max(keys)}"


def key_label(key: str) -> str:
    """Return the text for a key: `?` for `question_mark`, `esc` for `escape`."""
    return _SHOWN.get(key, _SIGNS.get(key, key))


Where: TypeAlias = Literal[
    "main",
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
    "variants",
]


@dataclass(frozen=True, slots=True)
class Action:
    """An action with its keys and texts.

    Attributes:
        does: The call: `controller.method('argument')`. Without a controller, `method('argument')` calls
            `action_method` of the screen.
        keys_typed: Its default keys, separated by spaces. Without keys, the action is only in the palette.
        label: Two or three words for the footer and the palette.
        help: One sentence.
        group: Its group in the help.
        id: Its name in the user's settings. The default is the name of the method.
    """

    does: str
    keys_typed: str
    label: str
    help: str
    group: str
    id: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id or self.method)

    @property
    def keys(self) -> tuple[str, ...]:
        """Default keys, before the user's settings."""
        return tuple(self.keys_typed.split())

    @property
    def by_digit(self) -> bool:
        """Whether it has several keys, all of them digits. The pressed digit is then the argument of the method."""
        return len(self.keys) > 1 and set(self.keys) <= set(DIGITS)

    @property
    def by(self) -> str:
        """Name of the controller, or "" if the method belongs to the screen."""
        return self.does.partition("(")[0].rpartition(".")[0]

    @property
    def call(self) -> str:
        """The call without the controller's name: the method with its arguments."""
        return self.does.removeprefix(f"{self.by}.")

    @property
    def leads_on(self) -> bool:
        """Whether it is the palette or the help. Footers show these last."""
        return self.method in ("palette", "keys")

    @property
    def also(self) -> str:
        """Further search words for the palette and the help."""
        return _SYNONYMS.get(self.id, "")

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.call.partition("(")[0]


MOVE, PANES, MARK, RUN, FIND, COPY, GENERAL = "Move", "Panes", "Mark", "Run", "Find", "Copy", "General"
EDIT = "Edit"
ELSEWHERE = "On other screens"
VERDICTS = "In the review and the triage dialog"
DIGITS = tuple("1234567890")
"""The digit keys in the order of the keyboard."""
_SYNONYMS: Mapping[str, str] = {
    "pane": "why scores judge votes claims log repeats",
    "run": "start execute evaluate eval",
    "repeat": "flaky unstable sure",
    "machines": "dask workers cluster",
    "options": "model settings threshold concurrency",
    "freeze": "offline replay mock recording",
    "try_faults": "inject robust",
    "try_head": "variants compare git revision better",
    "try_variants": "experiment model prompt better help significance",
    "cancel": "stop kill abort",
    "filter": "search flaky stale cause",
    "flaky_cases": "unstable sometimes",
    "review": "why reason triage",
    "history": "old past",
    "compare": "yesterday changed why prompt model commit regression difference",
    "table": "cost tokens prices money slow matrix",
    "found": "lint errors warnings",
    "agreement": "trust human",
    "edit_outside": "vim code prompt instruction",
    "fork": "prompt instruction model what if",
    "criteria": "metrics thresholds judge model rubrics",
    "accept": "update golden approve",
    "triage": "why note label flaky",
    "copy_id": "clipboard",
    "copy_command": "cli terminal ci",
    "theme": "colours colors dark light",
    "quit": "exit leave",
}
"""Further search words of actions, by ID."""

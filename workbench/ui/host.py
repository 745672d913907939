"""What the main screen needs of the app around it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """`preview_theme(name)` shows a theme for the moment (None: the one that holds), `keep_theme` uses it from now on;
    `look_again` takes in what the files of themes and keys say now; `copy` sends text to the terminal's clipboard.
    `key_faults` are complaints about the user's keymap."""

    theme_names: Sequence[str]
    preview_theme: Callable[[str | None], None]
    keep_theme: Callable[[str], None]
    copy: Callable[[str], None]
    look_again: Callable[[], None]
    key_faults: Sequence[str] = ()

"""Functions of the app that the main screen needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Host:
    """Functions of the app.

    `preview_theme(name)` shows a theme temporarily. None returns to the chosen theme. `keep_theme`
    also saves the choice. `reload_settings` reads the files of themes and keys again. `copy` sends
    text to the terminal's clipboard. `key_faults` are problems in the user's keymap. `open_next` says
    which folder to open after the program's end. `suspend` returns to the shell until `fg`.
    """

    theme_names: Sequence[str]
    preview_theme: Callable[[str | None], None]
    keep_theme: Callable[[str], None]
    copy: Callable[[str], None]
    reload_settings: Callable[[], None]
    key_faults: Sequence[str] = ()
    open_next: Callable[[Path], None] = lambda path: None
    suspend: Callable[[], None] = lambda: None

"""Functions of the app that screens use: themes, copying, screenshots and suspending."""

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from workbench.files.file_access import size_words
from workbench.results.cells import cell_len

LIMIT = 74_000
"""Maximum size of copied text in bytes. Some terminals cut or drop sequences over 100,000 characters."""
_FONTS = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)
_FAMILY = re.compile(r"font-family:\s*Fira Code,\s*monospace")
_OWN = "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TEXT = re.compile(
    r'<text ([^>]*?)x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>((?:&#160;)*)(.*?)(?:&#160;)*</text>'
)
_BLANK = "&#160;"
_CELL = 12.2
"""Width of a cell in Textual's SVG."""


class NoEditorError(Exception):
    """The user's editor could not be started, or failed. The message says why."""


@dataclass(frozen=True, slots=True)
class Host:
    """Functions of the app.

    `preview_theme(name)` shows a theme temporarily, and `preview_theme(None)` the chosen one. `keep_theme` shows a
    theme and saves the choice. `reload_settings` reads `setting_files` again, which are the settings and theme files.
    `copy` sends text to the terminal's clipboard. `key_faults` returns problems in the user's keymap. `suspend` returns
    to the shell until `fg`.
    """

    theme_names: Sequence[str]
    preview_theme: Callable[[str | None], None]
    keep_theme: Callable[[str], None]
    copy: Callable[[str], None]
    reload_settings: Callable[[], None]
    key_faults: Callable[[], Sequence[str]] = tuple
    suspend: Callable[[], None] = lambda: None
    setting_files: Callable[[], Sequence[Path]] = tuple


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of copying: a message for the user, and the file if the text was written to one, else None."""

    message: str
    file: Path | None = None


def copy(what: str, text: str, send: Callable[[str], None]) -> Copied:
    """Send raw text to the terminal's clipboard (OSC 52), or write it to a file if it is too large.

    `what` is a name for the text. Some terminals ignore the request without an answer, so the message is not "copied".
    If the file cannot be written, the message says why.
    """
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= LIMIT:
        send(data.decode())
        return Copied(f"{what}: sent to the terminal's clipboard ({size_words(len(data))})")
    large = f"{what}: too large for the clipboard ({size_words(len(data))})"
    try:
        handle, name = tempfile.mkstemp(prefix="agent-workbench-", suffix=".txt")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except OSError as error:
        return Copied(f"{large}, and no file could be written: {error.strerror}")
    return Copied(f"{large}; saved as {name}", Path(name))


def picture(svg: str) -> bytes:
    """Return Textual's SVG as UTF-8, without external resources and superfluous blanks."""
    svg = _COMMENT.sub("", _FONTS.sub("", svg))
    svg = _TEXT.sub(_without_margins, _FAMILY.sub(_OWN, svg))
    svg = "\n".join(line.rstrip() for line in svg.splitlines() if line.strip())
    return (svg + "\n").encode("utf-8", "replace")


def _without_margins(text: re.Match[str]) -> str:
    """Return an SVG text without the blanks at both ends, which some programs draw with another width."""
    before, x, y, after, left, words = text.groups()
    if not words:
        return ""
    # Textual's length counts characters, but East Asian ones are two cells wide.
    place, size = float(x) + left.count(_BLANK) * _CELL, cell_len(unescape(words)) * _CELL
    return f'<text {before}x="{place:.6g}" y="{y}" textLength="{size:.6g}"{after}>{words}</text>'


def screenshot_name(folder: Path) -> str:
    """Return a file name for a screenshot in the folder. It is unused unless 999 screenshots exist."""
    names = ["agent-workbench.svg", *(f"agent-workbench-{number}.svg" for number in range(2, 1000))]
    return next((name for name in names if not (folder / name).exists()), names[0])

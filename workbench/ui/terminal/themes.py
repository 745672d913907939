"""The program's and the user's themes, which are TOML files. A theme is named after its file.

dark = true       # default
ansi = false      # true: only the terminal's sixteen colours (ansi_red …) are used
[colors]          # primary is needed; secondary accent foreground background surface panel boost success warning error
[statuses]        # passed failed error not-evaluated flaky running queued muted: $status-…
[differences]     # same differs missing extra moved, differs-background …: $diff-…
[variables]       # any other variable of the stylesheet

For terminals that lack colours or the program's signs, drawn lines are also filtered.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.filter import LineFilter
from textual.theme import Theme

from workbench.files.file_access import read_regular_text
from workbench.files.folders import shipped
from workbench.files.settings import LARGEST_SETTINGS
from workbench.text.ascii_signs import in_cells
from workbench.text.safe_text import one_line
from workbench.ui.terminal.terminal import Display

DEFAULT = "night"
_COLORS = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
    "success",
    "warning",
    "error",
)
_PREFIXES = {"statuses": "status-", "differences": "diff-", "variables": ""}
_KNOWN = {"dark", "ansi", "colors", *_PREFIXES}
_NO_COLOR_VALUES = ("-text-style", "link-style", "-style-hover")


class ThemeError(ValueError):
    """A missing or invalid theme. The message is one sentence of safe text."""


def read_theme(file: Path) -> Theme:
    """Read the theme in `file`.

    Raises:
        ThemeError: The file cannot be read, or is not a valid theme.
    """
    try:
        return _theme(file.stem, tomllib.loads(read_regular_text(file, LARGEST_SETTINGS)))
    except (OSError, ValueError, RecursionError, TypeError, AttributeError) as error:
        raise ThemeError(one_line(f"theme {file}: {error}")) from error


class Themes:
    """The themes of the program and of further folders. If two have the same name, the later folder wins."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._folders = (shipped("themes"), *folders)
        self.find()

    def find(self) -> None:
        """Find the theme files, for the first time or again, without reading them."""
        self.files = {file.stem: file for folder in self._folders for file in sorted(folder.glob("*.toml"))}

    @property
    def names(self) -> list[str]:
        """The names of all themes, sorted."""
        return sorted(self.files)

    def read(self, name: str) -> Theme:
        """Read the theme with this name.

        Raises:
            ThemeError: There is no such theme, or its file is invalid.
        """
        if name not in self.files:
            raise ThemeError(one_line(f"{name} is not a theme; known themes: {', '.join(self.names)}"))
        return read_theme(self.files[name])


def variable_defaults(theme: Theme) -> dict[str, str]:
    """Return the defaults of the stylesheet variables for a theme, derived from its colours."""
    colors = {name: getattr(theme, name) or theme.primary for name in _COLORS}
    muted = "ansi_default"
    if not theme.ansi:
        foreground = Color.parse(theme.foreground or ("#e0e0e0" if theme.dark else "#202020"))
        background = Color.parse(theme.background or ("#121212" if theme.dark else "#efefef"))
        muted = foreground.blend(background, 0.4).hex
    return {
        "status-passed": colors["success"],
        "status-failed": colors["error"],
        "status-error": colors["accent"],
        "status-not-evaluated": colors["warning"],
        "status-flaky": colors["warning"],
        "status-running": colors["primary"],
        "status-queued": muted,
        "status-informational": muted,
        "status-not-applicable": muted,
        "status-not-run": muted,
        "status-muted": theme.variables.get("status-muted", muted),
        "diff-same": muted,
        "diff-differs": colors["warning"],
        "diff-missing": colors["secondary"],
        "diff-extra": colors["warning"],
        "diff-moved": colors["accent"],
        "diff-differs-background": "transparent",
        "diff-missing-background": "transparent",
        "diff-extra-background": "transparent",
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "label": muted,
        "label-strong": colors["foreground"],
    }


def _theme(name: str, data: Mapping[str, Any]) -> Theme:
    unknown = data.keys() - _KNOWN
    if unknown:
        raise ValueError(f"unknown entry {sorted(unknown)[0]}; known entries: {', '.join(sorted(_KNOWN))}")
    colors = dict(data.get("colors", {}))
    unknown = colors.keys() - set(_COLORS)
    if unknown:
        raise ValueError(f"unknown color {sorted(unknown)[0]}; known colors: {', '.join(_COLORS)}")
    if "primary" not in colors:
        raise ValueError("colors.primary is missing")
    variables = {
        prefix + name: str(value) for table, prefix in _PREFIXES.items() for name, value in data.get(table, {}).items()
    }
    if "status-muted" in variables:
        for quiet in ("informational", "not-applicable", "not-run"):
            variables.setdefault(f"status-{quiet}", variables["status-muted"])
    for variable, value in {**colors, **variables}.items():
        if not variable.endswith(_NO_COLOR_VALUES):
            try:
                Color.parse(value.split(" ")[0])
            except ColorParseError as error:
                raise ValueError(f"{variable}: {value!r} is not a color") from error
    return Theme(
        name=name, dark=bool(data.get("dark", True)), ansi=bool(data.get("ansi", False)), variables=variables, **colors
    )


_FAILING = {1, 13}
"""Colours of failures (red) and errors (bright magenta) in the theme of sixteen colours."""
_QUIET_CURSOR = 8
"""Background of a cursor without the focus in that theme (bright black)."""
_LONGEST_LABEL = 16
_NAMES_FAILURE = re.compile(r"[✗!]|fail|error", re.IGNORECASE)
_BLANKS = re.compile(r"(^ +| +$| {2,})")
"""Blanks outside of labels."""


def filters_for(display: Display) -> list[LineFilter]:
    """Return the line filters that this terminal needs."""
    filters: list[LineFilter] = []
    if display.colors == "none":
        filters.append(WithoutColors())
    if not display.signs:
        filters.append(InAscii(foreign=not display.foreign))
    return filters


class WithoutColors(LineFilter):
    """A filter that replaces the colours of the theme `terminal` by attributes.

    The cursor and labels of failures are reversed. Longer texts about failures are bold. For other statuses, signs and
    words are enough.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without colours."""
        found = []
        for text, style, control in segments:
            for part in _BLANKS.split(text) if style and _fails(style) else (text,):
                if part or not text:
                    is_label = cell_len(part) <= _LONGEST_LABEL and _NAMES_FAILURE.search(part) is not None
                    found.append(Segment(part, style and _without_colors(style, is_label), control))
        return found


class InAscii(LineFilter):
    """A filter that spells the program's signs in ASCII. With `foreign`, other non-ASCII characters become `?`."""

    def __init__(self, *, foreign: bool) -> None:
        super().__init__()
        self._spelled: Callable[[str], str] = lru_cache(maxsize=4096)(lambda text: in_cells(text, foreign=foreign))

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments in ASCII."""
        return [
            segment if segment.text.isascii() else Segment(self._spelled(segment.text), segment.style, segment.control)
            for segment in segments
        ]


def _fails(style: Style) -> bool:
    return style.color is not None and style.color.number in _FAILING


@lru_cache(maxsize=2048)
def _without_colors(style: Style, is_label: bool) -> Style:
    behind = style.bgcolor.number if style.bgcolor else None
    fails, is_pointed = _fails(style), behind not in (None, _QUIET_CURSOR)
    return Style(
        bold=bool(style.bold) or fails,
        dim=style.dim,
        italic=style.italic,
        underline=bool(style.underline) or behind == _QUIET_CURSOR or (fails and is_pointed),
        strike=style.strike,
        # A cell that is reversed in the row of the cursor stands out by its usual look.
        reverse=bool(style.reverse) is not (is_pointed or (fails and is_label)),
        link=style.link,
        meta=style.meta or None,
    )

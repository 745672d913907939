"""The colours and characters that the terminal can show. Imports no Textual, which reads them when it is loaded."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.text.ascii_signs import shows_unicode

Colors: TypeAlias = Literal["truecolor", "256", "standard", "none"]
"""Rich's names of colour systems. `standard` has sixteen colours. `none`: the user wants no colours."""
SIXTEEN_COLORS = "terminal"
"""The theme for terminals with sixteen colours, and for none: it uses no others."""
_TRUECOLOR = ("-direct", "-kitty", "-ghostty", "alacritty", "foot", "wezterm", "contour")
"""Terminals that may be used over SSH, which does not pass on COLORTERM."""
_LINUX_CONSOLE = "linux"
"""Its font has no more than 512 characters, without most of our signs."""


@dataclass(frozen=True, slots=True)
class Display:
    """Abilities of the terminal. `signs`: ours, if they are not ASCII. `foreign`: characters of any other text."""

    colors: Colors = "truecolor"
    signs: bool = True
    foreign: bool = True

    @property
    def needs_plain_theme(self) -> bool:
        """Whether only the theme `SIXTEEN_COLORS` keeps statuses apart."""
        return self.colors in ("standard", "none")


def find_display(environment: Mapping[str, str], encoding: str | None) -> Display:
    """Return what the terminal of this environment can show. `encoding` is that of standard output."""
    unicode = shows_unicode(environment, encoding)
    return Display(_colors(environment), unicode and environment.get("TERM") != _LINUX_CONSOLE, unicode)


def tell_textual(display: Display) -> None:
    """Make Textual use the colours that were found. Call it before Textual is imported.

    Textual would replace colours by shades of grey for NO_COLOR, in which a failure looks like any other text.
    """
    os.environ.pop("NO_COLOR", None)
    if display.colors != "none":
        os.environ["TEXTUAL_COLOR_SYSTEM"] = display.colors


def _colors(environment: Mapping[str, str]) -> Colors:
    if environment.get("NO_COLOR"):
        return "none"
    match environment.get("TEXTUAL_COLOR_SYSTEM"):
        case "truecolor" | "256" | "standard" as wanted:
            return wanted
    terminal = environment.get("TERM", "").lower()
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit") or terminal.endswith(_TRUECOLOR):
        return "truecolor"
    return "256" if terminal.endswith(("-256color", "-256")) else "standard"

"""Our signs in ASCII, for terminals that cannot show Unicode, and detection of such terminals.

On the screen, every sign becomes one ASCII character, because a row must keep its width. In lines of the command line,
some signs have a longer spelling.
"""

import codecs
import re
import unicodedata
from collections.abc import Mapping

_PYTHONS_LOCALES = {"C.UTF-8", "C.utf8", "UTF-8"}
"""Values to which Python sets LC_CTYPE at its start if the locale is C."""


def shows_unicode(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Return whether a terminal of this locale shows more than ASCII.

    `encoding` is the encoding of Python's output stream. Python uses UTF-8 in the locale C, too, so C is recognised by
    its name. If no locale is set, only the encoding counts.
    """
    named = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if not environment.get("LC_ALL") and environment.get("LC_CTYPE") in _PYTHONS_LOCALES:
        named = environment.get("LANG") or named
    try:
        return named not in ("C", "POSIX") and codecs.lookup(encoding or "ascii").name == "utf-8"
    except LookupError:
        return False


_SIGNS = (
    # statuses and labels (`workbench/results/faces.py`)
    "✓+ ✗x ⊘/ ▶> ·. –- ○o ▲E △W ±% ◐@ ⚑P ⚐p ∿& ≠# ƒf ❅* "
    # rows, folds and cuts
    "▌> ▐# ▏| ▸> ▴^ ▾v ◂< …~ ⋯~ ▷> ◀< ◆* ◇o ▪. ✂% •* ●* ■# ⟨< ⟩> ‹< ›> «< »> "
    # arrows and signs in texts
    '→> ←< ↑^ ↓v ↕| ⇄% −- —- ×x ≥> ≤< “" ”" „" ‘\' ’\' €E ⁿn ⁻- '
    # bars and charts, from low to high
    "▁_ ▂. ▃- ▄= ▅+ ▆* ▇% █# ━= ╸= ╴- ┊: "
)
CELLS = {pair[0]: pair[1] for pair in _SIGNS.split()}
"""Sign → its ASCII character. `_of_its_kind` also knows the other box-drawing and block characters."""
_PAIRS = {"≥ ": ">=", "≤ ": "<=", "→ ": "->", "← ": "<-", " ≥": ">=", " ≤": "<="}
"""Sign beside a space → two ASCII characters."""
_SORTED = re.compile(r"(?<=\w)[▴▾]")
"""The sign for the sort order after a column's title, where `v` would look like a letter of the title."""
_ARROW_KEY = re.compile(r"([↑↓]) {3}(?= )")
"""An arrow key in a list of keys, where `v` would look like another key."""
_KEY_NAMES = {"↑": "up  ", "↓": "down"}
_REST = re.compile(r"^… | …$")
"""The sign for "more" at an end of a text, with a space beside it. The sign of a cut word has none."""
_IN_LINES = {"≥": ">=", "≤": "<=", "→": "->", "←": "<-", "…": "...", "≠": "!=", "×": "x"}


def in_cells(text: str, *, foreign: bool) -> str:
    """Return `text` in the same width with our signs in ASCII. With `foreign`, cells of other characters become `?`."""
    if text.isascii():
        return text
    text = _ARROW_KEY.sub(lambda key: _KEY_NAMES[key[1]], _REST.sub("..", _with_pairs(text)))
    text = _SORTED.sub(lambda sign: "/" if sign[0] == "▴" else "\\", text)
    from rich.cells import cell_len  # The command line needs no rich.

    return "".join(
        char if char.isascii() else _of_its_kind(char) or ("?" * cell_len(char) if foreign else char) for char in text
    )


def in_lines(text: str) -> str:
    """Return `text` with our signs in ASCII. Its width may change."""
    if text.isascii():
        return text
    return "".join(_IN_LINES.get(char) or _of_its_kind(char) or char for char in _with_pairs(text))


def _with_pairs(text: str) -> str:
    for pair, spelled in _PAIRS.items():
        text = text.replace(pair, spelled)
    return text


def _of_its_kind(char: str) -> str:
    """Return the ASCII character for one of our signs, or for a box-drawing or block character, else ""."""
    if char in CELLS:
        return CELLS[char]
    if not "\u2500" <= char <= "\u259f":
        return ""
    words = unicodedata.name(char).split()
    if words[:2] != ["BOX", "DRAWINGS"]:
        return "#"
    if "HORIZONTAL" in words and "VERTICAL" not in words:
        return "-"
    return "|" if "VERTICAL" in words and not {"HORIZONTAL", "UP", "DOWN", "LEFT", "RIGHT"} & {*words} else "+"

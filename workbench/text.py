"""The one door for foreign text on its way to a terminal.

Agents, tools, judges and evalsets can hold markup, escape codes, control characters, text-direction overrides and
lone surrogates. Everything that was not written in this repository passes through `plain` (blocks of text) or
`one_line` (labels, cells, log lines) before it is printed or rendered. Neither function understands markup: what
comes out is text for APIs that take text (`rich.text.Text`, `textual.content.Content`, `print`), never for ones that
parse it.

The model stays byte-faithful; only the copy that is shown changes.
"""

import re

from workbench.counting import counted

# C0 without tab and newline, DEL, C1, the bidi marks, embeddings, overrides and isolates, the invisible line and
# paragraph separators (some terminals break on them), the tag characters, the BOM and lone surrogates.
_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_LINE_BREAKS = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")
_TAB_WIDTH = 4
DEFAULT_LIMIT = 100_000

# What a person cannot see but a comparison can: shown by name where a difference is explained.
_INVISIBLE = {
    " ": "␠",
    "\t": "␉",
    "\n": "␊",
    "\r": "␍",
    "\u00a0": "⟨NBSP⟩",
    "\u00ad": "⟨SHY⟩",
    "\u200b": "⟨ZWSP⟩",
    "\u200c": "⟨ZWNJ⟩",
    "\u200d": "⟨ZWJ⟩",
    "\u2060": "⟨WJ⟩",
    "\u202f": "⟨NNBSP⟩",
    "\u3000": "⟨IDSP⟩",
    "\ufeff": "⟨BOM⟩",
}


def _picture(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"⟨U+{code:04X}⟩"


def plain(text: str, *, limit: int = DEFAULT_LIMIT) -> str:
    """`text` made safe to send to a terminal: newlines stay, tabs become spaces, everything that could steer the
    terminal or reorder the line becomes a visible picture (ESC → ␛), and more than `limit` characters are cut with a
    note of how many are missing."""
    dropped = len(text) - limit
    if dropped > 0:
        text = text[:limit]
    safe = _HOSTILE.sub(_picture, _LINE_BREAKS.sub("\n", text)).expandtabs(_TAB_WIDTH)
    return f"{safe}… [{counted(dropped, 'more character')}]" if dropped > 0 else safe


def one_line(text: str, *, limit: int = 400) -> str:
    """`plain` on a single line: each run of white space becomes one blank; cut at `limit` characters with an
    ellipsis. For labels, table cells and log lines."""
    # Cutting first keeps a 50 MB label cheap; four times leaves room for white space that collapses.
    head = text[: limit * 4]
    safe = " ".join(plain(head, limit=limit * 4).split())
    return safe if len(safe) <= limit and len(head) == len(text) else safe[: limit - 1] + "…"


def visible(text: str) -> str:
    """`text` with leading, trailing and repeated blanks and all invisible characters shown by name, for explaining
    why two values that look equal are not."""

    def name(match: re.Match[str]) -> str:
        return "".join(_INVISIBLE.get(character, character) for character in match.group())

    odd = "\t\n\r\u00a0\u00ad\u200b-\u200d\u2060\u202f\u3000\ufeff"
    return plain(re.sub(f"[{odd}]+|^ +| +$| {{2,}}", name, text))

"""Functions that make foreign text safe for a terminal.

Text of agents, tools, judges and evalsets can hold markup, escape codes, control characters, text-direction overrides
and lone surrogates. All text that was not written in this repository passes through `plain` (blocks of text) or
`one_line` (labels, cells, log lines) before it is printed or rendered. Neither function understands markup. Pass the
result only to APIs that take text (`rich.text.Text`, `textual.content.Content`, `print`), never to ones that parse it.

Stored data is never changed, only the copy that is shown.
"""

import re

from workbench.text.counting import counted

# C0 without tab and newline, DEL, C1, the bidi marks, embeddings, overrides and isolates, the invisible line and
# paragraph separators (some terminals break on them), the tag characters, the BOM and lone surrogates.
_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_LINE_BREAKS = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")
DEFAULT_LIMIT = 100_000

# Names of characters that a person cannot see, to explain a difference.
_INVISIBLE = str.maketrans(
    {
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
)


def _picture(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"⟨U+{code:04X}⟩"


def plain(text: str, *, limit: int = DEFAULT_LIMIT) -> str:
    """Return `text` in a form that is safe for a terminal.

    Line breaks become newlines, and tabs become spaces. Characters that could control the terminal or reorder the line
    become visible symbols (ESC → ␛). Text over `limit` characters is cut, followed by the number of missing ones.
    """
    dropped = len(text) - limit
    safe = _HOSTILE.sub(_picture, _LINE_BREAKS.sub("\n", text[:limit])).expandtabs(4)
    return f"{safe}… [{counted(dropped, 'more character')}]" if dropped > 0 else safe


def one_line(text: str, *, limit: int = 400) -> str:
    """Return `text` as `plain` does, but on a single line, for labels, table cells and log lines.

    White space is collapsed to single spaces. Text over `limit` characters is cut with an ellipsis.
    """
    # Cutting first keeps a 50 MB label cheap. Four times the limit leaves room for white space that collapses.
    text = text.lstrip()
    head = text[: limit * 4]
    safe = " ".join(plain(head, limit=limit * 4).split())
    return safe if len(safe) <= limit and len(head) == len(text) else safe[: limit - 1] + "…"


def visible(text: str) -> str:
    """Return `text` as `plain` does, but with visible signs for invisible characters and for extra spaces.

    The result shows why two values that look equal are different.
    """
    odd = "\t\n\r\u00a0\u00ad\u200b-\u200d\u2060\u202f\u3000\ufeff"
    return plain(re.sub(f"[{odd}]+|^ +| +$| {{2,}}", lambda match: match[0].translate(_INVISIBLE), text))

"""Keys with their labels, side by side, as many as fit."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from workbench.results.lines import Line, cut_line, joined


def key_words(key: str, label: str) -> Line:
    """Return `d judge wrong`, with the letter underlined if it is inside the label."""
    place = label.find(key) if len(key) == 1 and key.isalpha() else -1
    if place > 0:
        words: Line = Text.assemble((label[:place], "label"), (key, "underlined"), (label[place + 1 :], "label"))
    else:
        words = Text.styled(label, "label")
    return Text.assemble((key, "hint"), " ", words)


def key_row(parts: Sequence[Line], width: int) -> Line:
    """Return the keys on one line, with as much space between them as fits. The last ones are left out."""
    kept = [part for part in parts if part]
    for gap in (4, 3, 2):
        line = _spaced(kept, gap)
        if line.cell_len <= width:
            return line
    while len(kept) > 1 and _spaced(kept, 2).cell_len > width:
        kept.pop()
    return cut_line(_spaced(kept, 2), width)


def width_of(parts: Sequence[Line]) -> int:
    """Return the cells of a line with these keys, as close together as they may be."""
    return _spaced(filter(None, parts), 2).cell_len


def _spaced(parts: Iterable[Line], gap: int) -> Line:
    return Text.assemble(" ", joined(parts, " " * gap, ""))

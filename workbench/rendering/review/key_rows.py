"""Keys with their labels, side by side, as many as fit."""

from collections.abc import Iterable, Sequence

from workbench.rendering.lines import Line, Segment, cut_line, width_of


def key_words(key: str, label: str) -> Line:
    """Return `d judge wrong`, with the letter underlined if it is inside the label."""
    place = label.find(key) if len(key) == 1 and key.isalpha() else -1
    if place > 0:
        words: Line = (
            Segment(label[:place], "label"),
            Segment(key, "underlined"),
            Segment(label[place + 1 :], "label"),
        )
    else:
        words = (Segment(label, "label"),)
    return (Segment(key, "hint"), Segment(" "), *words)


def key_row(parts: Sequence[Line], width: int) -> Line:
    """Return the keys on one line, with as much space between them as fits. The last ones are left out."""
    kept = [part for part in parts if part]
    for gap in (4, 3, 2):
        line = _spaced(kept, gap)
        if width_of(line) <= width:
            return line
    while len(kept) > 1 and width_of(_spaced(kept, 2)) > width:
        kept.pop()
    return cut_line(_spaced(kept, 2), width)


def _spaced(parts: Iterable[Line], gap: int) -> Line:
    line: list[Segment] = []
    for part in parts:
        line += [Segment(" " * gap if line else " "), *part]
    return tuple(line)

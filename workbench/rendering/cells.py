"""Cutting and padding by terminal cells, so that East Asian text lines up."""

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "cut", "fit", "wrap"]


def cut(text: str, width: int, *, end: str = "…") -> str:
    """`text` (already safe) in at most `width` cells; what is cut away is stood for by `end`."""
    if width <= 0:
        return ""
    if len(text) * 2 <= width or cell_len(text) <= width:
        return text
    room = width - cell_len(end)
    return end[:width] if room <= 0 else set_cell_size(text, room).rstrip(" ") + end


def fit(text: str, width: int) -> str:
    """`text` (already safe) in exactly `width` cells: cut as by `cut`, or padded on the right."""
    short = cut(text, width)
    return short + " " * (max(width, 0) - cell_len(short))


def wrap(text: str, width: int) -> list[str]:
    """`text` (already safe, one line) as lines of at most `width` cells, broken at blanks where there are any."""
    if width <= 0:
        return []
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > width:
            lines.append("")
        elif lines[-1]:
            lines[-1] += " "
        lines[-1] += word
        while cell_len(lines[-1]) > width:
            head = set_cell_size(lines[-1], width)
            kept = len(head.rstrip(" ")) or 1
            lines[-1:] = [lines[-1][:kept], lines[-1][kept:]]
    return lines

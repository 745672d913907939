"""Functions that cut and pad text by terminal cells, so that East Asian text lines up."""

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "cut", "fit"]


def cut(text: str, width: int, *, end: str = "…") -> str:
    """Return `text` (already safe) in at most `width` cells. `end` replaces what is cut."""
    if width <= 0:
        return ""
    if len(text) * 2 <= width or cell_len(text) <= width:
        return text
    room = width - cell_len(end)
    return end[:width] if room <= 0 else set_cell_size(text, room).rstrip(" ") + end


def fit(text: str, width: int) -> str:
    """Return `text` (already safe) in exactly `width` cells, cut as by `cut` or padded on the right."""
    short = cut(text, width)
    return short + " " * (max(width, 0) - cell_len(short))

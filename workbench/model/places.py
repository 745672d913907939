"""Lines, columns and JSON paths in the form shown to users."""

import re
from collections.abc import Iterable

Location = tuple[str | int, ...]
"""Keys and list positions that lead from a JSON value to another one inside it."""

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


class Places:
    """Lines and columns of offsets into `text`, both counted from 1, columns in characters.

    `text` may be a piece of a file; `line` and `column` are then the place of its first character.
    """

    def __init__(self, text: str, line: int = 1, column: int = 1) -> None:
        self._text = text
        self._line = line
        self._column = column

    def line(self, offset: int) -> int:
        """Return the line of the character at `offset`."""
        # Counting runs at gigabytes a second and is needed for faults only. A table of all lines would cost more.
        breaks = self._text.count("\n", 0, offset)
        if returns := self._text.count("\r", 0, offset):
            pairs = self._text.count("\r\n", 0, offset)
            at_pair = self._text[offset - 1 : offset + 1] == "\r\n"
            breaks += returns - pairs - at_pair
        return self._line + breaks

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of the character at `offset`."""
        line = self.line(offset)
        start = self.line_start(offset)
        return line, offset - start + (self._column if start == 0 else 1)

    def line_start(self, offset: int) -> int:
        """Return the offset at which that character's line begins, or 0 if it began before the text."""
        newline = self._text.rfind("\n", 0, offset)
        lone_return = self._text.rfind("\r", newline + 1, offset)
        if lone_return >= 0 and self._text[lone_return + 1 : lone_return + 2] == "\n":
            lone_return = self._text.rfind("\r", newline + 1, lone_return)
        return max(newline, lone_return) + 1

    def indent(self, offset: int) -> int | None:
        """Return the indentation of that character's line, or None if the line began before the text."""
        start = self.line_start(offset)
        if start == 0 and self._column != 1:
            return None
        line = self._text[start : offset + 1]
        return len(line) - len(line.lstrip(" \t"))


def json_path(location: Iterable[str | int]) -> str:
    """Return a location in readable form: `eval_cases[2].session_input.state["first name"]`."""
    written = ""
    for step in location:
        if isinstance(step, int):
            written += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            written += f".{step}" if written else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            written += f'["{escaped}"]'
    return written

"""Typing in the editor: key → frame, against a Textual app that has nothing but a text area.

    python -m benchmarks.edit_typing

Both in a terminal of 120 × 40, letter by letter, in turn. Goal: at most 1.5 times the empty app's median.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.screen import Terminal, write_project

GOAL = 1.5
ROUNDS = 3
TEXT = b"the parcel is late and nobody knows where it is " * 2
EMPTY = """
from textual.app import App
from textual.widgets import TextArea
class Empty(App):
    def compose(self):
        area = TextArea(soft_wrap=True)
        area.cursor_blink = False
        yield area
    def on_ready(self):
        self.query_one(TextArea).text = "READY"
Empty().run()
"""


def main() -> int:
    empty, editor = [], []
    for _ in range(ROUNDS):
        empty += _typed(Terminal([sys.executable, "-c", EMPTY]), b"EADY", b"")  # the cursor is on the R
        with tempfile.TemporaryDirectory() as folder:
            # `e` on the first case, down to the user's message, into it.
            command = [sys.executable, "-m", "workbench", str(write_project(Path(folder), 100))]
            editor += _typed(Terminal(command), b"100 cases", b"jjlj|e|jj|\r")
    ratio = statistics.median(editor) / statistics.median(empty)
    for name, waits in (("an empty Textual app", empty), ("the editor", editor)):
        waits.sort()
        late = waits[len(waits) * 95 // 100]
        print(f"{name:24} p50 {statistics.median(waits) * 1000:5.1f} ms, p95 {late * 1000:5.1f} ms")
    print(f"ratio {ratio:.2f} (goal: at most {GOAL:g}) {'ok' if ratio <= GOAL else 'MISSED'}")
    return 0 if ratio <= GOAL else 1


def _typed(terminal: Terminal, ready: bytes, keys: bytes) -> list[float]:
    """Return the seconds from each letter to the last byte of its frame."""
    terminal.wait_for(ready)
    terminal.quiet()
    for group in keys.split(b"|"):
        for key in group:
            terminal.press(bytes([key]))
        terminal.quiet()
    if keys:
        terminal.wait_for(b"ctrl+o")
    waits = [terminal.press(bytes([letter]))[0] for letter in TEXT]
    terminal.close()
    return waits


if __name__ == "__main__":
    sys.exit(main())

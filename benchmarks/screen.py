"""The screen in a terminal of 120 × 40: first paint (G3), key to frame (G11), bytes (G12), a thousand sentences.

    python -m benchmarks.screen [first|keys|busy|claims|table]

A pseudo-terminal stands for the terminal; times are wall time on a possibly busy machine, so look at ratios and at the
lower half. Each figure is taken with warm byte-code.
"""

import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks import figures

COLUMNS, ROWS = 120, 40
QUIET = 0.06
"""Seconds without a byte after which a frame counts as complete."""
EMPTY_APP = """
from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.scroll_view import ScrollView
from textual.widgets import Input, Static
class Empty(App):
    CSS = "ScrollView { border: round red; } Input { display: none; } Horizontal { height: 1fr; }"
    def compose(self):
        yield Static("a bar")
        with Horizontal():
            with Vertical():
                yield ScrollView()
                yield Input()
            with Vertical():
                yield ScrollView()
                yield Static("")
        yield Static("READY")
Empty().run()
"""


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, command: list[str], variables: Mapping[str, str] | None = None) -> None:
        self.started = time.perf_counter()
        self.process, self._master = _spawn(command, variables or {})
        self.seen = b""

    def read(self, seconds: float) -> bytes:
        """Return the output as soon as there is some, or b"" if there is none within that time."""
        if not select.select([self._master], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return b""
        self.seen += data
        return data

    def wait_for(self, text: bytes, seconds: float = 60.0) -> float:
        """Return the seconds from the start until the text was seen."""
        while text not in self.seen:
            if not self.read(seconds):
                raise SystemExit(f"{text!r} never came; the end of what did: {self.seen[-300:]!r}")
        return time.perf_counter() - self.started

    def quiet(self, seconds: float = 0.5) -> None:
        """Wait until no more output comes."""
        while self.read(seconds):
            pass

    def write(self, keys: bytes) -> None:
        """Type something."""
        os.write(self._master, keys)

    def press(self, key: bytes, *, until: bytes = b"", most: float = 5.0) -> tuple[float, int]:
        """Return the seconds from the key to the last byte it caused, and the number of bytes.

        If something else goes on all the time, `until` is the text in a title that marks the end. The wait is limited
        to `most` seconds.
        """
        sent = last = time.perf_counter()
        os.write(self._master, key)
        found = b""
        while last - sent < most and (data := self.read(0.5 if not found else QUIET)):
            last, found = time.perf_counter(), found + data
            if until and b"\xba " + until in found:
                break
        return last - sent, len(found)

    def bytes_each_second(self, key: bytes = b"", seconds: int = 4) -> list[int]:
        """Return the output bytes of each of the next seconds after `key`, without further keys."""
        began = time.perf_counter()
        counts = [0] * seconds
        if key:
            os.write(self._master, key)
        while (passed := time.perf_counter() - began) < seconds:
            count = len(self.read(seconds - passed))
            counts[min(seconds - 1, int(time.perf_counter() - began))] += count
        return counts

    def close(self) -> None:
        self.process.terminate()
        while self.process.poll() is None:
            self.read(0.1)
        os.close(self._master)


def _spawn(command: list[str], variables: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", int]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, **variables, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT", "NO_COLOR", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, close_fds=True
    )
    os.close(slave)
    return process, master


def write_project(folder: Path, cases: int) -> Path:
    """Write a plain agent with one evalset of so many cases, about 2.7 kB each."""
    agent = folder / "shop"
    agent.mkdir()
    (agent / "agent.py").write_text("def root_agent(message, session):\n    return 'ok'\n", encoding="utf-8")
    words = "the parcel is on its way to you and will arrive tomorrow morning " * 15

    def turn(number: int) -> dict[str, object]:
        return {
            "invocation_id": f"turn-{number}",
            "user_content": {"role": "user", "parts": [{"text": f"Where is order {number}?"}]},
            "final_response": {"role": "model", "parts": [{"text": words}]},
            "intermediate_data": {"tool_uses": [{"name": "find_order", "args": {"id": f"A-{number}"}}]},
        }

    data = {
        "eval_set_id": "many",
        "name": "many",
        "eval_cases": [
            {"eval_id": f"case_{number:06}", "conversation": [turn(number), turn(number + 1)]}
            for number in range(cases)
        ],
    }
    (agent / "many.evalset.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    return folder


@contextmanager
def project(cases: int) -> Iterator[Path]:
    """Yield a project in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield write_project(Path(folder), cases)


def first_paint(rounds: int = 7) -> None:
    """Measure G3: the workbench on 20,000 cases against an empty app with the same widgets, in turn."""
    times: dict[str, list[float]] = {"an empty Textual app": [], "first frame": [], "all cases listed": []}
    with project(20_000) as folder:
        for _ in range(rounds + 1):
            terminal = Terminal([sys.executable, "-c", EMPTY_APP])
            times["an empty Textual app"].append(terminal.wait_for(b"READY"))
            terminal.close()
            terminal = Terminal([sys.executable, "-m", "workbench", str(folder)])
            times["first frame"].append(terminal.wait_for(b"reading"))
            times["all cases listed"].append(terminal.wait_for(b"20,000 cases"))
            terminal.close()
    base = statistics.median(times["an empty Textual app"][1:])
    for name, found in times.items():
        middle = statistics.median(found[1:])
        if name == "first frame":
            figures.record("G3", "first frame on 20 000 cases, to an empty app", middle / base, "x", goal=1.25)
        print(f"{name:24} {middle * 1000:7.0f} ms   {middle / base:5.2f} ×")


def keys(cases: int = 50_000, presses: int = 150, *, busy: bool = False) -> None:
    """Measure G11 and G12: j through 50,000 rows and their details. With `busy`, a hundred rows a second change."""
    with project(cases) as folder:
        module = "benchmarks.screen_busy" if busy else "workbench"
        terminal = Terminal([sys.executable, "-m", module, str(folder)])
        terminal.wait_for(b"50,000 cases")
        terminal.quiet()
        for key in (b"j", b"j", b"l", b"j"):
            terminal.press(key)
        if busy:
            terminal.press(b"kkk", most=1.0)
            counts = terminal.bytes_each_second(b"r\r", 10)  # r, and its confirmation
            rate = sum(counts) / len(counts)
            print(f"while running: {rate:,.0f} bytes/s over {len(counts)} s from its start, by second {counts}")
            figures.record("G12", "while 100 rows a second change", rate, "B/s", goal=10_000)
            # What was saved up in quiet seconds may be spent at once: that is in here.
            figures.record("G12", "the same, in its worst second", max(counts), "B/s")
            terminal.press(b"jjj", most=1.0)
            found = [terminal.press(b"j", until=b"case_%06d" % number) for number in range(1, presses)]
        else:
            rate = sum(terminal.bytes_each_second()) / 4
            print(f"idle: {rate:,.0f} bytes/s")
            figures.record("G12", "idle", rate, "B/s", goal=0)
            found = [terminal.press(b"j") for _ in range(presses)]
            terminal.press(b"z")
            # Upwards from the last row in sight, so that nothing scrolls.
            alone = sorted(terminal.press(b"k")[1] for _ in range(presses // 6))
            figures.record("G12", "a cursor move without the detail", alone[len(alone) // 2], "B", goal=3_000)
            print(f"without details: median {alone[len(alone) // 2]:,} bytes, most {alone[-1]:,}")
        terminal.close()
    waits = sorted(wait for wait, _ in found)
    sizes = sorted(size for _, size in found)
    state = ", 100 rows/s changing" if busy else ""
    figures.record("G11", f"key to frame, p50{state}", waits[len(waits) // 2] * 1000, "ms", goal=16)
    figures.record("G11", f"key to frame, p95{state}", waits[int(len(waits) * 0.95)] * 1000, "ms", goal=35)
    if not busy:
        figures.record("G12", "a cursor move with the detail", sizes[len(sizes) // 2], "B", goal=12_000)
    print(
        f"key → frame with details{state}: p50 {waits[len(waits) // 2] * 1000:.1f} ms, "
        f"p95 {waits[int(len(waits) * 0.95)] * 1000:.1f} ms; "
        f"bytes: median {sizes[len(sizes) // 2]:,}, most {sizes[-1]:,}"
    )


def table(cases: int = 10_000, presses: int = 150) -> None:
    """G11 and G12 in the table of 10 000 cases with verdicts: rows, columns, pages, sorting, and during a run."""
    with project(cases) as folder:
        terminal = Terminal([sys.executable, "-m", "benchmarks.screen_busy", str(folder), "decided"])
        terminal.wait_for(b"10,000 cases")
        terminal.quiet()
        terminal.press(b"r\r", most=1.0)  # r, and its confirmation
        terminal.wait_for(b"of 10,000")
        terminal.quiet(3.0)
        began = time.perf_counter()
        terminal.write(b"M")
        terminal.wait_for(b"Table: ")
        opened = time.perf_counter() - began
        terminal.quiet()
        print(f"the table of {cases:,} cases opens in {opened * 1000:.0f} ms, with its modules")
        found = [terminal.press(b"j") for _ in range(10)]  # in sight, then scrolling
        found += [terminal.press(b"j") for _ in range(presses)]
        pages = sorted(terminal.press(b"\x04")[0] for _ in range(presses // 5))
        columns = sorted(terminal.press(b"l" if number % 8 < 4 else b"h")[0] for number in range(presses // 5))
        sorts = sorted(terminal.press(b"s")[0] for _ in range(9))
        terminal.press(b"g")
        alone = sorted(terminal.press(b"j")[1] for _ in range(presses // 10))
        counts = terminal.bytes_each_second(b"r", 8)
        busy = [terminal.press(b"j", most=1.0)[0] for _ in range(presses // 10)]
        terminal.close()
    waits = sorted(wait for wait, _ in found)
    figures.record("G11", "key to frame in the table, p50", waits[len(waits) // 2] * 1000, "ms", goal=16)
    figures.record("G11", "key to frame in the table, p95", waits[int(len(waits) * 0.95)] * 1000, "ms", goal=35)
    figures.record("G11", "a page of the table, p50", statistics.median(pages) * 1000, "ms", goal=35)
    figures.record("G11", "sort 10 000 cases by a column", statistics.median(sorts) * 1000, "ms", goal=200)
    figures.record("G12", "a cursor move in the table", alone[len(alone) // 2], "B", goal=3_000)
    figures.record("G12", "the table while 100 rows a second change", sum(counts) / len(counts), "B/s", goal=10_000)
    print(
        f"table, key → frame: p50 {waits[len(waits) // 2] * 1000:.1f} ms, "
        f"p95 {waits[int(len(waits) * 0.95)] * 1000:.1f} ms; page {statistics.median(pages) * 1000:.1f} ms; "
        f"column {statistics.median(columns) * 1000:.1f} ms; sort {statistics.median(sorts) * 1000:.0f} ms; "
        f"bytes of a move: median {alone[len(alone) // 2]:,}; during a run {counts} B each second, "
        f"key → frame about {statistics.median(busy) * 1000:.0f} ms"
    )


def claims(presses: int = 150) -> None:
    """Press j through the sentences of a judged answer, a thousand against ten in turn.

    Also measure the layout of the pane.
    """
    from benchmarks.screen_claims import layout_seconds

    figures: dict[int, list[float]] = {10: [], 1000: []}
    sizes: dict[int, list[int]] = {10: [], 1000: []}
    with project(4) as folder:
        for _ in range(3):
            for sentences, found in figures.items():
                terminal = Terminal([sys.executable, "-m", "benchmarks.screen_claims", str(folder), str(sentences)])
                terminal.wait_for(b"4 cases")
                terminal.quiet()
                for key in (b"j", b"j", b"l", b"r"):
                    terminal.press(key)
                for key in (b"2", b"\r"):
                    terminal.press(key)
                terminal.quiet()
                for number in range(presses // 3):
                    wait, size = terminal.press(b"j" if number // 8 % 2 == 0 else b"k")
                    found.append(wait)
                    sizes[sentences].append(size)
                terminal.close()
    base = statistics.median(figures[10])
    for sentences, found in figures.items():
        waits = sorted(found)
        print(
            f"key → frame, {sentences:5,} sentences: p50 {statistics.median(waits) * 1000:.1f} ms "
            f"({statistics.median(waits) / base:.2f} ×), p95 {waits[int(len(waits) * 0.95)] * 1000:.1f} ms; "
            f"bytes: median {sorted(sizes[sentences])[len(waits) // 2]:,}; "
            f"the pane is laid out in {layout_seconds(sentences) * 1000:.1f} ms"
        )


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["first", "keys", "busy", "claims", "table"]
    if "first" in wanted:
        first_paint()
    if "keys" in wanted:
        keys()
    if "busy" in wanted:
        keys(busy=True)
    if "claims" in wanted:
        claims()
    if "table" in wanted:
        table()

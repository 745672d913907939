"""A review of 10,000 failing cases: opening it, one verdict, one step, a whole cause; and keys for 40 failures.

    python -m benchmarks.review [--cases 10000] [--project FOLDER]

The cases ran before, so their details are read from disk. A pseudo-terminal stands for the terminal. With FOLDER, a
project of `benchmarks.screen.write_project` that has run already is used, and left changed.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import figures
from benchmarks.screen import Terminal, project
from workbench.ui.review.model import Review, Section

OPEN_GOAL, KEY_GOAL, STEP_GOAL = 100.0, 16.0, 12
MOST_SECONDS = 120
PRESSES = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--project", type=Path)
    given = parser.parse_args()
    _keys()
    if given.project is not None:
        _times(given.project, given.cases)
        return
    with project(given.cases) as folder:
        run = [sys.executable, "-m", "workbench", "run", str(folder), "--plain", "--isolation", "run"]
        subprocess.run(run, check=False, stdout=subprocess.DEVNULL)
        _times(folder, given.cases)


def _keys() -> None:
    """Count the keys for three causes of 40 failures, and for 40 single verdicts."""
    sections = [
        Section(text, tuple((text, str(number)) for number in range(many)))
        for text, many in (("amount is text", 19), ("lacks the date", 12), ("not called", 9))
    ]
    by_cause, one_by_one = _pressed(sections, whole=True), _pressed(sections, whole=False)
    print(f"three causes of 40 failures: {by_cause} keys; one by one: {one_by_one} keys for 40 failures")
    figures.record("review", "keys for three causes of 40 failures", by_cause, "keys", goal=STEP_GOAL)
    figures.record("review", "keys for 40 failures one by one, with V", one_by_one, "keys", goal=41)


def _pressed(sections: list[Section], *, whole: bool) -> int:
    review, keys = Review(sections, lambda name: None, lambda name: "verdict"), 1  # V
    while not review.done:
        if whole:
            review.begin_whole()
            keys += 1
        step = None
        while step is None:
            step = review.choose("agent bug", lambda name: True)
            keys += 1
        review.save(step, object())
    return keys


def _times(folder: Path, cases: int) -> None:
    terminal = Terminal([sys.executable, "-m", "workbench", str(folder)])
    terminal.wait_for(f"✗{cases:,}".encode())
    terminal.quiet(1.0)
    began = time.perf_counter()
    terminal.write(b"V")
    while b"leave" not in terminal.seen[-20_000:] and terminal.read(MOST_SECONDS):
        pass
    opened = time.perf_counter() - began
    terminal.quiet()
    print(f"V on {cases:,} failing cases: {opened * 1000:.0f} ms")
    figures.record("review", f"V on {cases:,} failing cases", opened * 1000, "ms", goal=OPEN_GOAL)
    for key, name, goal in ((b"n", "a step", KEY_GOAL), (b"a", "a verdict", None)):
        found = [terminal.press(key) for _ in range(PRESSES)]
        wait, size = statistics.median(one for one, _ in found), statistics.median(size for _, size in found)
        print(f"{name}: key to frame {wait * 1000:.1f} ms, {size:,.0f} bytes (medians)")
        figures.record("review", f"{name}: key to frame, p50", wait * 1000, "ms", goal=goal)
        figures.record("review", f"{name}: bytes", size, "B", goal=12_000)
    for key in (b"*", b"x"):
        terminal.press(key)
    began = time.perf_counter()
    terminal.write(b"x")
    while b"saved for" not in terminal.seen[-20_000:] and time.perf_counter() - began < MOST_SECONDS:
        terminal.read(0.5)
    whole = time.perf_counter() - began
    print(f"a verdict for all cases of the cause: {whole:.1f} s")
    figures.record("review", f"one verdict for a cause of {cases:,} cases", whole, "s")
    terminal.close()


if __name__ == "__main__":
    main()

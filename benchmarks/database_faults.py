"""Faults of the database, at random moments and places: no traceback, no better verdict, and the rest is read.

    python -m benchmarks.database_faults [--kills 200] [--pages 2000] [--flips 300] [--cuts 100] [--removals 20]
                                         [--screens 10] [--disks 20] [--seed 1] [--only NAME]

- `kills`: a run is killed with SIGKILL at a random moment. Everything that was shown is stored, and the next run of the
  same cases resumes it.
- `pages`: random pages of the file are overwritten. `flips`: single bits are flipped. `cuts`: the file is cut. Each
  damaged file is then read in every way.
- `removals`: the file is removed, replaced by another one or made read-only while a run writes it.
- `screens`: the same under a screen that shows cases, where the file may also be damaged.
- `disks`: the disk is full (needs root, for a small file system in memory), read-only, or without room for a log.
- `clocks`: the clock jumps between runs.
- `together`: a run, a watch, a screen's follower and an editor share one project for `--minutes`.

Verdicts are known: cases named `good…` pass, all others fail. A case may have no verdict, but never a better one.
Prints the counts, and ends with exit code 1 if anything was wrong.
"""

import argparse
import contextlib
import io
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from benchmarks import aftermath
from benchmarks.screen import Terminal
from workbench.authoring.saving import Saver
from workbench.database.database import close_databases, database
from workbench.database.schema import PAGE_SIZE
from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.run.event_lines import as_line
from workbench.events import CaseFinished, CaseRef, Event, Noticed, PlannedCase, RunFinished, RunStarted
from workbench.history.compare import compare
from workbench.history.latest import latest_runs
from workbench.history.other_runs import OtherRuns
from workbench.history.resuming import read_results
from workbench.history.run_names import run_ids
from workbench.history.run_writer import RunWriter
from workbench.history.state_dir import run_path
from workbench.history.stored_events import is_reading_problem, read_run
from workbench.history.stored_run import open_run
from workbench.history.stored_runs import list_runs, load_summary

_CASES = 20
_LONGEST = 120.0
_AFTER = re.compile(rb"^(PASS|FAIL) desk/parcels/(\S+)", re.MULTILINE)


class Driver:
    """The project, the dice, and what went wrong."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.options = options
        self.dice = random.Random(options.seed)
        self.root = aftermath.write_project(folder / "project", _CASES)
        aftermath.write_criteria(self.root, {"response_match_score": 0.8})
        self.state = self.root / ".workbench"
        self.files = {"desk/parcels.evalset.json": [f"{'bad' if n % 3 == 2 else 'good'}_{n:03}" for n in range(_CASES)]}
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(Path.cwd())}
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()

    def words(self, *more: str) -> list[str]:
        """Return the command line of a run without a screen."""
        return [sys.executable, "-m", "workbench", "run", str(self.root), "--plain", "--concurrency", "4", *more]

    def run(self, *more: str) -> "subprocess.CompletedProcess[bytes]":
        """Run all cases to the end."""
        return subprocess.run(
            self.words(*more), env=self.environment, capture_output=True, check=False, timeout=_LONGEST
        )

    def start(self, *more: str) -> "subprocess.Popen[bytes]":
        """Start a run."""
        return subprocess.Popen(self.words(*more), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def until_shown(self, process: "subprocess.Popen[bytes]") -> bytes:
        """Wait for a random number of verdicts, and a random moment longer. Return what was printed."""
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(self.dice.randrange(_CASES))]
        time.sleep(self.dice.choice([0.0, 0.01, 0.1, 0.5]))
        return b"".join(lines)

    def fault(self, what: str) -> None:
        """Note something that is wrong."""
        self.faults.append(what)
        print(f"  FAULT {what[:2000]}", flush=True)

    def clear(self) -> None:
        """Remove all runs."""
        close_databases()
        shutil.rmtree(self.state, ignore_errors=True)

    def read_everything(self, what: str) -> None:
        """Read the database in every way, and note exceptions and verdicts that are too good."""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self._read(what)
        except (OSError, UsageFaultError) as error:
            self.counts["refused"] += 1
            if not str(error):
                self.fault(f"{what}: an error without a text: {error!r}")
        except Exception as error:
            self.fault(f"{what}: {error!r}\n{traceback.format_exc()[-1500:]}")

    def _read(self, what: str) -> None:
        list_runs(self.state)
        for run in latest_runs(self.state, self.files):
            for row in run.rows:
                self._check(what, row["ref"][3], row["status"])
        summaries = []
        for run_id in run_ids(self.state):
            summary, _ = load_summary(self.state, run_id)
            summaries.append(summary)
            for row in summary.rows.values():
                self._check(what, row["ref"][3], row["status"])
            path = run_path(self.state, run_id)
            for event in read_run(path):
                if isinstance(event, CaseFinished):
                    self._check(what, event.case.eval_id, event.status)
            read_results(path)
            open_run(run_id, self.state, self.root)
        if summaries:
            compare(summaries[0], summaries[-1], self.state)

    def _check(self, what: str, eval_id: str, status: str | None) -> None:
        self.counts["verdicts read"] += status in ("passed", "failed")
        if status == "passed" and not eval_id.startswith("good"):
            self.fault(f"{what}: {eval_id} passed")


def kills(driver: Driver) -> None:
    """Kill runs at random moments."""
    shown_ever = 0
    for number in range(driver.options.kills):
        driver.clear() if number % 4 == 0 else None
        process = driver.start("--fresh") if number % 4 == 0 else driver.start()
        begin = driver.until_shown(process)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        out = begin + out
        shown = {name.decode(): word.decode() for word, name in _AFTER.findall(out)}
        shown_ever += len(shown)
        if b"Traceback" in err:
            driver.fault(f"kill {number}: {err[-1500:].decode()}")
        stored = _statuses(driver)
        for name, word in shown.items():
            if stored.get(name) != {"PASS": "passed", "FAIL": "failed"}[word]:
                driver.fault(f"kill {number}: {name} was shown as {word} and is stored as {stored.get(name)}")
        driver.read_everything(f"kill {number}")
        driver.counts["kills"] += 1
        if number % 4 == 3:
            done = driver.run()
            driver.counts["resumed"] += b"resuming" in done.stderr
            if done.returncode != 1 or len(_statuses(driver)) != _CASES:
                driver.fault(f"kill {number}: the run after it ended with {done.returncode}: {done.stderr[-500:]!r}")
    print(f"  {shown_ever} verdicts were shown before a kill")


def _statuses(driver: Driver) -> dict[str, str]:
    """Return the newest verdict of each case."""
    found = {}
    for run in latest_runs(driver.state, driver.files):
        found.update({row["ref"][3]: str(row["status"]) for row in run.rows})
    return found


def _two_runs(driver: Driver) -> bytes:
    """Store two runs, and return the content of the file."""
    driver.clear()
    for _ in range(2):
        done = driver.run("--fresh")
        if done.returncode != 1:
            driver.fault(f"the run before the damage ended with {done.returncode}: {done.stderr[-500:]!r}")
    close_databases()
    with contextlib.closing(sqlite3.connect(driver.state / "runs.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return (driver.state / "runs.db").read_bytes()


def _damage(driver: Driver, name: str, times: int, change: Callable[[bytearray], bytes]) -> None:
    content = _two_runs(driver)
    for number in range(times):
        close_databases()
        for file in driver.state.glob("runs*.db*"):
            file.unlink()
        (driver.state / "runs.db").write_bytes(change(bytearray(content)))
        driver.read_everything(f"{name} {number}")
        driver.counts["set aside"] += bool(list(driver.state.glob("runs.damaged*.db")))
        try:
            database(driver.state).write(lambda connection: None)
        except OSError as error:
            driver.counts[f"not writable: {error.strerror}"] += 1
        driver.counts[name] += 1


def pages(driver: Driver) -> None:
    """Overwrite one to three random pages."""

    def change(content: bytearray) -> bytes:
        for _ in range(driver.dice.choice([1, 1, 1, 2, 3])):
            place = driver.dice.randrange(len(content) // PAGE_SIZE) * PAGE_SIZE
            new = driver.dice.choice([bytes(PAGE_SIZE), driver.dice.randbytes(PAGE_SIZE)])
            content[place : place + PAGE_SIZE] = new
        return bytes(content)

    _damage(driver, "pages", driver.options.pages, change)


def flips(driver: Driver) -> None:
    """Flip one to twenty bits."""

    def change(content: bytearray) -> bytes:
        for _ in range(driver.dice.choice([1, 2, 5, 20])):
            content[driver.dice.randrange(len(content))] ^= 1 << driver.dice.randrange(8)
        return bytes(content)

    _damage(driver, "flips", driver.options.flips, change)


def cuts(driver: Driver) -> None:
    """Cut the file at a random place."""
    _damage(driver, "cuts", driver.options.cuts, lambda content: bytes(content[: driver.dice.randrange(len(content))]))


def removals(driver: Driver) -> None:
    """Remove, replace or lock the file while a run writes it."""
    for number in range(driver.options.removals):
        driver.clear()
        how = ("remove", "replace", "folder", "mode")[number % 4]
        process = driver.start("--fresh")
        begin = driver.until_shown(process)
        with contextlib.suppress(OSError):
            _take_away(driver, how)
        out, err = process.communicate(timeout=_LONGEST)
        out = begin + out
        if b"Traceback" in err or process.returncode != 1:
            driver.fault(f"{how} {number}: exit code {process.returncode}: {err[-1500:].decode()}")
        for word, name in _AFTER.findall(out):
            if word == b"PASS" and not name.startswith(b"good"):
                driver.fault(f"{how} {number}: {name.decode()} passed")
        driver.read_everything(f"{how} {number}")
        driver.counts[f"removals: {how}, exit code {process.returncode}"] += 1


def screens(driver: Driver) -> None:
    """Remove, replace or damage the file under a screen that runs all cases, and then shows them."""
    for number in range(driver.options.screens):
        driver.clear()
        driver.run("--fresh")
        how = ("remove", "replace", "folder", "mode", "damage")[number % 5]
        terminal = Terminal([sys.executable, "-m", "workbench", str(driver.root)], driver.environment)
        terminal.wait_for(b"cases")
        terminal.write(b"gr")
        _read_for(terminal, driver.dice.uniform(0.5, 4.0))
        with contextlib.suppress(OSError):
            _take_away(driver, how)
        for keys in (b"jjj", b"34", b"n", b"H", b"\x1b", b"2", b"G", b"1"):
            _read_for(terminal, 0.5)
            terminal.write(keys)
        _read_for(terminal, 5.0)
        deadline = time.monotonic() + _LONGEST
        while terminal.process.poll() is None and time.monotonic() < deadline:
            for key in (b"\x1b", b"q"):  # Together, they are one key.
                terminal.write(key)
                _read_for(terminal, 1.0)
        code = terminal.process.poll()
        if b"Traceback" in terminal.seen or code != 0:
            driver.fault(f"screen {number}, {how}: exit code {code}: {terminal.seen[-1500:]!r}")
        terminal.close()
        driver.read_everything(f"screen {number}, {how}")
        driver.counts[f"screens: {how}"] += 1


def _read_for(terminal: Terminal, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not terminal.read(left):
            time.sleep(min(0.05, left))


def _take_away(driver: Driver, how: str) -> None:
    file = driver.state / "runs.db"
    if how == "mode":
        file.chmod(0o400)
        return
    if how == "damage":
        with file.open("r+b") as damaged:
            damaged.seek(driver.dice.randrange(5) * PAGE_SIZE)
            damaged.write(driver.dice.randbytes(4 * PAGE_SIZE))
        return
    if how == "folder":
        shutil.rmtree(driver.state)
        return
    for one in driver.state.glob("runs.db*"):
        one.unlink()
    if how == "replace":
        file.write_bytes(b"something else")


def disks(driver: Driver) -> None:
    """Run on a disk without room."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        print("  left out: mounting a small file system needs root")
        return
    for number in range(driver.options.disks):
        driver.clear()
        folder = Path(tempfile.mkdtemp())
        size = driver.dice.choice([64, 128, 256, 300, 400])
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
        if subprocess.run(words, capture_output=True, check=False).returncode:
            print("  left out: no file system can be mounted here")
            return
        try:
            done = driver.run("--fresh", "--state-dir", str(folder / "state"))
            told = done.stderr.decode("utf-8", "replace")
            runs = list_runs(folder / "state").runs
            is_whole = bool(runs) and runs[0].get("seconds") is not None
            if b"Traceback" in done.stderr or done.returncode != 1 or ("kept in memory" in told) == is_whole:
                driver.fault(f"disk of {size} KiB: exit code {done.returncode}: {told[-1500:]}")
            driver.counts[f"disks: exit code {done.returncode}"] += 1
            ours, driver.state = driver.state, folder / "state"
            driver.read_everything(f"disk {number}")
            driver.state = ours
        finally:
            close_databases()
            subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def clocks(driver: Driver) -> None:
    """Let the clock jump between the runs, and while another process writes one."""
    driver.clear()
    for year in ("2026-11-21", "2031-01-01", "1999-01-01", "2026-11-22"):
        run_id = f"{year}T10-00-00-{driver.dice.randrange(1 << 16):04x}"
        refs = [CaseRef("desk", "desk/parcels.evalset.json", "parcels", name) for name in ("good_000", "bad_002")]
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in refs)
        writer = RunWriter.open(driver.state, run_id)
        ends = [CaseFinished(ref, "passed" if ref.eval_id == "good_000" else "failed", None, 0.1) for ref in refs]
        events: list[Event] = [
            RunStarted(run_id, str(driver.root), f"{year}T10:00:00Z", planned),
            *ends,
            RunFinished(1.0),
        ]
        with mock.patch("time.time", return_value=time.time() + driver.dice.uniform(-1e8, 1e8)):
            writer.write(map(as_line, events), sync=True)
            driver.counts["clocks: being written"] += RunWriter.reopen(run_path(driver.state, run_id)) is None
        writer.close()
        driver.read_everything(f"clock {year}")
        driver.counts["clocks"] += 1
    newest = next(latest_runs(driver.state, driver.files)).summary.run_id
    if not newest.startswith("2026-11-22"):
        driver.fault(f"the newest run is {newest}")


class _Shared:
    """Threads that follow runs and edit a file of the project, while other processes run its cases."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._over = threading.Event()
        self.slowest: dict[str, float] = {}
        self.edits = 0
        self._threads = [threading.Thread(target=work) for work in (self._follow, self._edit)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let the threads end."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _timed(self, name: str, work: Callable[[], object]) -> None:
        began = time.monotonic()
        work()
        self.slowest[name] = max(self.slowest.get(name, 0.0), time.monotonic() - began)

    def _follow(self) -> None:
        state, files = self._driver.state, self._driver.files
        others = OtherRuns(state, lambda run_id: False)
        others.begin()
        while not self._over.wait(0.2):
            self._timed("look at runs of others", others.look)
            self._timed("newest verdicts", lambda: list(latest_runs(state, files)))

    def _edit(self) -> None:
        saver, file = Saver(self._driver.state, self._driver.root), self._driver.root / "notes.txt"
        file.write_bytes(b"0")
        saver.save("note", {file: (b"0", b"1")})
        while not self._over.wait(0.3):
            before = file.read_bytes()
            self._timed("edit", lambda: saver.save("note", {file: (before, before + b"1")}))  # noqa: B023
            self.edits += 1


def together(driver: Driver) -> None:
    """Let several programs use one project at the same time, and measure how long each change takes."""
    driver.clear()
    ended = time.monotonic() + 60 * driver.options.minutes
    watch = driver.start("--watch")
    shared, runs = _Shared(driver), 0
    while time.monotonic() < ended:
        done = driver.run("--fresh")
        runs += 1
        if done.returncode != 1 or b"Traceback" in done.stderr or b"memory" in done.stderr:
            driver.fault(f"run {runs}: exit code {done.returncode}: {done.stderr[-1000:]!r}")
    shared.end()
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=_LONGEST)
    if b"Traceback" in err:
        driver.fault(f"the watch: {err[-1000:]!r}")
    for name, seconds in shared.slowest.items():
        print(f"  slowest {name}: {seconds:.3f} s")
        if seconds > 1.0:
            driver.fault(f"{name} took {seconds:.2f} s")
    _check_all_is_there(driver, runs, shared.edits + 1)
    driver.counts.update({"runs": runs, "edits": shared.edits})
    driver.read_everything("together")


def _check_all_is_there(driver: Driver, runs: int, edits: int) -> None:
    stored = [load_summary(driver.state, run_id)[0] for run_id in run_ids(driver.state)]
    whole = sum(summary.is_complete and len(summary.rows) == _CASES for summary in stored)
    found = database(driver.state).read(lambda connection: connection.execute("SELECT count(*) FROM edit").fetchone())
    count = 0 if found is None else int(found[0])
    if whole < runs or not min(edits, 100) <= count <= edits:
        driver.fault(f"{whole} whole runs of {runs}, and {count} edits of {edits}")
    for run_id in run_ids(driver.state):
        path = run_path(driver.state, run_id)
        for event in read_run(path):
            if isinstance(event, Noticed) and is_reading_problem(event, path):
                driver.fault(event.message)


_TIMES = {"kills": 200, "pages": 2000, "flips": 300, "cuts": 100, "removals": 20, "screens": 10, "disks": 20}
DRIVERS = (kills, pages, flips, cuts, removals, screens, disks, clocks, together)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.database_faults")
    for name, times in _TIMES.items():
        parser.add_argument(f"--{name}", type=int, default=times)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[driver.__name__ for driver in DRIVERS], action="append")
    options = parser.parse_args()
    bad = 0
    for drive in DRIVERS:
        if options.only and drive.__name__ not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            driver = Driver(Path(folder), options)
            began = time.monotonic()
            drive(driver)
            bad += len(driver.faults)
            told = ", ".join(f"{name}: {count:,}" for name, count in sorted(driver.counts.items()))
            print(
                f"{drive.__name__}: {len(driver.faults)} faults in {time.monotonic() - began:.0f} s ({told})",
                flush=True,
            )
            close_databases()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

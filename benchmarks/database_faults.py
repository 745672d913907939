"""Faults of the database, at random moments and places: no traceback, no better verdict, and the rest is read.

    python -m benchmarks.database_faults [--kills 200] [--unshared 40] [--pages 2000] [--flips 400] [--cuts 100]
                                         [--removals 20] [--screens 10] [--disks 20] [--locked 4] [--minutes 10]
                                         [--seed 1] [--only NAME]

- `kills`: a run is killed with SIGKILL at a random moment. Everything that was shown is stored, and the next run of the
  same cases resumes it.
- `unshared`: the same without shared memory, as on some file systems. Then SQLite cannot have a write-ahead log.
- `pages`: random pages of the file are overwritten. `flips`: single bits are flipped. `cuts`: the file is cut. Each
  damaged file is then read in every way.
- `removals`: the file is removed, replaced by another one or made read-only while a run writes it.
- `screens`: the same under a screen that shows cases, where the file may also be damaged.
- `disks`: the disk is full (needs root, for a small file system in memory).
- `locked`: another user than root has a file system, a folder or a file that is read-only, or a database from a newer
  version, which must not change (needs root, to become that user).
- `clocks`: the clock jumps between runs.
- `together`: a run, a watch, a screen and an editor share one project for `--minutes`. None waits for a second.

Verdicts are known: cases named `good…` pass, all others fail. A case may have no verdict, but never a better one.
Prints the counts, and ends with exit code 1 if anything was wrong.
"""

import argparse
import contextlib
import io
import json
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
from typing import Any
from unittest import mock

from benchmarks import aftermath, no_shared_memory
from benchmarks.screen import Terminal
from workbench.editing.saving import Saver
from workbench.events.event_json import as_line
from workbench.events.events import CaseFinished, CaseRef, Event, Noticed, PlannedCase, RunFinished, RunStarted
from workbench.files.run_options import UsageFaultError
from workbench.results.run_comparison import compare
from workbench.run.resuming import read_results
from workbench.store.database.database import close_databases, database, run_path
from workbench.store.database.opening import PAGE_SIZE
from workbench.store.history.latest import latest_runs
from workbench.store.history.reading import load_summary, open_run
from workbench.store.history.run_list import list_runs
from workbench.store.history.run_names import run_ids
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import is_reading_problem, read_run

_CASES = 20
_LONGEST = 120.0
_AFTER = re.compile(rb"^(PASS|FAIL) desk/parcels/(\S+)", re.MULTILINE)
_STATUSES = {b"PASS": "passed", b"FAIL": "failed"}


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
        self.program = [sys.executable, "-m", "workbench"]
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()

    def words(self, *more: str) -> list[str]:
        """Return the command line of a run without a screen."""
        return [*self.program, "run", str(self.root), "--plain", "--concurrency", "4", *more]

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
            for one in run.executions:
                self.check(what, one.ref.eval_id, one.state)
        summaries = []
        for run_id in run_ids(self.state):
            summary, _ = load_summary(self.state, run_id)
            summaries.append(summary)
            for one in summary.executions.values():
                self.check(what, one.ref.eval_id, one.state if one.finished else None)
            path = run_path(self.state, run_id)
            for event in read_run(path):
                if isinstance(event, CaseFinished):
                    self.check(what, event.case.eval_id, event.status)
            read_results(path)
            open_run(run_id, self.state, self.root)
        if summaries:
            compare(summaries[0], summaries[-1], self.state)

    def check(self, what: str, eval_id: str, status: str | None) -> None:
        """Count a verdict, and note one that is too good."""
        self.counts["verdicts read"] += status in ("passed", "failed")
        if status == "passed" and not eval_id.startswith("good"):
            self.fault(f"{what}: {eval_id} passed")


def kills(driver: Driver) -> None:
    """Kill runs at random moments."""
    _kill(driver, driver.options.kills)


def unshared(driver: Driver) -> None:
    """Kill runs where no memory can be shared."""
    if not no_shared_memory.is_possible():
        print("  left out: it needs Linux on x86-64")
        return
    ours = driver.program
    driver.program = [ours[0], "-m", "benchmarks.no_shared_memory", "workbench"]
    _kill(driver, driver.options.unshared)
    driver.clear()
    processes = [driver.start("--fresh") for _ in range(3)]
    for process in processes:
        _, err = process.communicate(timeout=_LONGEST)
        if process.returncode != 1 or b"Traceback" in err or b"memory" in err:
            driver.fault(f"one of three runs: exit code {process.returncode}: {err[-1000:]!r}")
    if (driver.state / "runs.db").read_bytes()[18:20] != b"\1\1":
        driver.fault("the database has a write-ahead log")
    _check_all_is_there(driver, len(processes), 0)


def _kill(driver: Driver, times: int) -> None:
    shown_ever = 0
    for number in range(times):
        driver.clear() if number % 4 == 0 else None
        close_databases()
        process = driver.start("--fresh") if number % 4 == 0 else driver.start()
        begin = driver.until_shown(process)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        out = begin + out
        shown = _shown(out)
        shown_ever += len(shown)
        if b"Traceback" in err:
            driver.fault(f"kill {number}: {err[-1500:].decode()}")
        stored = _statuses(driver)
        for name, word in shown.items():
            if stored.get(name) != word:
                driver.fault(f"kill {number}: {name} was shown as {word} and is stored as {stored.get(name)}")
        driver.read_everything(f"kill {number}")
        driver.counts["kills"] += 1
        if number % 4 == 3:
            done = driver.run()
            driver.counts["resumed"] += b"resuming" in done.stderr
            if done.returncode != 1 or len(_statuses(driver)) != _CASES:
                driver.fault(f"kill {number}: the run after it ended with {done.returncode}: {done.stderr[-500:]!r}")
    print(f"  {shown_ever} verdicts were shown before a kill")


def _shown(output: bytes) -> dict[str, str]:
    """Return the status that a run printed for each case."""
    return {name.decode(): _STATUSES[word] for word, name in _AFTER.findall(output)}


def _statuses(driver: Driver) -> dict[str, str]:
    """Return the newest verdict of each case."""
    found = {}
    for run in latest_runs(driver.state, driver.files):
        found.update({one.ref.eval_id: str(one.state) for one in run.executions})
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
    if not driver.counts["verdicts read"]:
        driver.fault("no verdict could be read in any of the files")


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
        _use_screen(driver, f"screen {number}, {how}", lambda: _take_away(driver, how))  # noqa: B023
        driver.read_everything(f"screen {number}, {how}")
        driver.counts[f"screens: {how}"] += 1


def _use_screen(driver: Driver, what: str, fault: Callable[[], None]) -> None:
    """Run all cases on a screen, let a fault happen at a random moment, look at everything, and quit."""
    terminal = Terminal([*driver.program, str(driver.root)], driver.environment)
    terminal.wait_for(b"cases")
    terminal.write(b"gr")
    _read_for(terminal, driver.dice.uniform(0.5, 4.0))
    with contextlib.suppress(OSError):
        fault()
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
        driver.fault(f"{what}: exit code {code}: {terminal.seen[-1500:]!r}")
    terminal.close()


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
        size = driver.dice.choice([64, 300, 500, 600, 700, 800, 1000])
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
        if subprocess.run(words, capture_output=True, check=False).returncode:
            print("  left out: no file system can be mounted here")
            return
        try:
            done = driver.run("--fresh", "--state-dir", str(folder / "state"))
            told = done.stderr.decode("utf-8", "replace")
            runs = list_runs(folder / "state").runs
            is_whole = bool(runs) and runs[0].seconds is not None
            if b"Traceback" in done.stderr or done.returncode != 1 or ("kept in memory" in told) == is_whole:
                driver.fault(f"disk of {size} KiB: exit code {done.returncode}: {told[-1500:]}")
            driver.counts[f"disks: exit code {done.returncode}"] += 1
            ours, driver.state = driver.state, folder / "state"
            driver.read_everything(f"disk {number}")
            driver.state = ours
        finally:
            close_databases()
            subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
_AGAIN = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])"
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def locked(driver: Driver) -> None:
    """Use a project whose database cannot be written, as another user than root."""
    nobody = [*_NOBODY, *driver.program]
    home = driver.root.parent / "state"
    home.mkdir()
    driver.root.parent.chmod(0o711)
    driver.environment |= {"HOME": str(home)}
    if os.geteuid() or subprocess.run([*_NOBODY, sys.executable, "-c", _AGAIN], capture_output=True).returncode:
        print("  left out: it needs root, and a Python that other users can start")
        return
    for number in range(driver.options.locked):
        for how in ("mount", "killed, then mount", "folder", "file", "newer"):
            driver.clear()
            for path in (home, driver.root, *driver.root.rglob("*")):
                os.chown(path, 65534, 65534)
            driver.program = nobody
            driver.run("--fresh")
            process = driver.start("--fresh")
            shown = driver.until_shown(process) if how.startswith("killed") else b""
            process.kill() if shown else None
            shown += process.communicate()[0]
            _lock(driver, how)
            _use_locked(driver, f"{how} {number}", how, shown)
            driver.state.chmod(0o700)
    driver.program = nobody[len(_NOBODY) :]


def _lock(driver: Driver, how: str) -> None:
    match how:
        case "folder":
            driver.state.chmod(0o500)
        case "file":
            (driver.state / "runs.db").chmod(0o400)
        case "newer":
            with contextlib.closing(sqlite3.connect(driver.state / "runs.db")) as connection:
                connection.execute("PRAGMA user_version=1000")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        case _:
            driver.program = ["unshare", "-m", "sh", "-c", _READ_ONLY, str(driver.root), *driver.program]


def _use_locked(driver: Driver, what: str, how: str, shown: bytes) -> None:
    """Read, run and open a project whose database cannot be written, and look whether it is as before."""
    before = (driver.state / "runs.db").read_bytes()
    runs = _read_locked(driver, what, "history")["runs"]
    stored = {case["eval_id"]: case["status"] for case in _read_locked(driver, what, "status")["cases"]}
    for name, status in stored.items():
        driver.check(what, name, status)
    if how == "newer":
        if runs or any(stored.values()):
            driver.fault(f"{what}: {len(runs)} runs and {stored} are read")
    elif len(runs) != 2 or any(stored.get(name) != status for name, status in _shown(shown).items()):
        driver.fault(f"{what}: {_shown(shown)} was shown, {stored} is stored, in {len(runs)} runs")
    done = driver.run("--fresh")
    if done.returncode != 1 or b"Traceback" in done.stderr or b"kept in memory" not in done.stderr:
        driver.fault(f"{what}: the run ended with {done.returncode}: {done.stderr[-1000:]!r}")
    _use_screen(driver, what, lambda: None)
    if (driver.state / "runs.db").read_bytes() != before:
        driver.fault(f"{what}: the database was changed")
    driver.counts[f"locked: {how}"] += 1


def _read_locked(driver: Driver, what: str, command: str) -> Any:
    """Return the JSON that a command prints."""
    words = [*driver.program, command, str(driver.root), "--json"]
    done = subprocess.run(words, env=driver.environment, capture_output=True, check=False, timeout=_LONGEST)
    if done.returncode or b"Traceback" in done.stderr:
        driver.fault(f"{what}: {command} ended with {done.returncode}: {done.stderr[-1000:]!r}")
    if what.startswith("newer") and b"later version" not in done.stderr:
        driver.fault(f"{what}: {command} does not say why: {done.stderr[-1000:]!r}")
    return json.loads(done.stdout)


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
    """A screen and an editor of the project, used in threads while other processes run its cases."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._over = threading.Event()
        self.slowest: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self._terminal = Terminal([*driver.program, str(driver.root)], driver.environment)
        self._terminal.wait_for(b"everything")
        self._threads = [threading.Thread(target=self._note_faults, args=(work,)) for work in (self._look, self._edit)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let the threads end, and close the screen."""
        self._over.set()
        for thread in self._threads:
            thread.join(_LONGEST)
        if b"Traceback" in self._terminal.seen or self._terminal.process.poll() is not None:
            self._driver.fault(f"the screen: {self._terminal.seen[-1500:]!r}")
        self._terminal.close()

    def _note_faults(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (Exception, SystemExit) as error:
            self._driver.fault(repr(error))

    def _timed(self, name: str, work: Callable[[], object]) -> None:
        began = time.monotonic()
        work()
        self.counts[name] += 1
        self.slowest[name] = max(self.slowest.get(name, 0.0), time.monotonic() - began)

    def _look(self) -> None:
        """Press keys on the screen. Each must show something new, while runs of other programs are shown, too."""
        terminal = self._terminal
        steps = (b"j", b"Overview: desk"), (b"k", b"Overview: everything"), (b"H", b"history of"), (b"\x1b", b"cases")
        terminal.write(b"g")
        _read_for(terminal, 5.0)
        for key, _ in steps:  # The first time, code is loaded.
            terminal.write(key)
            _read_for(terminal, 3.0)
        while not self._over.is_set():
            for key, text in steps:
                terminal.seen = terminal.seen[-1500:] if b"Traceback" in terminal.seen else b""
                terminal.write(key)
                self._timed(f"key {key!r}", lambda: terminal.wait_for(text))  # noqa: B023
                _read_for(terminal, 0.2)

    def _edit(self) -> None:
        saver, file = Saver(self._driver.state, self._driver.root), self._driver.root / "notes.txt"
        file.write_bytes(b"0")
        saver.save("note", {file: (b"0", b"1")})
        while not self._over.wait(0.3):
            before = file.read_bytes()
            self._timed("edit", lambda: saver.save("note", {file: (before, before + b"1")}))  # noqa: B023


def together(driver: Driver) -> None:
    """Let several programs use one project at the same time, and measure how long each change takes."""
    driver.clear()
    ended = time.monotonic() + 60 * driver.options.minutes
    driver.run()
    watch = driver.start("--watch")
    shared, runs, load = _Shared(driver), 1, [os.getloadavg()[0]]
    while time.monotonic() < ended:
        done = driver.run("--fresh")
        runs += 1
        load.append(os.getloadavg()[0])
        if done.returncode != 1 or b"Traceback" in done.stderr or b"memory" in done.stderr:
            driver.fault(f"run {runs}: exit code {done.returncode}: {done.stderr[-1000:]!r}")
    shared.end()
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=_LONGEST)
    if b"Traceback" in err:
        driver.fault(f"the watch: {err[-1000:]!r}")
    print(f"  load average {min(load):.1f} to {max(load):.1f}")
    for name, seconds in shared.slowest.items():
        print(f"  slowest of {shared.counts[name]:,} × {name}: {seconds:.3f} s")
        if seconds > 1.0:
            driver.fault(f"{name} took {seconds:.2f} s")
    _check_all_is_there(driver, runs, shared.counts["edit"] + 1)
    driver.counts.update({"runs": runs, "edits": shared.counts["edit"]})
    driver.read_everything("together")


def _check_all_is_there(driver: Driver, runs: int, edits: int) -> None:
    stored = [load_summary(driver.state, run_id)[0] for run_id in run_ids(driver.state)]
    whole = sum(summary.is_complete and len(summary.executions) == _CASES for summary in stored)
    found = database(driver.state).read(lambda connection: connection.execute("SELECT count(*) FROM edit").fetchone())
    count = 0 if found is None else int(found[0])
    if whole < runs or not min(edits, 100) <= count <= edits:
        driver.fault(f"{whole} whole runs of {runs}, and {count} edits of {edits}")
    for run_id in run_ids(driver.state):
        path = run_path(driver.state, run_id)
        for event in read_run(path):
            if isinstance(event, Noticed) and is_reading_problem(event, path):
                driver.fault(event.message)


_TIMES = {
    "kills": 200,
    "unshared": 40,
    "pages": 2000,
    "flips": 400,
    "cuts": 100,
    "removals": 20,
    "screens": 10,
    "disks": 20,
    "locked": 4,
}
DRIVERS = (kills, unshared, pages, flips, cuts, removals, screens, disks, locked, clocks, together)


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

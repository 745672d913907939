"""Runs on a Dask cluster of this computer: faults in the middle of runs, equality with runs here, and speed.

```sh
python -m benchmarks.machines faults [NAME...]   # breaks something in the middle of each run
python -m benchmarks.machines equal [FOLDER...]  # compares the reports of a run here and one there
python -m benchmarks.machines rates              # time, spread, CPU and memory
```

The scheduler and each worker are processes of their own, with folders of their own. A link is a proxy that can be cut.
Faults print rows of a Markdown table. A full disk needs root, to mount a small file system.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.diverse_project import write_project as write_project_of_all_kinds
from benchmarks.diverse_project import write_samples
from benchmarks.machine_rates import measure_rates

_BIN = Path(sys.executable).parent
_CASES = 64
_AT_ONCE = 16
_AFTER = 8
"""Cases that have ended when the fault happens."""
_ENDS_WITHIN = 120.0
AGENT = """
import os, subprocess, sys, time, uuid
from pathlib import Path

ATTEMPT = ""

def root_agent(message, session):
    global ATTEMPT
    ATTEMPT = ATTEMPT or uuid.uuid4().hex  # Each case is a process of its own.
    kind = message.split()[0]
    time.sleep({seconds})
    if kind == "exit":
        os._exit(7)
    if kind == "raise":
        raise LookupError("nothing there")
    if kind == "daemon":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    if kind == "flood":
        for _ in range(20_000):
            print("x" * 1023)
    return f"{{message}} {{ATTEMPT}}"
"""
KINDS = {"say": "passed", "other": "failed", "raise": "error", "exit": "error", "daemon": "passed", "flood": "error"}
_ATTEMPT = re.compile(r" ([0-9a-f]{32})$")


class Proxy:
    """A link to `port` that can be cut. `port` of the object is its own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.open = threading.Event()
        self.open.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close_connections(self) -> None:
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.open.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@dataclass
class Cluster:
    """A scheduler and workers on this computer."""

    folder: Path
    workers: int = 2
    threads: int = 16
    small: bool = False
    """Whether the first worker has a disk on which nothing has room."""
    port: int = 0
    _processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def __enter__(self) -> "Cluster":
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.link, self.worker_link = Proxy(self.port), Proxy(self.port)
        self.start_scheduler()
        for number in range(1, self.workers + 1):
            self.start_worker(number)
        return self

    def __exit__(self, *error: object) -> None:
        for name in self._processes:
            self.end(name)
        if self.small:
            subprocess.run(["umount", str(self.folder / "w1")], check=False)

    def end(self, name: str) -> None:
        """Kill a process with all below it."""
        process = self._processes[name]
        for number in (process.pid, *_below(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)
                os.kill(number, signal.SIGKILL)
        process.wait()

    @property
    def address(self) -> str:
        return f"dask://127.0.0.1:{self.link.port}"

    def start_scheduler(self) -> None:
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)

    def start_worker(self, number: int) -> None:
        local = self.folder / f"w{number}"
        local.mkdir(exist_ok=True)
        if self.small and number == 1:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(local)], check=True)
        link = self.worker_link.port if number == 1 else self.port
        options = ["--nthreads", str(self.threads), "--name", f"w{number}", "--no-dashboard", "--memory-limit", "0"]
        self._start(f"w{number}", "worker", f"tcp://127.0.0.1:{link}", *options, "--local-directory", str(local))

    def worker(self, number: int) -> int:
        """Return the process of a worker, which is a child of its nanny."""
        nanny = self._processes[f"w{number}"].pid
        return next(child for child in _below(nanny) if b"spawn_main" in _command(child))

    def nanny(self, number: int) -> int:
        return self._processes[f"w{number}"].pid

    def scheduler(self) -> int:
        return self._processes["scheduler"].pid

    def left(self) -> list[str]:
        """Return files of projects that lie on the workers."""
        return [str(path) for path in self.folder.glob("w*/**/agent-workbench/**/*") if path.is_file()]

    def _start(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(_BIN / "dask"), *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )


def _below(pid: int) -> list[int]:
    """Return all processes below a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                above = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(above, []).append(int(entry.name))
    found, waiting = list[int](), [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _processes_of(mark: str) -> list[int]:
    """Return the processes whose environment has a mark, which agents inherit."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def write_project(root: Path, kinds: dict[str, int], seconds: float = 0.4) -> None:
    """Write a project with cases of these kinds."""
    (root / "desk").mkdir(parents=True)
    (root / "desk/__init__.py").write_text("from . import agent\n")
    (root / "desk/agent.py").write_text(AGENT.format(seconds=seconds))
    cases = []
    for kind, count in kinds.items():
        for number in range(count):
            turns = [
                {
                    "user_content": {"role": "user", "parts": [{"text": f"{kind} {number} {turn}"}]},
                    "final_response": {"role": "model", "parts": [{"text": f"{kind} {number} {turn}"}]},
                }
                for turn in range(2)
            ]
            if kind == "other":
                turns[0]["final_response"]["parts"][0]["text"] = "something else entirely"  # type: ignore[index]
            cases.append({"eval_id": f"{kind}_{number}", "conversation": turns})
    # Kinds alternate, so that each is under way at any moment.
    cases.sort(key=lambda case: (int(case["eval_id"].rpartition("_")[2]), case["eval_id"]))  # type: ignore[attr-defined]
    (root / "desk/all.evalset.json").write_text(json.dumps({"eval_set_id": "all", "eval_cases": cases}))
    (root / "desk/test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.5}}))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)


class Command:
    """A run of the workbench."""

    def __init__(self, root: Path, mark: str, *words: str) -> None:
        self.report = root.parent / "report.json"
        self.report.unlink(missing_ok=True)
        environment = {**os.environ, "MACHINES_MARK": mark, "XDG_CONFIG_HOME": str(root.parent / "config")}
        arguments = ["run", "desk", "--plain", "--concurrency", str(_AT_ONCE), "--json", str(self.report), *words]
        self.process = subprocess.Popen(
            [str(_BIN / "agent-workbench"), *arguments],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.quiet = 0.0
        """Longest time without a line, in seconds."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        last = time.monotonic()
        for line in self.process.stdout:
            self.quiet, last = max(self.quiet, time.monotonic() - last), time.monotonic()
            self.lines.append(line.rstrip())

    def wait_for_cases(self, count: int) -> None:
        while self.process.poll() is None and self.done < count:
            time.sleep(0.02)

    @property
    def done(self) -> int:
        return sum(line.startswith(("PASS ", "FAIL ", "ERROR ")) for line in self.lines)

    def wait(self) -> int:
        try:
            code = self.process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = -999
        self._thread.join(10)
        return code

    def cases(self) -> list[dict[str, Any]]:
        """Return the cases of the report, or none if it was not written."""
        if not self.report.exists():
            return []
        found: list[dict[str, Any]] = json.loads(self.report.read_text()).get("cases", [])
        return found


@dataclass(frozen=True)
class Fault:
    """A fault. `happen` gets the cluster and the command once some cases have ended."""

    words: str
    happen: Callable[[Cluster, Command], None] = lambda cluster, command: None
    interrupts: bool = False
    """Whether the run ends with exit code 130 and is resumed."""
    kinds: dict[str, int] = field(default_factory=lambda: {"say": 40, "other": 12, "raise": 12})
    timeout: int = 60
    small: bool = False
    restart: Callable[[Cluster], None] = lambda cluster: None
    """Repairs what is needed to resume."""


def _kill(which: Callable[[Cluster], list[int]]) -> Callable[[Cluster, Command], None]:
    def happen(cluster: Cluster, command: Command) -> None:
        for pid in which(cluster):
            os.kill(pid, signal.SIGKILL)

    return happen


def _stop(seconds: float | None) -> Callable[[Cluster, Command], None]:
    def happen(cluster: Cluster, command: Command) -> None:
        pid = cluster.worker(1)
        os.kill(pid, signal.SIGSTOP)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)

    return happen


def _cut(seconds: float | None) -> Callable[[Cluster, Command], None]:
    def happen(cluster: Cluster, command: Command) -> None:
        cluster.link.open.clear()
        if seconds is not None:
            time.sleep(seconds)
            cluster.link.open.set()

    return happen


def _close_worker_link(cluster: Cluster, command: Command) -> None:
    cluster.worker_link.close_connections()


def _press(times: int) -> Callable[[Cluster, Command], None]:
    def happen(cluster: Cluster, command: Command) -> None:
        for _ in range(times):
            os.kill(command.process.pid, signal.SIGINT)
            time.sleep(0.3)

    return happen


def _kill_client(cluster: Cluster, command: Command) -> None:
    for pid in _below(command.process.pid):
        if b"workbench.run.dask.client" in _command(pid):
            os.kill(pid, signal.SIGKILL)


def _continue(cluster: Cluster) -> None:
    """Let a stopped worker continue, so that it can delete its files."""
    os.kill(cluster.worker(1), signal.SIGCONT)


def _new_scheduler(cluster: Cluster) -> None:
    for number in range(1, cluster.workers + 1):
        cluster.end(f"w{number}")
    cluster.start_scheduler()
    for number in range(1, cluster.workers + 1):
        cluster.start_worker(number)


def _open_link(cluster: Cluster) -> None:
    cluster.link.open.set()


FAULTS = {
    "nothing": Fault("nothing"),
    "worker": Fault("worker killed", _kill(lambda cluster: [cluster.worker(1)])),
    "workers": Fault("all workers killed", _kill(lambda cluster: [cluster.worker(1), cluster.worker(2)])),
    "machine": Fault(
        "worker and its nanny killed, and started again later",
        _kill(lambda cluster: [cluster.nanny(1), cluster.worker(1)]),
        # A killed worker cannot delete its files: Dask does, when the next one starts there.
        restart=lambda cluster: cluster.start_worker(1),
    ),
    "stopped": Fault("worker stopped for 30 s", _stop(30.0)),
    "frozen": Fault("worker stopped for good (`--timeout 5`)", _stop(None), timeout=5, restart=_continue),
    "scheduler": Fault(
        "scheduler killed", _kill(lambda cluster: [cluster.scheduler()]), interrupts=True, restart=_new_scheduler
    ),
    "workbench": Fault("workbench killed", lambda cluster, command: command.process.kill(), interrupts=True),
    "client": Fault("client of Dask killed", _kill_client, interrupts=True),
    "blip": Fault("link to the scheduler cut for 15 s", _cut(15.0)),
    "cut": Fault("link to the scheduler cut for good", _cut(None), interrupts=True, restart=_open_link),
    "worker-link": Fault("link of a worker closed", _close_worker_link),
    "disk": Fault("disk of a worker full", small=True),
    "exit": Fault("agents that exit", kinds={"say": 44, "exit": 20}),
    "daemon": Fault("agents that start daemons", kinds={"say": 44, "daemon": 20}),
    "flood": Fault("agents that flood their output", kinds={"say": 52, "flood": 12}),
    "ctrl-c": Fault("Ctrl-C once", _press(1), interrupts=True),
    "ctrl-c-twice": Fault("Ctrl-C twice", _press(2), interrupts=True),
}


def try_fault(name: str) -> list[str]:
    """Let a fault happen, print the row of the table, and return what went wrong."""
    fault, folder = FAULTS[name], Path(tempfile.mkdtemp(prefix="machines-"))
    mark = f"MARK-{folder.name}"
    wrong: list[str] = []
    root = folder / "project"
    write_project(root, fault.kinds)
    try:
        with Cluster(folder, small=fault.small) as cluster:
            words = ["--on", cluster.address, "--env", "MACHINES_MARK", "--timeout", str(fault.timeout)]
            command = Command(root, mark, *words)
            command.wait_for_cases(_AFTER)
            fault.happen(cluster, command)
            code = command.wait()
            first = command.cases()
            seen = _seen(code, first, command)
            if fault.interrupts:
                wrong += [] if code in (130, -9) else [f"exit code {code} instead of 130"]
                wrong += _wrong_verdicts(first, fault, complete=False)
                wrong += _nothing_left(mark, cluster, seconds=45.0)
                fault.restart(cluster)
                command = Command(root, mark, *words)
                code = command.wait()
                resumed = next((line for line in command.lines if "resum" in line.lower() or "continu" in line), "")
                wrong += [] if resumed or not first else ["nothing says that the run was resumed"]
                seen += f"; resumed: {_seen(code, command.cases(), command)}"
            cases = command.cases()
            wrong += _wrong_verdicts(cases, fault, complete=True)
            wrong += [f"{command.quiet:.0f} s without a line"] if command.quiet > 12 else []
            if not fault.interrupts:
                fault.restart(cluster)
            wrong += _nothing_left(mark, cluster, seconds=45.0)
            if wrong:
                print(name, *wrong, sep="\n", file=sys.stderr)
                print("\n".join(command.lines[-60:]), file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"| {fault.words} | {sum(fault.kinds.values())} | {seen} | {'; '.join(wrong) or 'none'} |", flush=True)
    return wrong


def _seen(code: int, cases: list[dict[str, Any]], command: Command) -> str:
    states = Counter(case["status"] for case in cases)
    again = sum(case["attempt"] > 1 for case in cases)
    kinds = Counter(case["error"]["kind"] for case in cases if case["error"] and case["error"]["kind"] in _PLACE)
    words = [f"exit {code}", *(f"{count} {state}" for state, count in sorted(states.items()))]
    words += [f"{count} of them {kind}" for kind, count in kinds.items()]
    return ", ".join([*words, *([f"{again} ran again"] if again else [])])


_PLACE = ("attempt_lost", "no_place", "internal")


def _wrong_verdicts(cases: list[dict[str, Any]], fault: Fault, *, complete: bool) -> Iterator[str]:
    found = {case["eval_id"]: case for case in cases}
    if len(found) != len(cases):
        yield f"{len(cases) - len(found)} cases twice"
    for kind, count in fault.kinds.items():
        for number in range(count):
            name = f"{kind}_{number}"
            case = found.get(name)
            if case is None:
                if complete:
                    yield f"{name} is missing"
                continue
            lost = case["status"] == "error" and case["error"]["kind"] in ("attempt_lost",)
            if case["status"] != KINDS[kind] and not lost and (complete or case["status"] != "cancelled"):
                yield f"{name} is {case['status']}: {case['error']}"
            said = [turn["actual"] and turn["actual"].get("final_response") for turn in case["invocations"]]
            texts = ["".join(part.get("text", "") for part in answer["parts"]) for answer in said if answer]
            attempts = {match[1] for text in texts if (match := _ATTEMPT.search(text))}
            if len(attempts) > 1:
                yield f"{name} mixes {len(attempts)} attempts"
            if case["status"] in ("passed", "failed") and len(texts) != 2:
                yield f"{name} has {len(texts)} turns"


def _nothing_left(mark: str, cluster: Cluster, seconds: float) -> Iterator[str]:
    until = time.monotonic() + seconds
    while (processes := _processes_of(mark)) or cluster.left():
        if time.monotonic() > until:
            for pid in processes:
                yield f"process left: {_command(pid)!r}"
            yield from (f"file left: {name}" for name in cluster.left()[:3])
            return
        time.sleep(0.2)


def compare_reports(names: list[str]) -> list[str]:
    """Run projects here and on two workers, and return the differences of their reports."""
    wrong: list[str] = []
    for name in names or ["samples", "diverse"]:
        folder = Path(tempfile.mkdtemp(prefix="machines-"))
        root = folder / "project"
        if name in _PROJECTS:
            root.mkdir()
            _PROJECTS[name](root)
        else:
            shutil.copytree(name, root, symlinks=True, ignore=shutil.ignore_patterns(".workbench", "__pycache__"))
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        with Cluster(folder) as cluster:
            for place, words in (("here", []), ("there", ["--on", cluster.address])):
                # A judge's answers are asked again, so that both runs have the same counts.
                run = [str(_BIN / "agent-workbench"), "run", ".", "--plain", "--no-cache", "--timeout", "10"]
                command = [*run, "--json", str(folder / place), *words]
                done = subprocess.run(command, cwd=root, capture_output=True, stdin=subprocess.DEVNULL, check=False)
                print(f"{name} {place}: {done.stdout.splitlines()[-1].decode()}", flush=True)
            here, there = (_comparable(folder / place) for place in ("here", "there"))
            command = [str(_BIN / "agent-workbench"), "compare", str(folder / "here"), str(folder / "there")]
            code = subprocess.run(command, cwd=root, capture_output=True, check=False).returncode
        different = [case for case in here.keys() | there.keys() if here.get(case) != there.get(case)]
        print(f"{name}: {len(here)} cases, {len(different)} differ; compare exits with {code}", flush=True)
        for case in different:
            print(f"  {case}: {_first_difference(here.get(case, ''), there.get(case, ''))}")
        wrong += different
        shutil.rmtree(folder, ignore_errors=True)
    return wrong


def _first_difference(one: str, other: str) -> str:
    at = next((at for at, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1]), 0)
    return f"{one[max(0, at - 60) : at + 60]!r} / {other[max(0, at - 60) : at + 60]!r}"


_PROJECTS: dict[str, Callable[[Path], None]] = {"samples": write_samples, "diverse": write_project_of_all_kinds}
_TIMES = re.compile(r"duration|seconds|timestamp|_at$|^judge_calls")
"""Keys that differ in any two runs: of equal questions to a judge, the first one is asked."""
_IDS = re.compile(r"(?:e-|adk-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _comparable(report: Path) -> dict[str, str]:
    """Return each case without ids, times and place."""

    def plain(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            is_time = "duration" in str(value.get("name", ""))
            return {key: plain(one, key) for key, one in value.items() if not is_time and not _TIMES.search(key)}
        if isinstance(value, list):
            return [plain(one, name) for one in value]
        return _IDS.sub("ID", value) if isinstance(value, str) else value

    found = {}
    for case in json.loads(report.read_text())["cases"]:
        name = f"{case['evalset_file']}:{case['eval_id']}#{case['repeat']}"
        found[name] = json.dumps(plain({**case, "place": None}), sort_keys=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.machines")
    parser.add_argument("what", choices=["faults", "equal", "rates"])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.what == "rates":
        asyncio.run(measure_rates(Cluster, write_project))
        return
    wrong = compare_reports(arguments.names) if arguments.what == "equal" else []
    if arguments.what == "faults":
        print("| fault | cases | seen | wrong |\n|---|---|---|---|", flush=True)
        for name in arguments.names or FAULTS:
            wrong += try_fault(name)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

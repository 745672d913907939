"""Faults on other machines, while a run has cases there: real ssh and Dask, machines as in `machine_lab`.

    python -m benchmarks.machines faults [--place ssh|dask] [--sshd PATH] [--python PATH ...] [FAULT ...]

Of each run it is checked that every case has one verdict, equal to that of a local run, or an error that says what was
lost; that no transcript mixes attempts; that nothing of ours runs on any machine a minute later; and that no files are
left. A run that was ended is resumed.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import aftermath
from benchmarks.machine_lab import Lab, Machine, NotPossibleError, require
from benchmarks.marked_project import Outcome, outcomes, write_project
from benchmarks.parts import end
from workbench.history.journal import read_journal

LONGEST = 300.0
GONE_WITHIN = 75.0
_STOPPED = 66.0
"""Seconds: longer than a lease."""
_SIZES = (24, 6, 1.0)
_MANY = (60, 0, 0.6)


@dataclass
class Trial:
    """A run of the workbench in which something goes wrong."""

    lab: Lab
    project: Path
    words: tuple[str, ...]
    log: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: "subprocess.Popen[bytes] | None" = None
    happened: bool = True
    """Whether the fault came to pass."""

    def start(self, *more: str) -> None:
        """Start the workbench."""
        words = ["run", str(self.project), "--plain", "--no-cache", "--timeout", "60", *self.words, *more]
        environment = aftermath.environment(self.mark)
        self.process = self.lab.workbench(*words, environment=environment, log=self.log)

    def wait(self) -> int | None:
        """Wait for its end and return the exit code, or None if it hung and was killed."""
        assert self.process is not None
        try:
            return self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def outcomes(self) -> dict[str, list[Outcome]]:
        """Return the ends of its cases."""
        journals = sorted((self.project / ".workbench/runs").glob("*/events.jsonl"))
        return outcomes(iter(read_journal(journals[-1]))) if journals else {}

    def until_busy(self) -> bool:
        """Wait until some cases have ended and others run. Return whether it came to that."""
        assert self.process is not None
        deadline = time.monotonic() + 90
        while self.process.poll() is None and time.monotonic() < deadline:
            text = b"".join(path.read_bytes() for path in (self.project / ".workbench/runs").glob("*/events.jsonl"))
            if text.count(b'"CaseFinished"') >= 3 and self.lab.machines["m1"].find("case"):
                return True
            time.sleep(0.1)
        return False


@dataclass(frozen=True)
class Fault:
    """What goes wrong: `do` is called while cases run. A run that it ends with `resumes` is then resumed."""

    do: Callable[[Trial], None]
    places: tuple[str, ...] = ("ssh", "dask")
    resumes: bool = False
    sizes: tuple[int, int, float] = _SIZES
    before: Callable[[Trial], None] | None = None


def _nothing(trial: Trial) -> None:
    """Let it run."""


def _signalled(role: str, number: int, seconds: float = 0.0) -> Callable[[Trial], None]:
    """Return a fault that sends a signal to the first process with a role, and after some seconds lets it go on."""

    def do(trial: Trial) -> None:
        machine = trial.lab.machines["s" if role == "scheduler" else "m1"]
        found = machine.find(role)
        if not found:
            raise NotPossibleError(f"no {role} runs on {machine.name}")
        os.kill(found[0], number)
        if seconds:
            time.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):
                os.kill(found[0], signal.SIGCONT)

    return do


def _machine_freezes(trial: Trial) -> None:
    """Stop all processes of a machine for longer than a lease."""
    machine = trial.lab.machines["m1"]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in machine.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(_STOPPED if number == signal.SIGSTOP else 0)


def _kill_carriers(trial: Trial) -> None:
    """Kill the user's processes that carry the messages: ssh to the first machine, or the Dask client."""
    killed = 0
    for pid, words in trial.lab.users_processes().items():
        if "workbench.places.dask.client" in words or (words[0] == "ssh" and "m1" in words):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    if not killed:
        raise NotPossibleError("nothing carries messages")


def _early(do: Callable[[Trial], None]) -> Callable[[Trial], None]:
    """Return a fault that happens as soon as a host runs, while it prepares."""

    def watch(trial: Trial) -> None:
        def wait() -> None:
            deadline = time.monotonic() + 60
            machine = trial.lab.machines["m1"]
            while not machine.find("host"):
                if time.monotonic() > deadline:
                    return
                time.sleep(0.02)
            do(trial)
            trial.happened = True

        trial.happened = False
        threading.Thread(target=wait, daemon=True).start()

    return watch


def _machine_dies(trial: Trial) -> None:
    trial.lab.stop(trial.lab.machines["m1"])


def _cut(seconds: float) -> Callable[[Trial], None]:
    def do(trial: Trial) -> None:
        machine = trial.lab.machines["m1"]
        trial.lab.cut(machine)
        if seconds:
            time.sleep(seconds)
            trial.lab.mend(machine)

    return do


def _fill(trial: Trial) -> None:
    machine = trial.lab.machines["m1"]
    for folder in (machine.home, machine.temporary):
        with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(65536))


def _interrupt(*pauses: float) -> Callable[[Trial], None]:
    def do(trial: Trial) -> None:
        assert trial.process is not None
        for pause in pauses:
            time.sleep(pause)
            trial.process.send_signal(signal.SIGINT)

    return do


def _kill_workbench(trial: Trial) -> None:
    assert trial.process is not None
    trial.process.kill()


def _sleep(every: bool) -> Callable[[Trial], None]:
    """Stop the workbench, or all processes on the user's machine, for longer than a lease."""

    def do(trial: Trial) -> None:
        assert trial.process is not None
        stopped = [*trial.lab.users_processes()] if every else [trial.process.pid]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(_STOPPED + 6 if number == signal.SIGSTOP else 0)

    return do


def _second_machine_joins(trial: Trial) -> None:
    trial.lab.start("m2")


def _remove_second(trial: Trial) -> None:
    if "m2" in trial.lab.machines:
        trial.lab.stop(trial.lab.machines["m2"])


def _another_user(trial: Trial) -> None:
    """Do the same run a second time, from another project, and compare it as well."""
    other = _trial(trial.lab, "other", _SIZES, trial.words)
    other.start("--fresh")
    code = other.wait()
    wrong = list(_wrong(other, code, _reference(trial.lab, _SIZES)))
    if wrong:
        raise AssertionError("; ".join(f"the other user: {one}" for one in wrong))


FAULTS = {
    "none": Fault(_nothing),
    "kill-case": Fault(_signalled("case", signal.SIGKILL)),
    "kill-agent": Fault(_signalled("agent", signal.SIGKILL)),
    "kill-host": Fault(_signalled("host", signal.SIGKILL)),
    "kill-connection": Fault(_signalled("connection", signal.SIGKILL), ("ssh",)),
    "kill-worker": Fault(_signalled("worker", signal.SIGKILL), ("dask",)),
    "kill-nanny": Fault(_signalled("nanny", signal.SIGKILL), ("dask",)),
    "kill-scheduler": Fault(_signalled("scheduler", signal.SIGKILL), ("dask",)),
    "kill-machine": Fault(_machine_dies),
    "full-disk": Fault(_nothing, before=_fill),
    "disk-fills": Fault(_fill),
    "late-machine": Fault(_second_machine_joins, ("dask",), sizes=_MANY, before=_remove_second),
    "two-users": Fault(_another_user),
    "ctrl-c": Fault(_interrupt(0.0), resumes=True),
    "ctrl-c-twice": Fault(_interrupt(0.0, 0.3), resumes=True),
    "kill-workbench": Fault(_kill_workbench, resumes=True),
    "cut-5s": Fault(_cut(5.0)),
    "cut": Fault(_cut(0.0)),
    "stop-case": Fault(_signalled("case", signal.SIGSTOP, _STOPPED)),
    "stop-agent": Fault(_signalled("agent", signal.SIGSTOP, _STOPPED)),
    "stop-host": Fault(_signalled("host", signal.SIGSTOP, _STOPPED)),
    "stop-connection": Fault(_signalled("connection", signal.SIGSTOP, _STOPPED), ("ssh",)),
    "stop-worker": Fault(_signalled("worker", signal.SIGSTOP, _STOPPED), ("dask",)),
    "stop-nanny": Fault(_signalled("nanny", signal.SIGSTOP, _STOPPED), ("dask",)),
    "stop-scheduler": Fault(_signalled("scheduler", signal.SIGSTOP, _STOPPED), ("dask",)),
    "stop-machine": Fault(_machine_freezes),
    "kill-host-early": Fault(_nothing, before=_early(_signalled("host", signal.SIGKILL))),
    "cut-5s-early": Fault(_nothing, before=_early(_cut(5.0))),
    "cut-early": Fault(_nothing, before=_early(_cut(0.0))),
    "disk-fills-early": Fault(_nothing, before=_early(_fill)),
    "kill-carrier": Fault(_kill_carriers),
    "stop-workbench": Fault(_sleep(every=False)),
    "stop-user": Fault(_sleep(every=True)),
}


def main(words: Sequence[str]) -> int:
    """Inject faults, print a line for each, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.machines faults")
    parser.add_argument("names", nargs="*", metavar="FAULT", choices=[*FAULTS, []], help=", ".join(FAULTS))
    parser.add_argument("--place", choices=("ssh", "dask"), default="ssh")
    parser.add_argument("--sshd", type=Path, help="OpenSSH's server (default: on the PATH or in /usr/sbin)")
    parser.add_argument("--python", type=Path, action="append", help="Python of a machine, with google-adk and Dask")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the machines, with logs")
    options = parser.parse_args(words)
    found = options.sshd or shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    sshd = Path(found).absolute() if found else None
    pythons = [path.absolute() for path in options.python or [Path(sys.executable)]]
    names = [name for name in options.names or FAULTS if options.place in FAULTS[name].places]
    bad = 0
    folder = Path(tempfile.mkdtemp(prefix="machines-", dir="/var/tmp"))  # Machines have a /tmp of their own.
    try:
        require(options.place, sshd, pythons)
        with Lab(folder, options.place, pythons, sshd) as lab:
            for name in names:
                bad += _inject(lab, name)
    except NotPossibleError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


def _inject(lab: Lab, name: str) -> bool:
    """Run with a fault, print what came of it, and return whether anything was wrong."""
    fault = FAULTS[name]
    began = time.monotonic()
    _bring_up(lab)
    reference = _reference(lab, fault.sizes)
    words = ("--on", lab.word("m1", "m2"), "--remote-python", str(lab.python), "--insecure-place")
    trial = _trial(lab, "project", fault.sizes, words)
    wrong = _break(trial, fault)
    code = first_code = trial.wait()
    wrong += [] if trial.happened else ["the fault did not happen"]
    wrong += _left(lab, trial)  # What runs behind a cut ends without being told.
    seconds = time.monotonic() - began
    for machine in lab.machines.values():
        if machine.is_cut:
            lab.mend(machine)
            wrong += _left(lab, trial)
    _remove_fillers(lab)
    if fault.resumes:
        _bring_up(lab)
        trial.start()
        code = trial.wait()
    wrong += _wrong(trial, code, reference)
    files = {machine.name: machine.files() for machine in lab.machines.values()}
    wrong += [f"{each} has {of['temporary']} temporary files" for each, of in files.items() if of["temporary"]]
    found = trial.outcomes()
    counts = Counter(ends[-1].status if ends else "none" for ends in found.values())
    whys = Counter(ends[-1].why for ends in found.values() if ends and ends[-1].why)
    lost = sum(end.lost for ends in found.values() for end in ends)
    print(
        f"{lab.place:4} {name:16} {seconds:5.1f} s, exit code {first_code}, {dict(counts)}, {lost} attempts lost, "
        f"files {[of['home'] for of in files.values()]}",
        *(f"\n     ERROR x{count}: {why}" for why, count in whys.items()),
        *(f"\n     WRONG {one}" for one in wrong),
        *([f"\n     {_kept(trial)}"] if wrong else []),
        flush=True,
    )
    if wrong:
        end([*lab.users_processes()])
        for machine in tuple(lab.machines.values()):
            lab.stop(machine)
    return bool(wrong)


def _break(trial: Trial, fault: Fault) -> list[str]:
    """Start the run and let the fault happen. Return what went wrong with that."""
    try:
        if fault.before is not None:
            fault.before(trial)
        trial.start("--fresh")
        if fault.do is not _nothing:
            if not trial.until_busy():
                return ["it was never busy on m1"]
            fault.do(trial)
    except (AssertionError, NotPossibleError) as error:
        return [str(error)]
    return []


def _kept(trial: Trial) -> Path:
    """Keep the project of a run in which something was wrong, with its journal."""
    kept = trial.log.with_suffix("")
    shutil.copytree(trial.project, kept)
    return kept


def _wrong(trial: Trial, code: int | None, reference: dict[str, str]) -> Iterator[str]:
    """Return what is wrong with the verdicts of a run."""
    if code is None:
        yield f"it did not end within {LONGEST:g} s"
    found = trial.outcomes()
    if found.keys() != reference.keys():
        yield f"{len(found)} of {len(reference)} cases"
    for case, ends in found.items():
        final = [one for one in ends if one.status != "cancelled"]
        if len(final) != 1:
            yield f"{case} has {len(final)} verdicts ({[one.status for one in ends]})"
            continue
        if len(final[0].marks) > 1:
            yield f"{case} mixes {len(final[0].marks)} attempts"
        if final[0].attempt not in (final[0].lost, final[0].lost + 1):
            yield f"{case} ends with attempt {final[0].attempt} after {final[0].lost} lost ones"
        if final[0].status == "error" and final[0].why:
            continue
        if final[0].told != reference.get(case):
            yield f"{case}: {final[0].told} instead of {reference.get(case)}"


def _left(lab: Lab, trial: Trial) -> Iterator[str]:
    """Return the processes that are still there when a minute is over."""
    deadline = time.monotonic() + GONE_WITHIN
    while time.monotonic() < deadline:
        there = {machine.name: _of_run(machine) for machine in lab.machines.values()}
        here = trial.lab.users_processes()
        if not here and not any(there.values()):
            return
        time.sleep(0.2)
    yield from (f"left on {name}: {pid} {words[:150]}" for name, of in there.items() for pid, words in of.items())
    yield from (f"left here: {pid} {words}" for pid, words in here.items())


def _of_run(machine: Machine) -> dict[int, str]:
    """Return the processes of a run on a machine. With its link cut, sshd keeps its own one until TCP gives up."""
    ours = machine.ours()
    alone = len(ours) == len(machine.find("connection"))
    return {} if machine.is_cut and alone else ours


def _bring_up(lab: Lab) -> None:
    """Start the machines that are not there, or whose service has ended."""
    wanted = ["s", "m1", "m2"] if lab.place == "dask" else ["m1", "m2"]
    roles = {"s": "scheduler", "m1": "worker", "m2": "worker"}
    fresh = False
    for name in wanted:
        machine = lab.machines.get(name)
        broken = machine is not None and lab.place == "dask" and (fresh or not machine.find(roles[name]))
        if machine is not None and broken:
            lab.stop(machine)
        if machine is None or broken:
            lab.start(name)
            fresh = fresh or name == "s"


def _remove_fillers(lab: Lab) -> None:
    for machine in lab.machines.values():
        for folder in (machine.home, machine.temporary):
            (folder / "filler").unlink(missing_ok=True)


def _trial(lab: Lab, name: str, sizes: tuple[int, int, float], words: Sequence[str]) -> Trial:
    project = lab.user / name
    shutil.rmtree(project, ignore_errors=True)
    write_project(project, *sizes)
    return Trial(lab, project, tuple(words), lab.folder / f"{name}-{time.time():.0f}.log")


_references: dict[tuple[int, int, float], dict[str, str]] = {}


def _reference(lab: Lab, sizes: tuple[int, int, float]) -> dict[str, str]:
    """Return what a local run tells about each case."""
    if sizes not in _references:
        trial = _trial(lab, "reference", sizes, ("--on", "local"))
        trial.start("--fresh")
        trial.wait()
        _references[sizes] = {case: ends[0].told for case, ends in trial.outcomes().items()}
        if len(_references[sizes]) != sizes[0] + sizes[1]:
            raise NotPossibleError(f"the local run failed:\n{trial.log.read_text()}")
    return _references[sizes]

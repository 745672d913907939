"""Faults on other machines, while a run has cases there: real ssh and Dask, machines as in `machine_lab`.

    python -m benchmarks.machines faults [--place ssh|dask] [--agents plain|adk|both] [--sshd PATH] [--python PATH ...]
        [FAULT ...]

Of each run it is checked that every case has one verdict, equal to that of a local run, or an error that the fault may
cause and that says what was lost; that no transcript mixes attempts, in the journal and as it is shown; that nothing of
ours runs on any machine a minute later; and that no files are left. A run that was ended is resumed.
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
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import aftermath
from benchmarks.machine_lab import Lab, Machine, NotPossibleError, parent, require
from benchmarks.marked_project import Outcome, outcomes, shown_marks, under_way, write_project
from benchmarks.parts import end
from workbench.history.journal import read_journal

LONGEST = 300.0
GONE_WITHIN = 75.0
_STOPPED = 66.0
"""Seconds: longer than a lease."""
_NAP = 20.0
"""Seconds: shorter than a lease."""
_BUSY, _ENDED = 3, 3
"""Cases that are in the middle on the first machine when a fault happens, and cases that have ended."""
_ATTEMPTS = 3
_AGENTS = {"plain": (30, 0), "adk": (0, 24), "both": (24, 6)}
_TURN = 1.0
_MORE = 2
"""Factor for runs that must be longer."""


@dataclass
class Trial:
    """A run of the workbench in which something goes wrong."""

    lab: Lab
    project: Path
    words: tuple[str, ...]
    log: Path
    sizes: tuple[int, int, float]
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    user: str = "home"
    process: "subprocess.Popen[bytes] | None" = None
    happened: bool = True
    """Whether the fault came to pass."""
    ended: float = 0.0
    """When it had ended, in monotonic seconds."""

    def start(self, *more: str) -> None:
        """Start the workbench."""
        words = ["run", str(self.project), "--plain", "--no-cache", "--timeout", "60", *self.words, *more]
        environment = aftermath.environment(self.mark)
        self.process = self.lab.workbench(*words, environment=environment, log=self.log, home=self.user)
        threading.Thread(target=self._watch, args=(self.process,), daemon=True).start()

    def wait(self) -> int | None:
        """Wait for its end and return the exit code, or None if it hung and was killed."""
        assert self.process is not None
        try:
            return self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        process.wait()
        self.ended = time.monotonic()

    def journals(self) -> list[Path]:
        """Return the journals of its runs, the oldest first."""
        return sorted((self.project / ".workbench/runs").glob("*/events.jsonl"))

    def outcomes(self) -> dict[str, list[Outcome]]:
        """Return the ends of its cases."""
        journals = self.journals()
        return outcomes(iter(read_journal(journals[-1]))) if journals else {}

    def until_busy(self) -> bool:
        """Wait until some cases have ended, and others are in the middle on m1. Return whether it came to that."""
        assert self.process is not None
        m1 = self.lab.machines["m1"]
        name = m1.name if self.lab.place == "ssh" else m1.address
        deadline = time.monotonic() + 90
        while self.process.poll() is None and time.monotonic() < deadline:
            for journal in self.journals():
                text = journal.read_bytes()
                if text.count(b'"CaseFinished"') >= _ENDED and under_way(iter(read_journal(journal)), name) >= _BUSY:
                    return True
            time.sleep(0.1)
        return False


@dataclass(frozen=True)
class Fault:
    """What goes wrong: `do` is called while cases run. A run that it ends with `resumes` is then resumed."""

    do: Callable[[Trial], None]
    places: tuple[str, ...] = ("ssh", "dask")
    resumes: bool = False
    longer: bool = False
    before: Callable[[Trial], None] | None = None
    errors: tuple[str, ...] = ()
    """The kinds of errors that it may cause. Of all others, no case may have one."""
    loses: bool | None = None
    """Whether it must lose attempts, or must not (False). None if both may happen."""


def _nothing(trial: Trial) -> None:
    """Let it run."""


def _signalled(role: str, number: int, seconds: float = 0.0) -> Callable[[Trial], None]:
    """Return a fault that sends a signal to a process with a role, and after some seconds lets it go on.

    Of several, it is the one with the most children, such as the agent whose cases run.
    """

    def do(trial: Trial) -> None:
        machine = trial.lab.machines["s" if role == "scheduler" else "m1"]
        found = machine.find(role)
        if not found:
            raise NotPossibleError(f"no {role} runs on {machine.name}")
        parents = Counter(map(parent, machine.processes()))
        chosen = max(found, key=lambda pid: parents[pid])
        os.kill(chosen, number)
        if seconds:
            time.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen, signal.SIGCONT)

    return do


def _kill_hosts(times: int) -> Callable[[Trial], None]:
    """Return a fault that kills the hosts on all machines, and those that are started after them."""

    def do(trial: Trial) -> None:
        for number in range(times):
            if number and not trial.until_busy():
                raise NotPossibleError("it was not busy again")
            for machine in trial.lab.machines.values():
                for pid in machine.find("host"):
                    os.kill(pid, signal.SIGKILL)

    return do


def _machine_freezes(seconds: float) -> Callable[[Trial], None]:
    """Return a fault that stops all processes of a machine for some seconds."""

    def do(trial: Trial) -> None:
        _stop(list(trial.lab.machines["m1"].processes()), seconds)

    return do


def _stop(pids: Sequence[int], seconds: float) -> None:
    """Stop processes for some seconds."""
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(seconds if number == signal.SIGSTOP else 0)


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


def _cut(seconds: float, *names: str) -> Callable[[Trial], None]:
    """Return a fault that cuts the links of machines, for some seconds or (0) for good."""

    def do(trial: Trial) -> None:
        machines = [trial.lab.machines[name] for name in names or ("m1",) if name in trial.lab.machines]
        for machine in machines:
            trial.lab.cut(machine)
        if seconds:
            time.sleep(seconds)
            for machine in machines:
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


def _vanish(trial: Trial) -> None:
    """Cut all links and kill the workbench, as if the user's machine was switched off."""
    _cut(0.0, "m1", "m2")(trial)
    _kill_workbench(trial)


def _sleep(seconds: float, *, every: bool) -> Callable[[Trial], None]:
    """Return a fault that stops the workbench, or all processes on the user's machine."""

    def do(trial: Trial) -> None:
        assert trial.process is not None
        _stop([*trial.lab.users_processes()] if every else [trial.process.pid], seconds)

    return do


def _second_machine_joins(trial: Trial) -> None:
    trial.lab.start("m2")


def _remove_second(trial: Trial) -> None:
    if "m2" in trial.lab.machines:
        trial.lab.stop(trial.lab.machines["m2"])


def _another_user(trial: Trial) -> None:
    """Do the same run a second time, from another project and home, and compare it as well."""
    other = _trial(trial.lab, "other", trial.sizes, trial.words)
    other.user = "other-home"
    other.start("--fresh")
    code = other.wait()
    wrong = list(_wrong(other, code, _reference(trial.lab, trial.sizes), FAULTS["two-users"]))
    if wrong:
        raise AssertionError("; ".join(f"the other user: {one}" for one in wrong))


_KILLED = ("crashed",)
_OVER = ("no_place", "attempt_lost")
FAULTS = {
    "none": Fault(_nothing, loses=False),
    "kill-case": Fault(_signalled("case", signal.SIGKILL), errors=_KILLED, loses=False),
    "kill-agent": Fault(_signalled("agent", signal.SIGKILL), errors=_KILLED, loses=False),
    "kill-host": Fault(_signalled("host", signal.SIGKILL), loses=True),
    "kill-hosts": Fault(_kill_hosts(1), loses=True),
    "kill-hosts-twice": Fault(_kill_hosts(2), errors=_KILLED, loses=True),  # Those that ran alone then.
    "kill-connection": Fault(_signalled("connection", signal.SIGKILL), ("ssh",), loses=True),
    "kill-worker": Fault(_signalled("worker", signal.SIGKILL), ("dask",), loses=True),
    "kill-nanny": Fault(_signalled("nanny", signal.SIGKILL), ("dask",)),
    "kill-scheduler": Fault(_signalled("scheduler", signal.SIGKILL), ("dask",), errors=_OVER),
    "kill-machine": Fault(_machine_dies, loses=True),
    "full-disk": Fault(_nothing, before=_fill),
    "disk-fills": Fault(_fill),
    "late-machine": Fault(_second_machine_joins, ("dask",), longer=True, before=_remove_second, loses=False),
    "two-users": Fault(_another_user, longer=True, loses=False),
    "ctrl-c": Fault(_interrupt(0.0), resumes=True),
    "ctrl-c-twice": Fault(_interrupt(0.0, 0.3), resumes=True),
    "kill-workbench": Fault(_kill_workbench, resumes=True),
    "vanish": Fault(_vanish, resumes=True),
    "cut-5s": Fault(_cut(5.0), loses=False),
    "cut": Fault(_cut(0.0), loses=True),
    "cut-all-5s": Fault(_cut(5.0, "s", "m1", "m2"), loses=False),
    "cut-all": Fault(_cut(0.0, "s", "m1", "m2"), errors=_OVER),
    "stop-case": Fault(_signalled("case", signal.SIGSTOP, _STOPPED), errors=("timeout",), loses=False),
    "stop-agent": Fault(_signalled("agent", signal.SIGSTOP, _STOPPED)),
    "stop-host": Fault(_signalled("host", signal.SIGSTOP, _STOPPED), loses=True),
    "stop-connection": Fault(_signalled("connection", signal.SIGSTOP, _STOPPED), ("ssh",), loses=True),
    "stop-worker": Fault(_signalled("worker", signal.SIGSTOP, _STOPPED), ("dask",), loses=True),
    "stop-nanny": Fault(_signalled("nanny", signal.SIGSTOP, _STOPPED), ("dask",), loses=False),
    "stop-scheduler": Fault(_signalled("scheduler", signal.SIGSTOP, _STOPPED), ("dask",)),
    "stop-machine": Fault(_machine_freezes(_STOPPED), loses=True),
    "nap-host": Fault(_signalled("host", signal.SIGSTOP, _NAP), loses=False),
    "nap-machine": Fault(_machine_freezes(_NAP), loses=False),
    "kill-host-early": Fault(_nothing, before=_early(_signalled("host", signal.SIGKILL))),
    "cut-5s-early": Fault(_nothing, before=_early(_cut(5.0))),
    "cut-early": Fault(_nothing, before=_early(_cut(0.0))),
    "disk-fills-early": Fault(_nothing, before=_early(_fill)),
    "kill-carrier": Fault(_kill_carriers),
    "stop-workbench": Fault(_sleep(_STOPPED + 6, every=False), loses=True),
    "stop-user": Fault(_sleep(_STOPPED + 6, every=True), loses=True),
    "nap-workbench": Fault(_sleep(_NAP, every=False), loses=False),
    "nap-user": Fault(_sleep(_NAP, every=True), loses=False),
}


def main(words: Sequence[str]) -> int:
    """Inject faults, print a line for each, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.machines faults")
    parser.add_argument("names", nargs="*", metavar="FAULT", choices=[*FAULTS, []], help=", ".join(FAULTS))
    parser.add_argument("--place", choices=("ssh", "dask"), default="ssh")
    parser.add_argument("--agents", choices=_AGENTS, default="both", help="whose cases run; default: both")
    parser.add_argument("--sshd", type=Path, help="OpenSSH's server (default: on the PATH or in /usr/sbin)")
    parser.add_argument("--python", type=Path, action="append", help="Python of a machine, with google-adk and Dask")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the machines, with logs")
    options = parser.parse_args(words)
    found = options.sshd or shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    sshd = Path(found).absolute() if found else None
    pythons = [path.absolute() for path in options.python or [Path(sys.executable)]]
    names = [name for name in options.names or FAULTS if options.place in FAULTS[name].places]
    bad = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # The machines are removed.
    folder = Path(tempfile.mkdtemp(prefix="machines-", dir="/var/tmp"))  # Machines have a /tmp of their own.
    try:
        require(options.place, sshd, pythons)
        with Lab(folder, options.place, pythons, sshd) as lab:
            for name in names:
                bad += _inject(lab, name, options.agents)
    except NotPossibleError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


def _inject(lab: Lab, name: str, agents: str) -> bool:
    """Run with a fault, print what came of it, and return whether anything was wrong."""
    fault = FAULTS[name]
    _bring_up(lab)
    desk, clerk = _AGENTS[agents]
    factor = _MORE if fault.longer else 1
    sizes = (desk * factor, clerk * factor, _TURN)
    reference = _reference(lab, sizes)
    words = ("--on", lab.word("m1", "m2"), "--remote-python", str(lab.python), "--insecure-place")
    trial = _trial(lab, "project", sizes, words)
    began = time.monotonic()
    wrong = _break(trial, fault)
    code = first_code = trial.wait()
    seconds = (trial.ended or time.monotonic()) - began
    wrong += [] if trial.happened else ["the fault did not happen"]
    gone, left = _left(lab)  # What runs behind a cut ends without being told.
    wrong += left
    cut = [machine for machine in lab.machines.values() if machine.is_cut]
    for machine in cut:
        lab.mend(machine)
    if cut:
        wrong += _left(lab)[1]
    _remove_fillers(lab)
    if fault.resumes:
        _bring_up(lab)
        trial.start()
        code = trial.wait()
        wrong += _left(lab)[1]
    wrong += _wrong(trial, code, reference, fault)
    files = {machine.name: machine.files() for machine in lab.machines.values()}
    wrong += [f"{each} has {of['temporary']} temporary files" for each, of in files.items() if of["temporary"]]
    wrong += [f"a temporary file here: {path}" for path in lab.temporary.iterdir()]
    found = trial.outcomes()
    counts = Counter(ends[-1].status if ends else "none" for ends in found.values())
    whys = Counter(f"{ends[-1].kind}: {ends[-1].why}" for ends in found.values() if ends and ends[-1].why)
    ends = [end for each in found.values() for end in each]
    lost = sum(end.lost - end.waited for end in ends)
    most = max((end.attempt - end.waited for end in ends), default=0)
    if fault.loses is not None and fault.loses != bool(lost):
        wrong.append(f"{lost} attempts were lost")
    reused = sum(len(end.answers) > 1 for end in ends)
    print(
        f"{lab.place:4} {agents:5} {name:16} {seconds:5.1f} s, gone after {gone:4.1f} s, exit code {first_code}, "
        f"{dict(counts)}, {lost} attempts lost, at most {most} of a case, {reused} with answers of earlier ones, "
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


def _wrong(trial: Trial, code: int | None, reference: dict[str, str], fault: Fault) -> Iterator[str]:
    """Return what is wrong with the verdicts of a run."""
    if code is None:
        yield f"it did not end within {LONGEST:g} s"
    yield from wrong_verdicts(trial.outcomes(), reference, fault.errors)
    for journal in trial.journals():
        yield from (f"{case} shows {len(of)} attempts" for case, of in shown_marks(journal).items() if len(of) > 1)


def wrong_verdicts(
    found: dict[str, list[Outcome]], reference: dict[str, str], errors: Collection[str] = ()
) -> Iterator[str]:
    """Return what is wrong with the ends of cases. `errors` are the kinds of errors that are right."""
    if found.keys() != reference.keys():
        yield f"{len(found)} of {len(reference)} cases"
    for case, ends in found.items():
        final = [one for one in ends if one.status != "cancelled"]
        if len(final) != 1:
            yield f"{case} has {len(final)} verdicts ({[one.status for one in ends]})"
            continue
        if len(final[0].marks) > 1:
            yield f"{case} mixes {len(final[0].marks)} attempts"
        ran = final[0].attempt - final[0].waited
        if final[0].attempt not in (final[0].lost, final[0].lost + 1) or ran > _ATTEMPTS:
            yield f"{case} ends with attempt {final[0].attempt} after {final[0].lost} lost ones"
        if final[0].status == "error":
            if final[0].kind not in errors or not final[0].why:
                yield f"{case} is an error: {final[0].kind}: {final[0].why}"
        elif final[0].told != reference.get(case):
            yield f"{case}: {final[0].told} instead of {reference.get(case)}"


def _left(lab: Lab) -> tuple[float, list[str]]:
    """Return the seconds until nothing of a run was left, and the processes that still are when a minute is over."""
    began = time.monotonic()
    while True:
        there = {machine.name: _of_run(machine) for machine in lab.machines.values()}
        here = lab.users_processes()
        seconds = time.monotonic() - began
        if seconds > GONE_WITHIN or (not here and not any(there.values())):
            break
        time.sleep(0.2)
    left = [f"left on {name}: {pid} {words[:150]}" for name, of in there.items() for pid, words in of.items()]
    return seconds, [*left, *(f"left here: {pid} {words}" for pid, words in here.items())]


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
    return Trial(lab, project, tuple(words), lab.folder / f"{name}-{time.time():.0f}.log", sizes)


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

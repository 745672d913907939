"""Machines for tests: network namespaces on a bridge, each with its own processes, home, clock, host name and Python.

They need root. A machine's home and /tmp are small file systems in memory. It does not see the user's files. The
user's machine is a network namespace as well, so nothing of this computer's network is changed.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts import end

INIT = """
import json, os, subprocess, sys, time
for command in json.loads(sys.argv[1]):
    log = open(command["log"], "ab")
    subprocess.Popen(command["words"], env=command["env"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                     start_new_session=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.1)
"""
"""The first process of a machine: it starts the services and collects the dead, as on any machine."""
_SERVICES = re.compile(r"sshd: .*\[listener\]|\bdask\b|distributed|multiprocessing")
"""Command lines of processes that a machine has without us."""
_HOST = re.compile(r"agent-workbench(-\d+)?/hosts/")
"""In the command line of a host, whose program is in /tmp if the home was full."""
_SIZE = "48m"
_FOREIGN = {"LC_ALL": "C", "TZ": "Pacific/Auckland"}
PORT = 8786


class NotPossibleError(Exception):
    """What is needed here and is not there."""


@dataclass
class Machine:
    """A running machine. `pid` is its first process, as seen from here."""

    name: str
    address: str
    folder: Path
    space: str
    pid: int = 0
    is_cut: bool = False

    @property
    def home(self) -> Path:
        """Its home folder, as seen from here."""
        return Path(f"/proc/{self.pid}/root{self.folder}/home")

    @property
    def temporary(self) -> Path:
        """Its folder for temporary files, as seen from here."""
        return Path(f"/proc/{self.pid}/root/tmp")

    def processes(self) -> dict[int, str]:
        """Return the command lines of all its processes but the first one, by their ids here."""
        space = Path(f"/proc/{self.pid}/ns/pid").readlink()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "ns/pid").readlink() == space and int(entry.name) != self.pid:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                    state = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
                    if state not in "ZX":
                        found[int(entry.name)] = words
        return found

    def ours(self) -> dict[int, str]:
        """Return the processes that a run has started there."""
        return {pid: words for pid, words in self.processes().items() if not _SERVICES.search(words)}

    def find(self, role: str) -> list[int]:
        """Return the processes with a role: `host`, `agent`, `case`, `connection`, `worker`, `nanny`, `scheduler`."""
        every = self.processes()
        return [pid for pid, words in every.items() if self._role(pid, words, every) == role]

    def _role(self, pid: int, words: str, every: Mapping[int, str]) -> str:
        if "agents/worker" in words:
            level, above = 0, parent(pid)
            while every.get(above) == words:
                level, above = level + 1, parent(above)
            return ("zygote", "agent", "case")[min(level, 2)]
        if _HOST.search(words) and ("--stdio" in words or "--control" in words):
            return "host"
        if re.match(r"sshd: \S+@notty", words):
            return "connection"
        if "dask" in words and "scheduler" in words:
            return "scheduler"
        if "dask" in words and " worker " in words:
            return "nanny"
        if "spawn_main" in words and "dask" in every.get(parent(pid), ""):
            return "worker"
        return ""

    def files(self) -> dict[str, int]:
        """Return the numbers of files in its folder for temporary files and in its home, and the bytes of both."""
        temporary = [path for path in self.temporary.rglob("*") if "dask" not in str(path)]
        own = [path for path in self.home.rglob("*") if path.is_file() and not path.is_symlink()]
        size = sum(path.stat().st_size for path in own)
        return {"temporary": len(temporary), "home": len(own), "bytes": size}


def parent(pid: int) -> int:
    """Return the parent of a process, or 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


class Lab:
    """A user's machine and others. `pythons` are interpreters of agents, one machine after the other gets the next.

    On each machine, `python` is the path of its interpreter. With `is_foreign`, other machines have the locale C, and
    another time zone than the user's.
    """

    def __init__(
        self, folder: Path, place: str, pythons: Sequence[Path], sshd: Path | None, is_foreign: bool = False
    ) -> None:
        self.folder = folder
        self.place = place
        self._pythons = pythons
        self._sshd = sshd
        self._is_foreign = is_foreign
        self._name = f"aw{os.getpid()}{place[0]}"
        self.user = folder / "user"
        self.temporary = self.user / "tmp"
        """The user's folder for temporary files."""
        self.python = folder / "python" / "bin" / "python"
        self.machines: dict[str, Machine] = {}
        self._numbers = itertools.count(1)
        """Each machine gets an address that none had before."""

    def __enter__(self) -> "Lab":
        for path in (self.user / "home", self.temporary, self.folder / "python", self.folder / "sshd"):
            path.mkdir(parents=True)
        run("ip", "netns", "add", self._name)
        self._here("link", "set", "lo", "up")
        self._here("link", "add", "bridge", "type", "bridge")
        self._here("addr", "add", "10.77.0.1/24", "dev", "bridge")
        self._here("link", "set", "bridge", "up")
        if self.place == "ssh":
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.user / "key"))
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "hostkey"))
        else:
            self.start("s")
        return self

    def __exit__(self, *_: object) -> None:
        end([*self.users_processes()])
        for machine in tuple(self.machines.values()):
            self.stop(machine)
        subprocess.run(["ip", "netns", "del", self._name], check=False)

    def word(self, *names: str) -> str:
        """Return what `--on` gets for these machines."""
        if self.place == "ssh":
            return "ssh:" + ",".join(names)
        return f"dask://{self.machines['s'].address}:{PORT}"

    def start(self, name: str) -> Machine:
        """Start a machine. With Dask, `s` has the scheduler, and all others have a worker."""
        number = next(self._numbers)
        machine = Machine(name, f"10.77.0.{10 + number}", self.folder / name, f"{self._name}{name}")
        for part in ("home", "log"):
            (machine.folder / part).mkdir(parents=True, exist_ok=True)
        run("ip", "netns", "add", machine.space)
        self._here("link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", machine.space)
        self._here("link", "set", f"v{name}", "master", "bridge", "up")
        for words in (("link", "set", "lo", "up"), ("addr", "add", f"{machine.address}/24", "dev", "eth0")):
            run("ip", "-n", machine.space, *words)
        run("ip", "-n", machine.space, "link", "set", "eth0", "up")
        python = self._pythons[number % len(self._pythons)]
        (machine.folder / "passwd").write_text(
            f"root:x:0:0:root:{machine.folder}/home:/bin/sh\nsshd:x:74:74::/:/bin/false\n"
        )
        services = self._services(machine)
        setup = [
            "mount --make-rprivate /",
            f"hostname {name}",
            f"mount -t tmpfs none {self.user}",
            f"mount -t tmpfs -o size={_SIZE} none {machine.folder}/home",
            f"mount --bind {machine.folder}/passwd /etc/passwd",
            "mount -t tmpfs none /run",
            "mkdir -m 755 /run/sshd",
            f"mount --bind {python.parent.parent} {self.folder}/python",
            *([f"mount --bind {self._sshd.parent.parent} {self.folder}/sshd"] if self._sshd else []),
            f"mount -t tmpfs -o size={_SIZE},mode=1777 none /tmp",
            "mount -t tmpfs -o mode=1777 none /dev/shm",
            "cd /",
            f'exec {self.python} -c "$1" "$2"',
        ]
        offset = str(100_000 * number)
        command = ["ip", "netns", "exec", machine.space, "unshare", "-T", "--monotonic", offset, "--boottime", offset]
        command += ["-p", "-m", "-u", "-f", "--mount-proc", "sh", "-ec", "\n".join(setup), "sh", INIT]
        with (machine.folder / "log" / "start").open("wb") as log:
            starter = subprocess.Popen([*command, json.dumps(services)], stderr=log, start_new_session=True)
        try:
            machine.pid = _first_process(starter)
        except NotPossibleError as error:
            raise NotPossibleError(f"{error}: {Path(log.name).read_text('utf-8', 'replace')}") from None
        self.machines[name] = machine
        self._until_ready(machine)
        return machine

    def stop(self, machine: Machine) -> None:
        """Switch a machine off at once."""
        self.machines.pop(machine.name, None)
        with contextlib.suppress(ProcessLookupError):
            os.kill(machine.pid, signal.SIGKILL)
        while Path(f"/proc/{machine.pid}").exists() and not _is_zombie(machine.pid):
            time.sleep(0.02)
        subprocess.run(["ip", "netns", "del", machine.space], check=False)

    def cut(self, machine: Machine) -> None:
        """Cut the link of a machine to all others."""
        machine.is_cut = True
        self._here("link", "set", f"v{machine.name}", "down")

    def mend(self, machine: Machine) -> None:
        """Restore the link of a machine."""
        machine.is_cut = False
        self._here("link", "set", f"v{machine.name}", "up")

    def workbench(
        self, *words: str, environment: Mapping[str, str], log: Path, home: str = "home", folder: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start the workbench on the user's machine, in `folder`, for the user with this home."""
        (at := self.user / home).mkdir(exist_ok=True)
        own = {"HOME": str(at), "XDG_CACHE_HOME": str(at / ".cache"), "TMPDIR": str(self.temporary)}
        values = {**environment, **own}
        if self.place == "ssh":
            values["AGENT_WORKBENCH_SSH"] = str(self._ssh_program())
        command = ["ip", "netns", "exec", self._name, sys.executable, "-m", "workbench", *words]
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                env=values,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def users_processes(self) -> dict[int, list[str]]:
        """Return the words of the command lines of all processes on the user's machine."""
        done = subprocess.run(["ip", "netns", "pids", self._name], capture_output=True, text=True, check=True)
        found = {}
        for pid in map(int, done.stdout.split()):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                if not _is_zombie(pid):
                    found[pid] = words
        return found

    def _here(self, *words: str) -> None:
        run("ip", "-n", self._name, *words)

    def _ssh_program(self) -> Path:
        """Write a program that runs ssh with the configuration of this lab, which has all machines by name."""
        known, config, program = (self.user / name for name in ("known_hosts", "config", "ssh"))
        key = (self.folder / "hostkey.pub").read_text()
        known.write_text("".join(f"{one.address} {key}" for one in self.machines.values()))
        common = f" IdentityFile {self.user}/key\n IdentitiesOnly yes\n UserKnownHostsFile {known}\n"
        hosts = (f"Host {one.name}\n HostName {one.address}\n{common}" for one in self.machines.values())
        config.write_text("".join(hosts))
        program.write_text(f'#!/bin/sh\nexec ssh -F {config} "$@"\n')
        program.chmod(0o755)
        return program

    def _services(self, machine: Machine) -> list[dict[str, object]]:
        values = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": f"{machine.folder}/home"}
        values |= _FOREIGN if self._is_foreign else {"LANG": "C.UTF-8"}
        if self.place == "ssh":
            assert self._sshd is not None
            config = machine.folder / "sshd_config"
            variables = " ".join(f"{name}={value}" for name, value in _FOREIGN.items())
            config.write_text(
                f"HostKey {self.folder}/hostkey\nAuthorizedKeysFile {machine.folder}/authorized\nStrictModes no\n"
                f"UsePAM no\nPermitRootLogin yes\nPidFile none\n"
                "MaxStartups 100\n" + (f"SetEnv {variables}\n" if self._is_foreign else "")
            )
            (machine.folder / "authorized").write_text((self.user / "key.pub").read_text())
            beside = self._sshd.parent.parent.glob("lib/*-linux-gnu")
            values["LD_LIBRARY_PATH"] = ":".join(f"{self.folder}/sshd/lib/{path.name}" for path in beside)
            words = [f"{self.folder}/sshd/sbin/sshd", "-D", "-e", "-f", str(config)]
        elif machine.name == "s":
            words = [str(self.python), "-m", "dask", "scheduler", "--host", machine.address, "--port", str(PORT)]
            words += ["--no-dashboard"]
        else:
            words = [str(self.python), "-m", "dask", "worker", f"tcp://{self.machines['s'].address}:{PORT}"]
            words += ["--host", machine.address, "--no-dashboard", "--nthreads", "4", "--local-directory"]
            words += ["/tmp/dask", "--name", machine.name]
        return [{"words": words, "env": values, "log": f"{machine.folder}/log/service"}]

    def _until_ready(self, machine: Machine) -> None:
        log = machine.folder / "log" / "service"
        sign = {"ssh": "listening on", "dask": "Registered to"}[self.place]
        sign = "Scheduler at:" if machine.name == "s" else sign
        deadline = time.monotonic() + 60
        while not (log.exists() and sign in log.read_text("utf-8", "replace")):
            if time.monotonic() > deadline:
                raise NotPossibleError(f"{machine.name} did not start:\n{log.read_text() if log.exists() else ''}")
            time.sleep(0.05)


def run(*words: str) -> None:
    """Run a command.

    Raises:
        NotPossibleError: it failed.
    """
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise NotPossibleError(f"{' '.join(words)}: {done.stderr.strip()}")


def require(place: str, sshd: Path | None, pythons: Sequence[Path]) -> None:
    """Find out what is missing for a lab.

    Raises:
        NotPossibleError: something is. The text names it.
    """
    if os.geteuid() != 0:
        raise NotPossibleError("namespaces need root")
    programs = ["ip", "unshare", "mount", "hostname", *(["ssh", "ssh-keygen"] if place == "ssh" else [])]
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise NotPossibleError(f"missing: {', '.join(missing)}")
    if place == "ssh" and (sshd is None or not sshd.exists()):
        raise NotPossibleError("sshd is missing: install openssh-server, or name it with --sshd")
    modules = ["google.adk", *(["distributed"] if place == "dask" else [])]
    for python in {Path(sys.executable), *pythons}:
        code = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
        if subprocess.run([python, "-c", code], capture_output=True).returncode:
            raise NotPossibleError(f"{python} lacks one of these packages: {', '.join(modules)}")


def _first_process(starter: "subprocess.Popen[bytes]") -> int:
    """Return the first process in the namespace that `starter` makes."""
    for _ in range(500):
        for pid in _children(starter.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"import json, os" in words and not words.startswith((b"sh\0", b"unshare", b"ip\0")):
                return pid
        if starter.poll() is not None:
            break
        time.sleep(0.02)
    raise NotPossibleError("a namespace cannot be made here")


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(word)


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] in "ZX"
    return True

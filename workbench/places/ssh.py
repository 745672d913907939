"""Host processes on machines that OpenSSH reaches, one connection each.

The user's own ssh configuration applies. Nothing is asked for: a host whose key is unknown, or that wants a password,
is an error that names the command to run once.
"""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from workbench.agents.child_process import how_it_ended
from workbench.agents.orphans import kill_marked, new_mark
from workbench.agents.output import OutputPipe
from workbench.agents.worker.processes import MARK
from workbench.places.place import NotStartedError, OnFrame
from workbench.places.remote.link import End, HostLink
from workbench.places.remote.program import BOOT, HostProgram, land
from workbench.places.remote.stream_link import NoLink, StreamLink, connect

PROGRAM: Final = "AGENT_WORKBENCH_SSH"
"""Environment variable that names another program than `ssh`."""
_OPTIONS: Final = (
    *("-T", "-a", "-x"),
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=15"),
    *("-o", "ServerAliveInterval=10"),
    *("-o", "ServerAliveCountMax=5"),
    # An existing master is used, but none stays behind. Forwardings and commands of the user's file are not for us.
    *("-o", "ControlMaster=no"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "RemoteCommand=none"),
)
_HOST: Final = re.compile(r"(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9_:][\w.:%-]*", re.ASCII)
_PYTHONS: Final = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")
_NO_PYTHON: Final = 97
_FIND_PYTHON: Final = (
    'boot=$1; shift; found=; for p in "$@"; do case $p in "~/"*) p=$HOME/${p#??};; esac; '
    'v=$("$p" -I -S -c "import sys; print(*sys.version_info[:2], sep=chr(46))" 2>/dev/null </dev/null) || continue; '
    'case $v in 3.1[1-9]|3.[2-9][0-9]|[4-9].*) exec "$p" -I -S -c "$boot";; esac; found="$found, $p is $v"; done; '
    f'echo "${{found#, }}" >&2; exit {_NO_PYTHON}'
)
"""A shell script that replaces itself by the first Python that is new enough. It has no single quotes and no `!`."""
_ENDS_WITHIN: Final = 5.0
"""Seconds that ssh has to end after its connection was closed."""
_STDERR_KEPT: Final = 8000
_FAILURES: Final = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key has changed",
        "ask why, then run `ssh {host}`, which says how to remove the old key",
    ),
    ("Host key verification failed", "its host key is not known", "run `ssh {host}` once and check the key"),
    ("Permission denied", "it refused the keys", "run `ssh {host}`; it must work without a password"),
    ("Too many authentication failures", "it refused the keys", "run `ssh {host}`; it must work without a password"),
    ("Could not resolve hostname", "there is no such host", "check the name, or add it to ~/.ssh/config"),
    ("timed out", "it does not answer", "run `ssh {host}`"),
    ("Connection refused", "nothing answers there", "run `ssh {host}`"),
    ("No route to host", "it cannot be reached", "run `ssh {host}`"),
)
_CONNECTION: Final = re.compile(
    r"closed by remote host|not responding|[Bb]roken pipe|reset by peer|timed out|disconnect|[Cc]onnection|kex_"
)
"""What ssh prints about a connection that it has lost."""


class InvalidHostError(ValueError):
    """A host name that must not be handed to ssh."""


def host_names(text: str) -> list[str]:
    """Return the host names in a comma-separated list. The names in the user's ssh configuration are such names too.

    Raises:
        InvalidHostError: a name is empty, doubled, or not a host name (such as `-oProxyCommand=…`).
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not _HOST.fullmatch(name):
            raise InvalidHostError(f"{name!r} is not a host name" if name else "a host name is missing")
        if names.count(name) > 1:
            raise InvalidHostError(f"{name} is named twice; use slots to run more cases there")
    return names


class SshHosts:
    """The hosts of `ssh:NAME,NAME`."""

    def __init__(self, names: Sequence[str], program: HostProgram, *, remote_python: str | None = None) -> None:
        self._names = names
        self._program = program
        self._pythons = [*([remote_python] if remote_python else []), *_PYTHONS]
        self._links: list[StreamLink] = []
        self._ssh: list[_Ssh] = []

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        """Connect to all hosts at the same time, and call `on_link` for each as soon as it is there.

        A host that cannot be used gets a link that has ended.

        Raises:
            NotStartedError: no host can be used.
        """
        failures = [why for why in await asyncio.gather(*(self._open(name, on_link) for name in self._names)) if why]
        if len(failures) == len(self._names):
            raise NotStartedError("\n".join(failures))

    async def close(self) -> None:
        """Close all connections, and end what runs at their other ends."""
        await asyncio.gather(*(link.close() for link in self._links))
        await asyncio.gather(*(ssh.end() for ssh in self._ssh))

    async def _open(self, name: str, on_link: Callable[[HostLink], OnFrame]) -> str:
        """Connect to a host, and return why it cannot be used, or ""."""
        try:
            ssh = _Ssh(name, self._pythons)
        except OSError as error:
            why = f"{name}: ssh cannot be started: {error.strerror or error}"
        else:
            self._ssh.append(ssh)
            why = await ssh.start_host(self._program)
        if why:
            on_link(NoLink(name, why))
        else:
            self._links.append(connect(StreamLink(name, ssh.socket, ssh.why_it_ended), on_link))
        return why


class _Ssh:
    """One ssh process. `socket` is its standard input and output.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, host: str, pythons: Sequence[str]) -> None:
        self.host = host
        self._pythons = pythons
        self._mark = new_mark()
        self._printed = ""
        self._exit: asyncio.Task[int] | None = None
        self.socket, childs = socket.socketpair()
        errors, childs_errors = os.pipe()
        command = shlex.join(["sh", "-c", _FIND_PYTHON, "sh", BOOT, *pythons])
        try:
            self._process = subprocess.Popen(
                [os.environ.get(PROGRAM) or "ssh", *_OPTIONS, "--", host, command],
                stdin=childs.fileno(),
                stdout=childs.fileno(),
                stderr=childs_errors,
                env={**os.environ, MARK: self._mark},
                start_new_session=True,  # Ctrl+c is for us: we end the hosts in order.
            )
        except OSError:
            self.socket.close()
            os.close(errors)
            raise
        finally:
            childs.close()
            os.close(childs_errors)
        self.socket.setblocking(False)
        self._errors = OutputPipe(errors, self._keep, lambda count: None)

    async def start_host(self, program: HostProgram) -> str:
        """Make the program at the other end the host. Return why it failed, or ""."""
        try:
            wrong = await land(self.socket, program)
        except asyncio.CancelledError:
            self.socket.close()
            await self.end()
            raise
        if wrong is None:
            return ""
        self.socket.close()
        return (await self.why_it_ended(wrong)).why

    async def why_it_ended(self, reason: str) -> End:
        """Wait until ssh has ended, or kill it, and return why. `reason` is what is known already, or ""."""
        try:
            code = await self._ended(_ENDS_WITHIN)
        except TimeoutError:
            await self.end()
            code = 0
        end = End(reason) if reason else self._why(code)
        return End(f"{self.host}: {end.why}", end.died)

    async def end(self) -> None:
        """Kill ssh if it still runs."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._ended(None)

    async def _ended(self, within: float | None) -> int:
        """Return the exit code once ssh has ended and what it started is gone.

        Raises:
            TimeoutError: it still runs.
        """
        if self._exit is None:
            self._exit = asyncio.create_task(self._reap())
        async with asyncio.timeout(within):
            return await asyncio.shield(self._exit)

    async def _reap(self) -> int:
        code = await asyncio.to_thread(self._process.wait)
        # A proxy command of the user's configuration may outlive ssh.
        await asyncio.to_thread(kill_marked, self._mark)
        self._errors.finish()
        return code

    def _keep(self, text: str) -> None:
        self._printed = (self._printed + text)[-_STDERR_KEPT:]

    def _why(self, code: int) -> End:
        printed = self._printed.strip()
        last = printed.splitlines()[-1].strip() if printed else ""
        if code == _NO_PYTHON:
            found = last or f"there is none of {', '.join(self._pythons)}"
            return End(f"there is no Python 3.11 or newer ({found}); name one with --remote-python")
        for sign, what, remedy in _FAILURES:
            if code == 255 and sign in printed:
                return End(f"{what}: {last} ({remedy.format(host=self.host)})")
        if code == 255 and not _CONNECTION.search(printed):
            return End("the host was killed", died=True)  # ssh does not know the signal, and says nothing.
        died = code > 0 and code != 255
        what = f"the host {how_it_ended(code)}" if died else "the ssh connection was closed"
        return End(f"{what}: {last}" if last else what, died)

"""The worker's command line (which only the workbench uses), the zygote, and the agent process.

The zygote imports everything in advance, and agent processes are forks of it. On request it forks a spare process in
advance, which runs a dummy case. The memory that a case writes to is then already copied, so the agent need not wait
for a fork and thousands of page copies. An agent process has imported one version of one agent. Its cases are forks of
this process, or tasks in it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import collect_rarely, faults, frames, processes, project_files
from .cases import SharedCases, run_forked
from .driver import Loaded, UnusableError
from .drivers import NoAgentError, driver_of, load
from .frames import Channel
from .functions import serve_functions
from .missing import installed_adk
from .processes import ForkServer, capture, leave
from .serving import route_output

_CASES = 4
"""Number of dummy cases run in advance.

The first one triggers lazy imports. The others are for functions called a few times in each case: Python specialises
them at about the eighth call. Without that, each fork would run the slower code and write to more of its memory. More
dummy cases would cost a short run more than they save.
"""
Spec = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    """Run the zygote, a solo worker or the user's functions until the parent disconnects. Return the exit status."""
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("mode", choices=("zygote", "solo", "functions"))
    parser.add_argument("--control", type=int, required=True, help="the worker's end of a socket pair")
    parser.add_argument("--lifeline", type=int, required=True, help="a pipe that ends when the workbench does")
    parser.add_argument(
        "--warm", choices=("adk",), help="import this framework before the agent; zygote: also run dummy cases"
    )
    parser.add_argument("--folder", help="functions: the agent's folder")
    parser.add_argument("--root", help="functions: the project's folder")
    options = parser.parse_args(arguments)
    collect_rarely()
    os.set_inheritable(options.control, False)
    os.set_inheritable(options.lifeline, False)
    if options.mode == "functions":
        serve_functions(options.control, options.lifeline, options.folder, options.root)
    channel = Channel(socket.socket(fileno=options.control))
    if options.mode == "zygote":
        Zygote(channel, options.lifeline).run(options.warm == "adk")
    else:
        if hasattr(os, "fork"):
            processes.shield_parent(options.control)
        run_solo(channel, options.lifeline, options.warm == "adk")
    return 0


class Zygote:
    """The process that imports the framework and forks an agent process for each `agent` command."""

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._forks: ForkServer
        self._spare: tuple[int, socket.socket] | None = None
        """Process ID of the spare process, and the socket to it, or None."""

    def run(self, warm: bool) -> None:
        """Run until the workbench disconnects. Then kill all descendants."""
        # All objects created here stay in every fork, so the collector should neither visit them nor touch their
        # memory pages. It is off until then, because it would free only about three hundred objects.
        gc.disable()
        if warm:
            warm_up(_CASES)
        why = processes.cannot_fork() or processes.threads_left()
        if not why:
            processes.adopt_orphans()
        gc.freeze()
        gc.enable()
        self._forks = ForkServer(self._channel, self._lifeline)
        self._forks.report(ready(why))

        def handle(command: dict[str, Any]) -> bool:
            if command["op"] == "spare":
                self._make_spare(warm)
            else:
                self._start_agent(command)
            return True

        self._forks.serve(handle)

    def _start_agent(self, command: dict[str, Any]) -> None:
        fds = self._channel.take_fds(3)
        if not self._give_to_spare(command, fds):
            control, stdout, stderr = fds
            self._forks.fork(command["id"], lambda: self._be_agent(command["spec"], control, stdout, stderr))
        for fd in fds:
            os.close(fd)

    def _make_spare(self, warm: bool) -> None:
        if self._spare is not None:
            return
        own_end, end_of_spare = socket.socketpair()

        def wait_for_task() -> None:
            own_end.close()
            if warm:
                warm_up(1)
            channel = Channel(end_of_spare)
            command = channel.receive()
            if command is not None:
                fds = channel.take_fds(3)
                channel.close()
                self._be_agent(command["spec"], *fds)

        self._spare = self._forks.fork(0, wait_for_task), own_end  # Its number comes with its task.
        end_of_spare.close()

    def _give_to_spare(self, command: dict[str, Any], fds: Sequence[int]) -> bool:
        """Give the command to the spare process. Return False if there is none, or if it has ended."""
        if self._spare is None:
            return False
        (pid, sock), self._spare = self._spare, None
        with sock:
            try:
                frames.send(sock, command, fds)
            except OSError:
                return False
        return self._forks.rename(pid, command["id"])

    def _be_agent(self, spec: dict[str, Any], control: int, stdout: int, stderr: int) -> None:
        if self._spare is not None:
            self._spare[1].close()
        capture(stdout, stderr)
        run_agent(Channel(socket.socket(fileno=control)), self._lifeline, spec)


def warm_up(cases: int) -> None:
    """Import google-adk, if installed, and run dummy cases, which trigger its lazy imports. Errors are only printed."""
    if installed_adk() is None:
        return
    try:
        from .adk_warm import run_dummy_cases  # It imports google-adk.

        run_dummy_cases(cases)
    except Exception as error:
        print(f"warming up google-adk failed: {error!r}", file=sys.stderr)


def run_agent(channel: Channel, lifeline: int, spec: Spec) -> None:
    """Turn this process into the agent's. Report a failed import, or run cases until the workbench disconnects."""
    loaded = _enter(channel, spec)
    if loaded is None:
        return
    why = processes.threads_left()
    gc.freeze()
    forks = ForkServer(channel, lifeline)
    forks.report(_imported(loaded, why))

    def handle(command: Spec) -> bool:
        if command.get("share") or command.get("here"):
            # Put it back for the loop that runs cases in this process.
            channel.pending.appendleft(command)
            return False
        _fork_case(forks, channel, command, loaded)
        return True

    if forks.serve(handle):
        return
    forks.release()
    if channel.pending[0].get("here"):
        # This is the only case. When it ends, the process ends, and the zygote cleans up.
        _be_case(channel.take_fds(3), channel.pending.popleft(), loaded)
    else:
        SharedCases(channel, lifeline, loaded).run()


def run_solo(channel: Channel, lifeline: int, adk: bool) -> None:
    """Run one agent in this process where forking is impossible, then end the process.

    With `adk`, google-adk is imported before the agent.
    """
    if sys.platform == "linux":
        processes.adopt_orphans()
    try:
        _serve_solo(channel, lifeline, adk)
    finally:
        if sys.platform == "linux":
            # On other systems the workbench does this, since it knows this process's group.
            processes.kill_descendants()
        processes.wake_parent()
        leave(0)


def _serve_solo(channel: Channel, lifeline: int, adk: bool) -> None:
    threading.Thread(target=processes.die_at_end_of, args=(lifeline,), daemon=True, name="lifeline").start()
    channel.send(ready("forking is not possible here"))
    command = channel.receive()
    if command is None:
        return
    capture(*channel.take_fds(2))
    loaded = _enter(channel, command["spec"], adk)
    if loaded is None:
        return
    channel.send(_imported(loaded, "forking is not possible here"))
    SharedCases(channel, lifeline, loaded).run()


def _enter(channel: Channel, spec: Spec, adk: bool = False) -> Loaded | None:
    """Turn this process into the agent's: set its environment and folder, and import its modules.

    `adk` says whether to import google-adk first. If the import fails, report this and return None.
    """
    mark = os.environ.get(processes.MARK)
    os.environ.clear()
    os.environ.update(spec["env"])
    if mark is not None:
        os.environ[processes.MARK] = mark
    time.tzset()
    sys.argv = ["agent-workbench"]
    route_output()
    try:
        os.chdir(spec["cwd"])
        project_files.import_from_source(spec["folder"], spec["root"])
        project_files.watch(spec["root"], spec["folder"])
        project_files.on_written(_written_reporter(channel))
        level = os.environ.get("AGENT_WORKBENCH_LOG_LEVEL")
        if level:  # `--log-level`, like `adk eval`: before the agent's modules are imported, to stderr.
            form = "%(asctime)s - %(levelname)s - %(filename)s:%(lineno)d - %(message)s"
            logging.basicConfig(level=level, format=form)
            logging.getLogger("google_adk").setLevel(level)
        if adk:
            # Before the agent, so that toolsets are noticed that connect while it is imported. If google-adk lacks
            # something, the import of the agent tells what.
            with contextlib.suppress(Exception):
                from . import adk_runner  # noqa: F401
        loaded = load(spec)
        # Done once here instead of in each fork.
        driver_of(loaded).prepare(loaded)
        if spec.get("model"):
            driver_of(loaded).use_model(loaded, spec["model"])
    except UnusableError as error:
        fault = error.fault
    except NoAgentError as error:
        fault = faults.fault(
            "import_failed", str(error), "expose an agent, an App or a callable under one of these names"
        )
    except BaseException as error:
        # Importing runs the agent's code, which may even call sys.exit.
        fault = faults.import_fault(error, (spec["folder"], spec["root"]))
    else:
        return loaded
    channel.send({"op": "import_failed", "error": fault, "files": project_files.new_files()})
    return None


def _written_reporter(channel: Channel) -> Callable[[str], None]:
    """Return a function that reports files which this process writes, but not those written by a fork of the agent."""
    own = os.getpid()

    def report(path: str) -> None:
        if os.getpid() == own:
            channel.send({"op": "wrote", "files": [path]})

    return report


def ready(why: str) -> dict[str, Any]:
    """Return a worker's first message: its interpreter, its framework, and any reason why it cannot fork."""
    return {
        "op": "ready",
        "python": platform.python_version(),
        "executable": sys.executable,
        "adk": installed_adk(),
        "can_fork": not why,
        "why": why,
    }


def _imported(loaded: Loaded, why: str) -> dict[str, Any]:
    return {
        "op": "imported",
        "files": project_files.new_files(),
        "folders": project_files.folders(),
        "unseen": project_files.unseen(),
        "framework": loaded.framework,
        "adk": driver_of(loaded).version(),
        "can_fork": not why,
        "why": why,
    }


def _fork_case(forks: ForkServer, channel: Channel, command: dict[str, Any], loaded: Loaded) -> None:
    fds = channel.take_fds(3)
    forks.fork(command["id"], lambda: _be_case(fds, command, loaded))
    for fd in fds:
        os.close(fd)


def _be_case(fds: list[int], command: dict[str, Any], loaded: Loaded) -> None:
    sock = socket.socket(fileno=fds[0])
    capture(fds[1], fds[2])
    environment = command["case"].get("env")
    if environment:
        os.environ.update(environment)
    run_forked(sock, command["case"], loaded)

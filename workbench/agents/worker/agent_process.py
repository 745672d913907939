"""The process that has imported one version of one agent. Its cases are forks of it, or tasks in it."""

from __future__ import annotations

import gc
import os
import platform
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from . import faults, footprint, processes, sources
from .adk_version import installed_adk
from .cases import descriptors_of, refuse, run_forked
from .driver import Loaded, UnusableError
from .drivers import NoAgentError, driver_of
from .frames import Channel
from .loading import load
from .nursery import Nursery, capture, leave
from .output import route_output
from .shared import SharedCases
from .wire import SharedWire

Spec = Dict[str, Any]


def run_agent(channel: Channel, lifeline: int, spec: Spec) -> None:
    """Imports the agent, and runs its cases until the workbench lets go. The process is the agent's from here on."""
    loaded = _enter(channel, spec)
    if loaded is None:
        return
    why = processes.threads_left()
    gc.freeze()
    nursery = Nursery(channel, lifeline)
    nursery.tell(_imported(loaded, why))
    started = False

    def handle(command: Spec) -> bool:
        nonlocal started
        if (command.get("share") or command.get("here")) and not started:
            # Back onto the queue it comes, for those who run cases in this process.
            channel.pending.appendleft(command)
            return False
        started = True
        if command["op"] == "case":  # What follows a case that was refused is dropped.
            _fork_case(nursery, channel, command, loaded)
        return True

    if nursery.serve(handle):
        return
    nursery.release()
    if channel.pending[0].get("here"):
        # The only one there will be: our end is its end, and the zygote sees to that.
        _be_case(channel.take_fds(3), channel.pending.popleft(), loaded)
    else:
        SharedCases(channel, lifeline, loaded).run()


def run_solo(channel: Channel, lifeline: int) -> None:
    """A process of its own for one agent, for where nothing can be forked. Ends the process."""
    if sys.platform == "linux":
        processes.adopt_orphans()
    try:
        _serve_solo(channel, lifeline)
    finally:
        if sys.platform == "linux":
            # Elsewhere the workbench, which knows our group, does this.
            processes.kill_descendants()
        processes.wake_parent()
        leave(0)


def _serve_solo(channel: Channel, lifeline: int) -> None:
    threading.Thread(target=processes.die_at_end_of, args=(lifeline,), daemon=True, name="lifeline").start()
    channel.send(ready("this worker was started by itself"))
    command = channel.receive()
    if command is None:
        return
    capture(*channel.take_fds(2))
    loaded = _enter(channel, command["spec"])
    if loaded is None:
        return
    channel.send(_imported(loaded, "this worker was started by itself"))
    SharedCases(channel, lifeline, loaded).run()


def _enter(channel: Channel, spec: Spec) -> Optional[Loaded]:
    """Becomes the agent's process: its environment, folder and modules. None: the import failed, and that was told."""
    mark = os.environ.get(processes.MARK)
    os.environ.clear()
    os.environ.update(spec["env"])
    if mark is not None:
        os.environ[processes.MARK] = mark
    time.tzset()
    sys.argv = ["agent-workbench"]
    python = faults.interpreter()
    route_output()
    try:
        os.chdir(spec["cwd"])
        sources.import_from_source(spec["folder"], spec["root"])
        footprint.watch(spec["root"], spec["folder"])
        footprint.tell_written(_tell_written(channel))
        _set_log_level(os.environ.get("AGENT_WORKBENCH_LOG_LEVEL"))
        loaded = load(spec)
        # Once here rather than in each fork.
        driver_of(loaded).prepare(loaded)
    except UnusableError as error:
        fault = error.fault
    except NoAgentError as error:
        fault = faults.fault(
            "import_failed", str(error), "expose an agent, an App or a callable under one of these names"
        )
    except BaseException as error:
        # Importing runs the agent's code, and sys.exit is among what it may do.
        fault = faults.of_import(error, python, (spec["folder"], spec["root"]))
    else:
        return loaded
    channel.send({"op": "import_failed", "error": fault, "files": footprint.news()})
    return None


def _tell_written(channel: Channel) -> Callable[[str], None]:
    """What tells of files that this process writes, but not of those that a fork of the agent's writes."""
    own = os.getpid()

    def tell(path: str) -> None:
        if os.getpid() == own:
            channel.send({"op": "wrote", "files": [path]})

    return tell


def _set_log_level(level: Optional[str]) -> None:
    """What `--log-level` asks for, done as `adk eval` does it: before the agent's modules are imported, to stderr."""
    if level:
        import logging

        logging.basicConfig(level=level, format="%(asctime)s - %(levelname)s - %(filename)s:%(lineno)d - %(message)s")
        logging.getLogger("google_adk").setLevel(level)


def ready(why: str) -> Dict[str, Any]:
    """The first message of a worker: which interpreter and framework, and why it cannot fork, if so."""
    return {
        "op": "ready",
        "python": platform.python_version(),
        "executable": sys.executable,
        "adk": installed_adk(),
        "can_fork": not why,
        "why": why,
    }


def _imported(loaded: Loaded, why: str) -> Dict[str, Any]:
    return {
        "op": "imported",
        "files": footprint.news(),
        "folders": footprint.folders(),
        "framework": loaded.framework,
        "adk": driver_of(loaded).version(),
        "can_fork": not why,
        "why": why,
    }


def _fork_case(nursery: Nursery, channel: Channel, command: Dict[str, Any], loaded: Loaded) -> None:
    if command.get("share"):
        refuse(SharedWire(channel.write, command["id"], lambda: True))
        nursery.tell({"op": "exited", "id": command["id"], "status": 0})
        return
    fds = channel.take_fds(descriptors_of(command))
    nursery.fork(command["id"], lambda: _be_case(fds, command, loaded))
    for fd in fds:
        os.close(fd)


def _be_case(fds: List[int], command: Dict[str, Any], loaded: Loaded) -> None:
    sock = socket.socket(fileno=fds[0])
    capture(fds[1], fds[2])
    environment = command["case"].get("env")
    if environment:
        os.environ.update(environment)
    run_forked(sock, command["case"], loaded)

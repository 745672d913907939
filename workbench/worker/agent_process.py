"""The process that has imported one version of one agent. Its cases are forks of it, or tasks in it."""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from . import faults, footprint, processes, sources
from .cases import SharedCases, descriptors_of, refuse, run_forked
from .driver import Loaded, UnusableError
from .drivers import NoAgentError, driver_of, load
from .frames import Channel, SharedWire
from .missing import installed_adk
from .output import route_output
from .processes import ForkServer, capture, leave

Spec = Dict[str, Any]


def run_agent(channel: Channel, lifeline: int, spec: Spec) -> None:
    """Import the agent, and run its cases until the workbench disconnects. The process is then the agent's."""
    loaded = _enter(channel, spec)
    if loaded is None:
        return
    why = processes.threads_left()
    gc.freeze()
    forks = ForkServer(channel, lifeline)
    forks.report(_imported(loaded, why))
    started = False

    def handle(command: Spec) -> bool:
        nonlocal started
        if (command.get("share") or command.get("here")) and not started:
            # Put it back for the loop that runs cases in this process.
            channel.pending.appendleft(command)
            return False
        started = True
        if command["op"] == "case":  # Other commands belong to a refused case and are dropped.
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
    """Run one agent in its own process, where forking is impossible. Ends the process. `adk`: it uses google-adk."""
    if sys.platform == "linux":
        processes.adopt_orphans()
    try:
        _serve_solo(channel, lifeline, adk)
    finally:
        if sys.platform == "linux":
            # On other systems the workbench does this, since it knows our group.
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


def _enter(channel: Channel, spec: Spec, adk: bool = False) -> Optional[Loaded]:
    """Become the agent's process: set its environment and folder, and import its modules, with `adk` after google-adk.

    Returns None if the import failed, after reporting it.
    """
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
        footprint.on_written(_written_reporter(channel))
        _set_log_level(os.environ.get("AGENT_WORKBENCH_LOG_LEVEL"))
        if adk:
            _import_adk()
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
        fault = faults.import_fault(error, python, (spec["folder"], spec["root"]))
    else:
        return loaded
    channel.send({"op": "import_failed", "error": fault, "files": footprint.new_files()})
    return None


def _import_adk() -> None:
    """Import google-adk, so that toolsets are noticed that connect while the agent is imported."""
    with contextlib.suppress(Exception):  # The import of the agent tells what is missing.
        from . import adk_runner  # noqa: F401


def _written_reporter(channel: Channel) -> Callable[[str], None]:
    """Return a function that reports files which this process writes, but not those written by a fork of the agent."""
    own = os.getpid()

    def report(path: str) -> None:
        if os.getpid() == own:
            channel.send({"op": "wrote", "files": [path]})

    return report


def _set_log_level(level: Optional[str]) -> None:
    """Set the level of `--log-level` like `adk eval`: before the agent's modules are imported, to stderr."""
    if level:
        import logging

        logging.basicConfig(level=level, format="%(asctime)s - %(levelname)s - %(filename)s:%(lineno)d - %(message)s")
        logging.getLogger("google_adk").setLevel(level)


def ready(why: str) -> Dict[str, Any]:
    """Return a worker's first message: its interpreter, its framework, and any reason why it cannot fork."""
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
        "files": footprint.new_files(),
        "folders": footprint.folders(),
        "unseen": footprint.unseen(),
        "framework": loaded.framework,
        "adk": driver_of(loaded).version(),
        "can_fork": not why,
        "why": why,
    }


def _fork_case(forks: ForkServer, channel: Channel, command: Dict[str, Any], loaded: Loaded) -> None:
    if command.get("share"):
        refuse(SharedWire(channel.write, command["id"], lambda: True))
        forks.report({"op": "exited", "id": command["id"], "status": 0})
        return
    fds = channel.take_fds(descriptors_of(command))
    forks.fork(command["id"], lambda: _be_case(fds, command, loaded))
    for fd in fds:
        os.close(fd)


def _be_case(fds: List[int], command: Dict[str, Any], loaded: Loaded) -> None:
    sock = socket.socket(fileno=fds[0])
    capture(fds[1], fds[2])
    environment = command["case"].get("env")
    if environment:
        os.environ.update(environment)
    run_forked(sock, command["case"], loaded)

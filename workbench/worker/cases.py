"""The start of a case: its kind, and its own process."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any, Dict

from . import faults
from .case import Case, Wire
from .driver import Loaded
from .stacks import stack_of_this_process
from .wire import SocketWire


def case_of(wire: Wire, spec: Dict[str, Any], loaded: Loaded, *, shared: bool) -> Case:
    """Return the case of a spec, or a chat with a user."""
    if spec.get("chat"):
        from .chat import Chat

        return Chat(wire, spec, loaded, shared=shared)
    return Case(wire, spec, loaded, shared=shared)


def run_forked(sock: socket.socket, spec: Dict[str, Any], loaded: Loaded) -> None:
    """Run a case in its own process."""
    case = case_of(SocketWire(sock), spec, loaded, shared=False)

    def on_terminate(number: int, frame: Any) -> None:
        case.stopped(stack_of_this_process(frame))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, on_terminate)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(case.run())
    try:
        loop.run_until_complete(task)
    except BaseException as error:
        # sys.exit in a task of the agent leaves the loop directly, past the task that awaits it.
        case.failed(faults.agent_fault(error))


def descriptors_of(command: Dict[str, Any]) -> int:
    """Return how many file descriptors come with a case.

    A case with its own process gets a socket and two descriptors for its output; others get none.
    """
    return 0 if command.get("share") else 3


def refuse(wire: Wire) -> None:
    """Refuse a case that wants to share a process whose cases are forked, or the other way round."""
    message = "the case needs another process mode than the first case of its process"
    wire.write(wire.encode({"event": "Failed", "turn": 0, "error": faults.fault("internal", message)}))
    wire.close()

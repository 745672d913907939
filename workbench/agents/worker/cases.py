"""How a case of an agent process begins: as what it is asked for, and in a process of its own."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any, Dict

from . import faults
from .case import Case, Wire
from .driver import Loaded
from .whereabouts import stack_of_this_process
from .wire import SocketWire


def case_of(wire: Wire, spec: Dict[str, Any], loaded: Loaded, *, shared: bool) -> Case:
    """The case of a spec, or the conversation with somebody who types."""
    if spec.get("chat"):
        from .chat import Chat

        return Chat(wire, spec, loaded, shared=shared)
    return Case(wire, spec, loaded, shared=shared)


def run_forked(sock: socket.socket, spec: Dict[str, Any], loaded: Loaded) -> None:
    """Runs a case in a process that is its own."""
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
        # sys.exit in a task of the agent's comes straight out of the loop, past the task that waits for it.
        case.failed(faults.of_agent(error))


def descriptors_of(command: Dict[str, Any]) -> int:
    """How many file descriptors come with a case: with a process of its own, its socket and two for its output."""
    return 0 if command.get("share") else 3


def refuse(wire: Wire) -> None:
    """Answers a case that wants to share a process whose cases are forked, or the other way round."""
    message = "a case was to run in another way than the first one of its process"
    wire.write(wire.encode({"event": "Failed", "turn": 0, "error": faults.fault("internal", message)}))
    wire.close()

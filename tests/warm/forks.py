"""A server that is forked for each task, with nothing but the standard library.

A task has the words of a command line, its environment, its folder, and the numbers that the words use for descriptors.
The descriptors follow: those for standard input, output and error, and then these. The answer is the process ID.
"""

import atexit
import importlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any


def serve(sock: socket.socket) -> dict[str, Any]:
    """Fork for each message, and return the task in the forks. End with the socket."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(sock, 1 << 20, 8)
        if not message:
            os._exit(0)
        ours, theirs = os.pipe()
        # A child whose parent has ended belongs to the process that asked from then on.
        if not (between := os.fork()):
            if os.fork():
                os._exit(0)
            # Who gets the number may look at the session, or signal its group, at once.
            os.setsid()
            os.write(theirs, str(os.getpid()).encode())
            for own in (ours, theirs, sock.detach()):
                os.close(own)
            task: dict[str, Any] = json.loads(message)
            become(task, *descriptors)
            return task
        os.waitpid(between, 0)
        sock.send(os.read(ours, 100))
        for descriptor in (ours, theirs, *descriptors):
            os.close(descriptor)


def become(task: dict[str, Any], *descriptors: int) -> None:
    """Make this process, which has a session of its own, what a new one would be."""
    streams, others = descriptors[:3], descriptors[3:]
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(task["folder"])
    os.environ.clear()
    os.environ.update(task["environment"])
    numbers = {str(old): str(new) for old, new in zip(task["descriptors"], others, strict=True)}
    sys.argv = ["", *(numbers.get(word, word) for word in task["words"])]
    for descriptor in others:
        os.set_inheritable(descriptor, True)


def extend_path() -> None:
    """Put the folders that this process's environment names on the path, as an interpreter does when it starts."""
    path = dict.fromkeys(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    sys.path[:] = [*path, *(folder for folder in sys.path if folder not in path)]
    importlib.invalidate_caches()


def run_to_the_end(program: Callable[[], object]) -> None:
    """Run the program of this process, and end. Modules are not taken apart, which takes long for thousands of them."""
    code = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        sys.excepthook(*sys.exc_info())
        code = 120
    os._exit(code)

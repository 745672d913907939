"""The server of `tests.warm.scorers`: it has imported what scorers and programs need, and is forked for each.

It is started as `python server.py FD`. A message has the module to run, whether it is the whole program, the words of
its command line, its environment, its folder, and the numbers that these words use for descriptors. The descriptors
follow: those for standard input, output and error, and then these. The answer is the process ID.
"""

import asyncio
import atexit
import gc
import importlib
import io
import json
import os
import runpy
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

from tests.warm.nursery import use_in_program
from workbench.judges.gemini import make_client
from workbench.judges.google_access import GoogleAccess
from workbench.run.scoring import scored_case, scorer

_OF_PROGRAMS = (
    "workbench.cli.command_line",
    "workbench.cli.following",
    "workbench.exporting.report",
    "workbench.project.project",
    "workbench.project.targets",
    "pytest",
)


def import_all() -> None:
    """Import what scorers import when a case needs it, and what most command lines import."""
    scorer.block_unneeded_imports()
    scored_case._warm(["response_match_score"])
    with suppress(ImportError):
        asyncio.run(_make_client())
    for name in ("workbench.run.scoring.async_scorer", "workbench.judges.gemini", *_OF_PROGRAMS):
        importlib.import_module(name)
    assert threading.active_count() == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()


async def _make_client() -> None:
    client = await make_client(GoogleAccess(vertex=False, key="key"))
    await client.close()


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


def become_program() -> None:
    """Give this process the streams and the path of a new program, and its scorers a server of their own."""
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    sys.stdout, sys.stderr = _written(1, "surrogateescape"), _written(2, "backslashreplace")
    path = dict.fromkeys(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    sys.path[:] = [*path, *(folder for folder in sys.path if folder not in path)]
    importlib.invalidate_caches()


def _written(number: int, errors: str) -> io.TextIOWrapper:
    stream = open(number, "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(stream, encoding="utf-8", errors=errors, line_buffering=number == 2 or os.isatty(number))


def fork_server() -> socket.socket:
    """Fork a server whose forks become children of this process, and return the socket to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        return ours
    ours.close()
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)
    run(serve(theirs))
    raise AssertionError("a task ends its process")


def run(task: dict[str, Any]) -> None:
    """Run a task in this fork, and end."""
    if task["program"]:
        become_program()
        sock = fork_server()
        use_in_program(sock)
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
        for name in scorer._NOT_NEEDED:
            sys.modules.pop(name, None)
    module, code = task["module"], 0
    for name in (module, f"{module}.__main__"):
        sys.modules.pop(name, None)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    # What an interpreter does at its end, but for taking thousands of modules apart.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        sys.excepthook(*sys.exc_info())
        code = 120
    os._exit(code)


if __name__ == "__main__":
    server_sock = socket.socket(fileno=int(sys.argv[1]))
    import_all()
    server_sock.send(b"+")
    run(serve(server_sock))

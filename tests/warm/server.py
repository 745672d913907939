"""The server of scorers and programs (`tests.warm.forks`): it has imported what they need.

It is started as `python server.py FD`. A task also has the module to run, and whether it is the whole program.
"""

import asyncio
import gc
import importlib
import io
import os
import runpy
import socket
import ssl
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import Any

from tests.warm.forks import extend_path, run_to_the_end, serve
from tests.warm.nursery import use_in_program
from workbench.files.schema import EvalCase, EvalSet, adapter
from workbench.judges.gemini import make_client
from workbench.judges.google_access import GoogleAccess
from workbench.run.scoring import scored_case, scorer

_OF_PROGRAMS = (
    "encodings.ascii",
    "platformdirs.unix",
    "workbench.cli.command_line",
    "workbench.cli.following",
    "workbench.cli.run_command",
    "workbench.criteria.answer_match",
    "workbench.criteria.efficiency",
    "workbench.criteria.session_state",
    "workbench.criteria.trajectory",
    "workbench.exporting.report",
    "workbench.project.project",
    "workbench.project.targets",
    "pytest",
)


def import_all() -> None:
    """Import what scorers import when a case needs it, and what most command lines import."""
    # A client of a judge would read all certificates three times, and no test uses TLS.
    vars(ssl)["create_default_context"] = cache(ssl.create_default_context)
    scorer.block_unneeded_imports()
    scored_case._warm(["response_match_score"])
    with suppress(ImportError):
        asyncio.run(_make_client())
    for name in ("workbench.run.scoring.async_scorer", "workbench.judges.gemini", *_OF_PROGRAMS):
        importlib.import_module(name)
    for schema in (EvalSet, EvalCase):
        _ = adapter(schema).validator
    assert threading.active_count() == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()


async def _make_client() -> None:
    client = await make_client(GoogleAccess(vertex=False, key="key"))
    await client.close()


def become_program() -> None:
    """Give this process the streams and the path of a new program, and its scorers a server of their own."""
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    sys.stdout, sys.stderr = _written(1, "surrogateescape"), _written(2, "backslashreplace")
    extend_path()


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
    module = task["module"]
    for name in (module, f"{module}.__main__"):
        sys.modules.pop(name, None)
    run_to_the_end(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


if __name__ == "__main__":
    server_sock = socket.socket(fileno=int(sys.argv[1]))
    import_all()
    server_sock.send(b"+")
    run(serve(server_sock))

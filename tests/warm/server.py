"""The server of `tests.warm.scorers`: it has imported what scorers need, and is forked for each.

It is started as `python server.py FD`. A message has the module to run, the words of its command line, its environment,
its folder, and the numbers that these words use for descriptors. The descriptors follow: that for the output, and then
these. The answer is the process ID.
"""

import asyncio
import gc
import importlib
import json
import os
import runpy
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

from workbench.engine.scoring import scorer
from workbench.judge.gemini_client import make_client
from workbench.judge.google_access import GoogleAccess


def import_all() -> None:
    """Import what scorers import when a case needs it."""
    scorer.block_unneeded_imports()
    scorer._warm(["response_match_score"])
    with suppress(ImportError):
        asyncio.run(_make_client())
    importlib.import_module("workbench.engine.scoring.async_scorer")
    importlib.import_module("workbench.judge.gemini")
    assert threading.active_count() == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()


async def _make_client() -> None:
    client = await make_client(GoogleAccess(vertex=False, key="key"))
    await client.close()


def serve(sock: socket.socket) -> str:
    """Fork for each message, and return the module to run in the forks. End with the socket."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(sock, 1 << 20, 8)
        if not message:
            sys.exit()
        ours, theirs = os.pipe()
        # A child whose parent has ended belongs to the tests' process from then on.
        if not (between := os.fork()):
            if pid := os.fork():
                os.write(theirs, str(pid).encode())
                os._exit(0)
            for own in (ours, theirs, sock.detach()):
                os.close(own)
            task = json.loads(message)
            become(task, *descriptors)
            return str(task["module"])
        os.waitpid(between, 0)
        sock.send(os.read(ours, 100))
        for descriptor in (ours, theirs, *descriptors):
            os.close(descriptor)


def become(task: dict[str, Any], output: int, *others: int) -> None:
    """Make this process what a new scorer would be."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(task["folder"])
    os.environ.clear()
    os.environ.update(task["environment"])
    numbers = {str(old): str(new) for old, new in zip(task["descriptors"], others, strict=True)}
    sys.argv = ["", *(numbers.get(word, word) for word in task["words"])]
    for descriptor in others:
        os.set_inheritable(descriptor, True)


if __name__ == "__main__":
    server_sock = socket.socket(fileno=int(sys.argv[1]))
    import_all()
    server_sock.send(b"+")
    module = serve(server_sock)
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)

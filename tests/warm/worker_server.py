"""The server of workers (`tests.warm.forks`): it has imported what they need, with the word "adk" also google-adk.

It is started as `python worker_server.py FD WORKER_DIR [adk]`. It imports nothing else, because an agent must find only
the modules that a worker has.
"""

import gc
import importlib
import importlib.util
import os
import runpy
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


def import_worker(folder: str, adk: bool) -> None:
    """Import the worker as `__main__` in its folder does."""
    spec = importlib.util.spec_from_file_location(
        "agent_workbench_worker", f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    zygote = importlib.import_module("agent_workbench_worker.zygote")
    if adk:
        zygote.warm_up(zygote._CASES)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != HERE]  # noqa: PTH100
    with_forks = importlib.util.spec_from_file_location("forks", f"{HERE}/forks.py")
    assert with_forks is not None
    assert with_forks.loader is not None
    forks = importlib.util.module_from_spec(with_forks)
    with_forks.loader.exec_module(forks)
    number, worker, *more = sys.argv[1:]
    import_worker(worker, bool(more))
    server_sock = socket.socket(fileno=int(number))
    server_sock.send(b"+")
    forks.serve(server_sock)
    forks.extend_path()
    forks.run_to_the_end(lambda: runpy.run_path(worker, run_name="__main__"))

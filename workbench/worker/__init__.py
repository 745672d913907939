"""The worker: runs agents in their own interpreter, so it uses only the standard library of Python 3.9 and later.

The workbench starts this folder by its path (`PYTHON -X utf8 -u WORKER_DIR zygote …`). `__main__` loads it as a package
of its own name. So nothing here imports `workbench`, and no module of the worker shadows one of the agent. There are
three levels of processes, each with a socket that carries frames (`frames`):

- The zygote (`zygote`) has imported the framework and run dummy cases. It forks agent processes.
- An agent process (`zygote`, too) has imported one version of one agent. It forks case processes.
- A case process (`case`) runs one case. Where forking is unsafe or unwanted, the agent process runs the cases as tasks
  (`cases`).

Another process without children (`functions`) calls the user's judges and metrics.
"""

import gc
import os

WORKER_DIR = os.path.dirname(os.path.abspath(__file__))


def collect_rarely() -> None:
    """Collect garbage only after 10,000 surviving new objects. Call this before imports.

    Python's default, such as 700, took a quarter of the time to import google-adk and a twentieth of each case. Nearly
    all objects of an import stay, and nearly all objects of a case are freed without a collection.
    """
    gc.set_threshold(10_000)

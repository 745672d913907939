"""Runs agents in their own interpreter, which is often not the workbench's: stdlib only, Python 3.9 and later.

The workbench starts this folder by its path (`PYTHON -X utf8 -u WORKER_DIR zygote …`); `__main__` loads it as a package
of its own name, so nothing here imports `workbench` and no name of ours gets in the way of the agent's modules. Three
levels of process, each speaking frames (`frames`) on a socket:

- the zygote (`zygote`) has imported the framework and run dummy cases; it forks
- an agent process (`agent_process`) for one version of one agent, which has imported the agent's modules; it forks
- a case process (`case`) for each case, or runs the cases as tasks (`shared`), where forking is unsafe or unwanted.
"""

import os

WORKER_DIR = os.path.dirname(os.path.abspath(__file__))

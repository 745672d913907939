"""The functions that run on a Dask worker. Dask sends only their names, so the worker needs this package.

This module imports nothing heavy, because the scheduler loads it, too.
"""

import asyncio
import json
import platform
import subprocess
import threading
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.run.dask.worker_run import WorkerRun

_RUNS: dict[tuple[int, str], "WorkerRun"] = {}
"""The runs on the workers of this process, by worker and run."""
_FIT: set[tuple[str, ...]] = set()
"""Requirements (an interpreter and versions of packages) that this process is known to meet."""
_LOCK = threading.Lock()
_PROBE_SECONDS = 60


class Sealed:
    """Data for a worker that must not appear in logs. Dask logs the arguments of failed tasks."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return "<sealed>"

    def __sizeof__(self) -> int:
        return len(self.data)


def run_execution(job: Sealed, files: Sealed) -> bytes:
    """Run one execution of a case, and return its report (`workbench.run.dask.dask_part`), even if it raises."""
    from distributed import get_client, get_worker

    worker = get_worker()
    order = json.loads(job.data)
    name = str(worker.name)
    try:
        if why := _unfit_once(order["needs"], order["python"]):
            return _instead(name, "refused", why)
        try:
            run = _run_of(worker, order, files)
        except OSError as error:
            return _instead(name, "refused", f"the project cannot be unpacked: {error.strerror or error}")
        client = get_client() if order.get("messages", ()) is None else None
        return run.execute(worker.get_current_task(), order, client)
    except Exception as fault:  # A task that raises has all of its arguments in Dask's logs.
        return _instead(name, "failed", f"{type(fault).__name__}: {fault}")


async def close_run(run: str) -> None:
    """End a run's processes on the workers of this process, and delete its files."""
    with _LOCK:
        found = [_RUNS.pop(key) for key in tuple(_RUNS) if key[1] == run]
        _FIT.clear()  # Packages may be installed between two runs.
    for one in found:
        await asyncio.to_thread(one.close)


async def probe(needs: Mapping[str, str], python: str) -> str:
    """Return what agents need and this worker lacks, as text, or "" if it lacks nothing."""
    return await asyncio.to_thread(unfit, needs, python)


def _unfit_once(needs: Mapping[str, str], python: str) -> str:
    """Return the result of `unfit`. If nothing is missing, this is cached: starting an interpreter takes time."""
    asked = (python, *(f"{name}={version}" for name, version in sorted(needs.items())))
    if asked in _FIT:
        return ""
    why = unfit(needs, python)
    if not why:
        _FIT.add(asked)
    return why


def unfit(needs: Mapping[str, str], python: str) -> str:
    """Return what agents need and an interpreter of this machine lacks, as text, or "" if it lacks nothing.

    `needs` are the versions of packages by name, and of Python, as in {"python": "3.12"}. `python` is the path of an
    interpreter, or "" for this one.
    """
    names = [name for name in needs if name not in ("python", "agent-workbench")]
    try:
        if python:
            found = _versions_of(python, names)
        else:
            version = ".".join(platform.python_version_tuple()[:2])
            found = {"python": version, **{name: _version(name) for name in names}}
    except (OSError, ValueError) as error:
        return f"{python} cannot be used: {error}"
    found["agent-workbench"] = _version("agent-workbench")
    wrong = []
    for name, wanted in needs.items():
        here = found.get(name, "")
        if here != wanted:
            title = "Python" if name == "python" else name
            wrong.append(f"{title} {here or 'is missing'}" + (f", needs {wanted}" if here else f" (needs {wanted})"))
    return "; ".join(wrong)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _versions_of(python: str, names: list[str]) -> dict[str, str]:
    """Return the versions in another interpreter. Raise OSError or ValueError if it does not start or answer."""
    source = (
        "import json, platform, sys\nfrom importlib import metadata\nfound = {}\nfor name in sys.argv[1:]:\n"
        "    try: found[name] = metadata.version(name)\n    except metadata.PackageNotFoundError: pass\n"
        "found['python'] = '.'.join(platform.python_version_tuple()[:2])\nprint(json.dumps(found))"
    )
    try:
        done = subprocess.run(
            [python, "-c", source, *names], capture_output=True, check=True, timeout=_PROBE_SECONDS, text=True
        )
    except subprocess.SubprocessError as error:
        raise ValueError(str(error)) from None
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _run_of(worker: Any, order: dict[str, Any], files: Sealed) -> "WorkerRun":
    from workbench.run.dask.worker_run import WorkerRun  # A second of imports, which the scheduler need not have.

    key = id(worker), order["run"]
    with _LOCK:
        run = _RUNS.get(key)
        if run is None or run.is_closed:
            run = _RUNS[key] = WorkerRun(worker, order["run"], order["topic"])
        # Inside of the lock, so that it is not closed between.
        run.unpack(order["digest"], files.data)
    return run


def _instead(name: str, what: str, why: str) -> bytes:
    """Return a report without a transcript: the worker `refused` the task, or it `failed`."""
    return json.dumps({"worker": name, what: why}).encode("ascii")

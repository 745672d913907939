"""Time, spread, CPU and memory of runs on a Dask cluster of this computer."""

import asyncio
import resource
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from workbench.files.run_options import PlaceChoice, RunOptions
from workbench.project.project import Project
from workbench.store.store import Store


class Cluster(Protocol):
    """The part of `benchmarks.machines.Cluster` that is used here."""

    address: str


MakeCluster = Callable[..., AbstractContextManager[Any]]
WriteProject = Callable[[Path, dict[str, int], float], None]


async def measure_rates(make_cluster: MakeCluster, write_project: WriteProject) -> None:
    """Print the figures."""
    await _spread(make_cluster, write_project)
    await _waiting(make_cluster, write_project)
    await _many(make_cluster, write_project)


async def _spread(make_cluster: MakeCluster, write_project: WriteProject) -> None:
    folder = _folder()
    write_project(folder / "project", {"say": 100}, 0.2)
    with make_cluster(folder, workers=2, threads=8) as cluster:
        store, _ = await _run(folder / "project", cluster.address, 16)
    each = Counter(record.machine for record in store.current_records())
    print(f"100 cases on two workers: {dict(each)}", flush=True)
    shutil.rmtree(folder)


async def _waiting(make_cluster: MakeCluster, write_project: WriteProject) -> None:
    """2,000 cases of 2 s (two turns of 1 s) on four workers with 100 threads each. Ideal: five rounds of 2 s."""
    folder = _folder()
    write_project(folder / "project", {"say": 2000}, 1.0)
    with make_cluster(folder, workers=4, threads=100) as cluster:
        _, seconds = await _run(folder / "project", cluster.address, 400)
    print(f"2,000 cases of 2 s on 4 workers × 100: {seconds:.1f} s, {seconds / 10:.2f} of ideal", flush=True)
    _, here = await _run(folder / "project", "local", 400)
    print(f"the same here, 400 at a time: {here:.1f} s, {here / 10:.2f} of ideal", flush=True)
    shutil.rmtree(folder)


async def _many(make_cluster: MakeCluster, write_project: WriteProject) -> None:
    """10,000 cases: CPU and memory of this process, and of the client beside it."""
    folder = _folder()
    write_project(folder / "project", {"say": 10_000}, 0.0)
    for place in ("local", "cluster"):
        with make_cluster(folder, workers=4, threads=25) as cluster:
            before = time.process_time()
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            _, seconds = await _run(folder / "project", "local" if place == "local" else cluster.address, 100)
            used = time.process_time() - before
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        beside = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"10,000 cases, {place}: {seconds:.0f} s, CPU of this process {used / 10:.2f} ms a case, "
            f"of its children {beside / 10:.2f} ms a case, peak memory of this process {peak:.0f} MiB",
            flush=True,
        )
    shutil.rmtree(folder)


async def _run(root: Path, place: str, at_once: int) -> tuple[Store, float]:
    store = Store()
    options = RunOptions(concurrency=at_once, place=PlaceChoice() if place == "local" else PlaceChoice(place))
    async with Project(root, store=store, place=place) as project:
        await project.read()
        plan = await project.plan(options=options)
        await project.connect(plan)
        await asyncio.sleep(2)  # All workers are known then.
        began = time.monotonic()
        await project.run(plan).execute()
        seconds = time.monotonic() - began
    counts = store.counts()
    assert counts["passed"] == counts.total(), counts
    return store, seconds


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="machines-"))

"""Time, spread, CPU and memory of runs on a Dask cluster of this computer."""

from typing import Any


async def measure_rates(cluster: Any, write_project: Any) -> None:
    raise SystemExit("not yet")

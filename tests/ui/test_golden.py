"""All scenes of `tests.screens`, compared with snapshots.

`CONTRIBUTING.md` says how a changed snapshot is looked at and accepted.
"""

import asyncio
import json
import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import pytest
from textual.app import App

from tests.screens import TOURS, Projects, Tour, alone, take

Compare: TypeAlias = Callable[..., bool]


class Drawn(App[str]):
    """An app whose picture was taken before, for `snap_compare`."""

    def __init__(self, svg: str) -> None:
        super().__init__()
        self._svg = svg

    def run(self, **options: Any) -> str:
        return self._svg


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tour], dict[str, str]]:
    """Return a function that takes the pictures of a tour. All processes of xdist share them."""
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    above = (base.parent if is_one_of_several else base) / "scenes"
    above.mkdir(exist_ok=True)

    @cache
    def of(tour: Tour) -> dict[str, str]:
        file = above / f"{tour.scenes[0].name}.json"
        with alone(file.with_suffix(".json.lock")):
            if not file.exists():
                taken = asyncio.run(take(Projects(above).copy(tour.project), tour))
                found = {f"{name}-{size}": drawn for (name, size), drawn in taken.items()}
                file.write_text(json.dumps(found), "utf-8")
        return json.loads(file.read_text("utf-8"))  # type: ignore[no-any-return]

    return of


@pytest.mark.parametrize(
    ("tour", "name"),
    [
        pytest.param(tour, f"{scene.name}-{size}", id=f"{scene.name}-{size}")
        for tour in TOURS
        for scene in tour.scenes
        for size in scene.sizes
    ],
)
def test_scene(tour: Tour, name: str, pictures: Any, snap_compare: Compare) -> None:
    assert snap_compare(Drawn(pictures(tour)[name]))

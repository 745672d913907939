"""All scenes of `tests.screens`, compared with snapshots.

`CONTRIBUTING.md` says how a changed snapshot is looked at and accepted.
"""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import pytest
from textual.app import App

from tests.screens import TOURS, Projects, Tour, take

Compare: TypeAlias = Callable[..., bool]


class Drawn(App[str]):
    """An app whose picture was taken before, for `snap_compare`."""

    def __init__(self, svg: str) -> None:
        super().__init__()
        self._svg = svg

    def run(self, **options: Any) -> str:
        return self._svg


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tour], dict[tuple[str, str], str]]:
    """Return a function that takes the pictures of a tour, once."""
    projects = Projects(tmp_path_factory.mktemp("scenes"))
    return cache(lambda tour: asyncio.run(take(projects.copy(tour.project), tour)))


@pytest.mark.parametrize(
    ("tour", "scene", "size"),
    [
        pytest.param(tour, scene.name, size, id=f"{scene.name}-{size}")
        for tour in TOURS
        for scene in tour.scenes
        for size in scene.sizes
    ],
)
def test_scene(tour: Tour, scene: str, size: str, pictures: Any, snap_compare: Compare) -> None:
    assert snap_compare(Drawn(pictures(tour)[scene, size]))

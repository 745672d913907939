"""Screens that are compared with snapshots: all scenes of `tests.screens`, and a run in progress.

`CONTRIBUTING.md` says how to review and accept a changed snapshot.
"""

import asyncio
import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.screens import TOURS, Projects, Scene, Tour, alone, go, take
from tests.steady import steady
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.events.events import CaseError, CaseFinished, MetricResult, MetricScored, TurnFinished, TurnStarted

Compare: TypeAlias = Callable[..., bool]
SIZES = ((60, 20), (120, 40), (200, 50))
SHOP = {
    "order_desk": {
        "refunds": ["on_time", "late_parcel", "unknown_order", "two_parcels"],
        "greetings": ["hello", "good_night"],
    },
    "team_router": {"hand_over": ["to_billing", "返金の確認をする長い名前のテスト"]},
}


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
def test_scene_matches_its_golden_picture(tour: Tour, name: str, pictures: Any, snap_compare: Compare) -> None:
    assert snap_compare(Drawn(pictures(tour)[name]))


async def finished_run(screen: Screen, pilot: Pilot[int]) -> None:
    """Make a run with every kind of result."""
    await screen.until(pilot, lambda: screen.session.workspace is not None)
    await pilot.press("r")
    await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
    run = screen.runs[0]
    for number, ref in enumerate(run.refs[:-2]):
        run.begin(ref)
        status = ("passed", "failed", "error")[number % 3]
        score = (1.0, 0.66, None)[number % 3]
        said = {"role": "user", "parts": [{"text": "Where is my parcel?"}]}
        answer = {"role": "model", "parts": [{"text": "On its way."}]}
        run.publish(TurnStarted(ref, 0, said))
        run.publish(TurnFinished(ref, 0, {"user_content": said, "final_response": answer}))
        if score is not None:
            verdict = "passed" if score >= 0.8 else "failed"
            result = MetricResult("response_match_score", verdict, score, 0.8, "2 of 3 words")  # type: ignore[arg-type]
            run.publish(MetricScored(ref, result, (result,)))
        error = CaseError("agent_raised", "KeyError: 'A-7'") if status == "error" else None
        run.publish(CaseFinished(ref, status, error, 0.5))  # type: ignore[arg-type]
    run.begin(run.refs[-2])
    await screen.until(pilot, lambda: screen.session.store.counts()["running"] == 1)
    await screen.until(pilot, lambda: "6/8" in screen.text)
    await screen.until(pilot, lambda: "checking for changes" not in screen.text)


@pytest.fixture
def screen(open_screen: OpenScreen, make_workspace: MakeWorkspace, tmp_path: Path) -> Iterator[Screen]:
    """Open a folder with a fixed name and a clock that does not move."""
    workspace = make_workspace(SHOP)
    made = open_screen(dataclasses.replace(workspace, target=workspace.root / "shop"))
    with steady(tmp_path):
        yield made
        made.app.close_runs(1.0)


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        *(pytest.param("n", size, id=f"cases-{size[0]}x{size[1]}") for size in ((80, 24), *SIZES)),
        pytest.param("n enter", (60, 20), id="case-60x20"),
        pytest.param("/ : f a i l space : e r r o r enter", (80, 24), id="filter-80x24"),
        pytest.param("q", (80, 24), id="quit-80x24"),
    ],
)
def test_scene_during_a_run_matches_its_golden_picture(
    screen: Screen, keys: str, size: tuple[int, int], snap_compare: Compare
) -> None:
    async def act(pilot: Pilot[int]) -> None:
        await finished_run(screen, pilot)
        await go(pilot, Scene("during a run", keys, lasts=True))

    assert snap_compare(screen.app, terminal_size=size, run_before=act)

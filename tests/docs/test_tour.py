"""The tour, `docs/tour.md`, does what it says."""

import re

import pytest

from docs.pictures import tour
from docs.pictures.player import opened


def test_page_begins_with_six_steps() -> None:
    numbered = re.findall(r"^## (\d)\. ", tour.PAGE.read_text("utf-8"), re.MULTILINE)
    assert numbered == [*"123456"]


def test_each_step_of_the_tour_has_a_text_to_wait_for() -> None:
    assert [*tour.steps()] == [*tour.EXPECTED, "Run without the screen"]


@pytest.mark.usefixtures("warm_scorers")
async def test_keys_of_the_page_lead_to_the_described_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.pictures.player._QUIET_SECONDS", 0.05)
    async with opened((80, 24)) as player:
        shown = [name async for name in tour.play(player)]
    assert len(shown) == 7

"""The words about replayed cases."""

from datetime import UTC, datetime

import pytest

from workbench.events.events import Frozen
from workbench.results.frozen import frozen_count, frozen_mark, frozen_total

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
AT = "2026-11-20T10:00:00Z"


@pytest.mark.parametrize(
    ("frozen", "words"),
    [
        (None, ""),
        (Frozen("tools", "f", AT, 4), "FROZEN (4 tool calls replayed, recorded 3 days ago)"),
        (Frozen("tools", "f", "", 1), "FROZEN (1 tool call replayed)"),
        (Frozen("all", "f", AT, 4, 2), "FROZEN (4 tool calls and 2 model calls replayed, recorded 3 days ago)"),
        (Frozen("all", "f", AT, 0, 2), "FROZEN (2 model calls replayed, recorded 3 days ago)"),
        (Frozen("tools", "f", "soon", 3, 0, 1), "FROZEN (3 tool calls replayed, 1 live)"),
        (Frozen("tools", "f", "", 3, 0, 0, 1), "FROZEN (3 tool calls replayed, 1 missed)"),
        (Frozen("tools"), "FROZEN (0 tool calls replayed)"),
    ],
)
def test_frozen_mark_shows_the_calls_and_the_age_of_the_recording(frozen: Frozen | None, words: str) -> None:
    assert frozen_mark(frozen, NOW) == words


def test_total_of_a_run_adds_the_calls() -> None:
    cases = [Frozen("tools", "f", AT, 4), Frozen("tools", "g", "2026-11-13T10:00:00Z", 1, 0, 2)]
    assert frozen_total([], NOW) == frozen_total([None], NOW) == ""
    assert frozen_total(cases[:1], NOW) == "FROZEN: 1 case, 4 tool calls replayed, recorded 3 days ago"
    words = "FROZEN: 2 of 3 cases, 5 tool calls replayed, 2 live, recorded 3 to 10 days ago"
    assert frozen_total([*cases, None], NOW) == words


def test_frozen_count_names_the_share_of_frozen_cases() -> None:
    assert [frozen_count(*counts) for counts in ((0, 0), (0, 1), (1, 1), (1, 2))] == [
        "",
        "",
        "frozen",
        "1 of 2 frozen",
    ]


def test_age_counts_whole_days() -> None:
    recordings = (Frozen("tools", recorded=f"2026-11-{day}T11:00:00+00:00") for day in (24, 23, 22))
    ages = [frozen_mark(frozen, NOW).rpartition("recorded ")[2] for frozen in recordings]
    assert ages == ["today)", "today)", "1 day ago)"]

"""The bar says the same at each width, in shorter words if necessary."""

import dataclasses
from collections import Counter

import pytest

from workbench.results.cells import cell_len
from workbench.store.execution import CaseState
from workbench.ui.session.bar import Facts, bar_parts
from workbench.ui.session.relative_times import clock

COUNTS: Counter[CaseState] = Counter({"passed": 9, "failed": 4, "error": 1, "running": 2, "queued": 15})
FACTS = Facts("sample_agents", "", COUNTS, 31, running=True, seconds=7.4)


def text(facts: Facts, width: int) -> str:
    left, right = bar_parts(facts, width)
    return "".join(part for part, _ in left) + "|" + "".join(part for part, _ in right)


def test_bar_shows_progress_counts_and_time() -> None:
    assert text(FACTS, 72) == (" sample_agents   ▶ 14/31   ✓9  ✗4  !1   0:07|watch off ")


def test_wide_bar_has_a_meter_with_the_share_of_each_verdict() -> None:
    left, _ = bar_parts(FACTS, 140)
    meter = {name: len(part) for part, name in left if set(part) & {"━", "╌"}}
    assert meter == {"status-passed": 6, "status-failed": 2, "status-error": 1, "status-muted": 11}


def test_narrow_bar_keeps_glyphs_and_numbers() -> None:
    assert text(FACTS, 43) == " sample_agents  ▶ 14/31  ✓9  ✗4  !1  0:07|"


@pytest.mark.parametrize("width", range(30, 220, 7))
@pytest.mark.parametrize("name", ["x", "sample_agents", "長い名前のフォルダ" * 6])
def test_bar_fits_into_every_width_from_sixty_cells(width: int, name: str) -> None:
    for facts in (
        FACTS,
        Facts(name, "26 cases in 9 evalsets of 5 agents"),
        Facts(name, "", COUNTS, 31, interrupted=True),
        Facts(name, "", COUNTS, 31, rescored=True),
    ):
        left, right = bar_parts(facts, width)
        if width >= 60:
            assert sum(cell_len(part) for part, _ in (*left, *right)) <= width


def test_bar_counts_replayed_cases_at_every_width() -> None:
    counts: Counter[CaseState] = Counter({"passed": 1, "failed": 1, "error": 3})
    facts = Facts("shop", "", counts, 5, frozen=("frozen", "5"), when=("ran 14:00, 30 min ago", "14:00"))
    assert "✓1 ✗1 !3 of 5   ❅ frozen" in text(facts, 80)
    assert "✓1 ✗1 !3 of 5 ❅5 " in text(facts, 50)


def test_bar_names_a_run_that_only_scored_again() -> None:
    facts = Facts("x", "", COUNTS, 31, rescored=True)
    assert "   scored again" in text(facts, 140)
    assert "  again" in text(facts, 40)


def test_bar_names_interrupted_runs_and_changed_criteria() -> None:
    facts = Facts("x", "", COUNTS, 31, interrupted=True, criteria_changed=True, seconds=3700)
    assert "interrupted" in text(facts, 140)
    assert "criteria changed" in text(facts, 140)
    assert "■ 14/31" in text(facts, 140)
    assert "1:01:40" in text(dataclasses.replace(facts, running=True), 140)
    assert "1:01:40" not in text(facts, 140), "the overview has it"


WAITING = ("gemini-2.5-flash waits 12 s: quota", "waits 12 s")


def test_bar_shows_judge_calls_and_judge_kind() -> None:
    facts = dataclasses.replace(FACTS, judge_calls="48 judge calls, 6 cached", by_function=True, waiting=WAITING)
    wide = text(facts, 160)
    assert "48 judge calls, 6 cached  ƒ function judge   gemini-2.5-flash waits 12 s: quota" in wide
    assert text(facts, 60) == " sam…nts  ▶ 14/31  ✓9  ✗4  !1  0:07  ƒ function  waits 12 s|"


@pytest.mark.parametrize("width", range(60, 220, 7))
def test_bar_with_judges_fits_into_every_width(width: int) -> None:
    for function in (False, True):
        for waiting in (("", ""), WAITING, ("長い名前" * 15 + " waits 1 s", "waits 1 s")):
            facts = dataclasses.replace(FACTS, judge_calls="4,848 judge calls", by_function=function, waiting=waiting)
            left, right = bar_parts(facts, width)
            assert sum(cell_len(part) for part, _ in (*left, *right)) <= width


def test_clock_shows_hours_only_when_there_are_any() -> None:
    assert [clock(seconds) for seconds in (0, 7.9, 61, 3600)] == ["0:00", "0:07", "1:01", "1:00:00"]


@pytest.mark.parametrize("width", range(60, 160, 5))
def test_bar_shows_the_watch_at_every_width(width: int) -> None:
    facts = dataclasses.replace(
        FACTS,
        root="x",
        judge_calls="0 judge calls, 49 cached",
        by_function=True,
        watching=True,
        watch=("watch on: ran the agent, 20 stale", "watch on, 20 stale"),
    )
    assert "watch on" in text(facts, width)


def test_bar_shows_the_cost_of_a_save_before_the_run() -> None:
    words = "7 of 35 stale, about 23 calls, about $0.0021: press w to run"
    facts = Facts("desk", "", COUNTS, 31, judge_calls="6 judge calls", by_function=True, watching=True, awaits_key=True)
    facts = dataclasses.replace(facts, watch=(words, "7 stale, 23 calls, $0.0021: press w"))
    for width in (140, 120, 100):
        assert words in text(facts, width), width
    assert "7 stale, 23 calls, $0.0021: press w" in text(facts, 80)
    assert "press w to run" in text(facts, 60)


def test_bar_gives_the_reason_for_stale_verdicts_if_there_is_room() -> None:
    stale = ("3 stale: .env GEMINI_MODEL, prompt.txt", "3 stale")
    facts = Facts("desk", "", COUNTS, 31, stale=stale)
    assert text(facts, 160).endswith("3 stale: .env GEMINI_MODEL, prompt.txt  watch off ")
    assert "3 stale: .env GEMINI_MODEL, prompt.txt" in text(facts, 110)
    for width in range(46, 200, 7):
        assert "3 stale" in text(facts, width), width
        left, right = bar_parts(facts, width)
        assert sum(cell_len(part) for part, _ in (*left, *right)) <= width


def test_bar_shows_when_the_last_run_was_made() -> None:
    counts: Counter[CaseState] = Counter({"passed": 258, "failed": 48, "error": 6})
    when = ("ran 14:02, 2 min ago", "2 min ago")
    facts = Facts("shop", "", counts, 312, when=when, seconds=41.0)
    assert text(facts, 80) == " shop   ✓258 ✗48 !6 of 312   ran 14:02, 2 min ago|watch off "
    assert text(facts, 58) == " shop  ✓258 ✗48 !6 of 312  ran 14:02, 2 min ago|watch off "
    judged = dataclasses.replace(facts, judge_calls="12 judge calls", by_function=True, stale=("3 stale", "3 stale"))
    assert text(judged, 60) == " shop  ✓258 ✗48 !6 of 312  2 min ago  ƒ function|3 stale  "


def test_bar_names_the_last_run_if_its_counts_differ_from_the_tree() -> None:
    facts = Facts("shop", "", Counter({"passed": 1}), 1, when=("ran 14:02, 2 min ago", "ran 14:02"), of_last_run=True)
    assert text(facts, 85) == " shop   last run   ✓1 of 1   ran 14:02, 2 min ago|watch off "
    assert "last run  ✓1 of 1" in text(facts, 40)
    stopped = dataclasses.replace(facts, total=3, interrupted=True)
    assert "last run   ■ 1/3" in text(stopped, 90)


def test_bar_of_a_new_run_always_shows_the_current_step() -> None:
    requested = Facts("shop", "", Counter(), 0, phase="starting agents")
    assert text(requested, 60).startswith(" shop   ▶ starting agents|")
    waiting: Counter[CaseState] = Counter({"queued": 20})
    assert "▶ 0/20 starting agents" in text(Facts("shop", "", waiting, 20, running=True, phase="starting agents"), 60)
    busy: Counter[CaseState] = Counter({"running": 8, "queued": 12})
    assert "▶ 0/20, 8 running" in text(Facts("shop", "", busy, 20, running=True), 80)


def test_running_bar_shows_the_remaining_time_at_every_width() -> None:
    facts = dataclasses.replace(FACTS, left=("about 2 min left", "2 min left"))
    assert text(facts, 60) == " samp…ents  ▶ 14/31  ✓9  ✗4  !1  0:07  2 min left|watch off "
    assert "0:07   about 2 min left" in text(facts, 100)
    elsewhere = Facts("shop", "", COUNTS, 31, elsewhere="5/12")
    assert "▷ 5/12 in another terminal" in text(elsewhere, 110)
    assert "▷ 5/12 elsewhere" in text(elsewhere, 60)
    for width in range(60, 160, 5):
        left, right = bar_parts(elsewhere, width)
        assert sum(cell_len(part) for part, _ in (*left, *right)) <= width
        assert "2 min left" in text(facts, width)

"""Judge calls and waits in the bar."""

from tests.ui.judged import FUNCTION, GEMINI, REF, claims, events, match
from workbench.events.events import CaseFinished, JudgeWaits, MetricScored, Usage
from workbench.store.store import Store
from workbench.ui.session.session import JudgeCount, wait_text


def counted(*scored: MetricScored, ends: bool = False) -> JudgeCount:
    count = JudgeCount()
    for event in events(scored, ends=ends):
        count.apply(event)
    return count


def test_judge_calls_are_counted_for_each_scored_criterion() -> None:
    count = counted(match(), claims())
    assert (count.calls, count.cached) == (4, 2)
    assert count.text == "4 judge calls, 2 cached"


def test_count_of_a_finished_case_replaces_that_of_its_criteria() -> None:
    count = counted(match(), claims(), ends=True)
    assert (count.calls, count.cached) == (5, 1)
    count.apply(CaseFinished(REF, "failed", None, 1.0, Usage(judge_calls=7)))
    assert count.text == "7 judge calls"


def test_new_run_resets_the_count() -> None:
    count = counted(match(FUNCTION), ends=True)
    assert count.by_function
    count.apply(next(events([])))
    assert (count.text, count.by_function) == ("", False)
    assert not counted(match(GEMINI)).by_function


def test_judge_wait_counts_down() -> None:
    waits = [JudgeWaits("gemini-2.5-flash", 2.0, 12.0, "quota")]
    assert wait_text(waits, 2.0) == ("gemini-2.5-flash waits 12 s: quota", "waits 12 s")
    assert wait_text(waits, 12.4)[1] == "waits 2 s"
    assert wait_text(waits, 14.0) == ("", "")
    assert wait_text([], 0.0) == ("", "")


def test_longest_judge_wait_is_shown() -> None:
    waits = [JudgeWaits("a", 0.0, 5.0, "quota"), JudgeWaits("b\x1b[31m", 0.0, 9.0, ""), JudgeWaits("c", 0.0, 1.0, "")]
    assert wait_text(waits, 2.0)[0] == "b␛[31m waits 7 s, 1 more"


def test_judge_wait_ends_with_an_event() -> None:
    store = Store()
    store.apply(JudgeWaits("a", 0.0, 5.0, "quota"))
    store.apply(JudgeWaits("a", 1.0, 0.0, ""))
    assert wait_text(store.waits.values(), 1.0) == ("", "")

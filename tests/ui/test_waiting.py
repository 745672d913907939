"""What the bar knows of judges."""

from tests.ui.judged import GEMINI, HEURISTIC, REF, claims, events, match
from workbench.events import CaseFinished, JudgeWaits, MetricScored, Usage
from workbench.store import Store
from workbench.ui.judge_count import JudgeCount, wait_text


def counted(*scored: MetricScored, ends: bool = False) -> JudgeCount:
    count = JudgeCount()
    for event in events(scored, ends=ends):
        count.apply(event)
    return count


def test_calls_are_counted_as_criteria_come_in() -> None:
    count = counted(match(), claims())
    assert (count.asked, count.cached) == (4, 2)
    assert count.words == "judge 4 asked, 2 cached"


def test_what_the_case_counts_in_the_end_holds() -> None:
    count = counted(match(), claims(), ends=True)
    assert (count.asked, count.cached) == (5, 1)
    count.apply(CaseFinished(REF, "failed", None, 1.0, Usage(judge_calls=7)))
    assert count.words == "judge 7 asked"


def test_a_new_run_begins_at_nothing() -> None:
    count = counted(match(HEURISTIC), ends=True)
    assert count.heuristic
    count.apply(next(events([])))
    assert (count.words, count.heuristic) == ("", False)
    assert not counted(match(GEMINI)).heuristic


def test_a_pause_counts_down_to_nothing() -> None:
    waits = [JudgeWaits("gemini-2.5-flash", 2.0, 12.0, "quota")]
    assert wait_text(waits, 2.0) == ("gemini-2.5-flash waits 12 s: quota", "waits 12 s")
    assert wait_text(waits, 12.4)[1] == "waits 2 s"
    assert wait_text(waits, 14.0) == ("", "")
    assert wait_text([], 0.0) == ("", "")


def test_of_several_pauses_the_longest_is_told() -> None:
    waits = [JudgeWaits("a", 0.0, 5.0, "quota"), JudgeWaits("b\x1b[31m", 0.0, 9.0, ""), JudgeWaits("c", 0.0, 1.0, "")]
    assert wait_text(waits, 2.0)[0] == "b␛[31m waits 7 s, 1 more"


def test_the_end_of_a_pause_is_an_event() -> None:
    store = Store()
    store.apply(JudgeWaits("a", 0.0, 5.0, "quota"))
    store.apply(JudgeWaits("a", 1.0, 0.0, ""))
    assert wait_text(store.waits.values(), 1.0) == ("", "")

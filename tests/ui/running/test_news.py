"""Events of the run's thread, without a screen."""

from pathlib import Path

from tests.ui.fake_view import Bench, Timer
from workbench.events.events import CaseFinished, Noticed, PlannedCase, RunFinished, RunStarted
from workbench.run.dask.files import Sending, is_confirmed
from workbench.ui.running.news import notice_line
from workbench.ui.running.run_thread import Ended, Refused
from workbench.ui.terminal.terminal import Pace


class Slow(Pace):
    """A slow terminal: verdicts are painted at once, everything else later."""

    def wait(self, now: float, *, decided: bool = False) -> float:
        return 0.0 if decided else 0.4


def timers(bench: Bench) -> list[Timer]:
    return [timer for timer in bench.view.timers if timer.seconds == 0.4]


def test_slow_terminal_gets_events_in_batches(bench: Bench) -> None:
    bench.news.pace = Slow()
    bench.thread.news = [Noticed("info", "one"), Noticed("info", "two")]
    bench.news.came()
    bench.news.came()
    (timer,) = timers(bench)
    assert bench.session.store.notices == []
    timer.call()
    assert [notice.message for notice in bench.session.store.notices] == ["one", "two"]


def test_verdict_is_shown_even_on_a_slow_terminal(bench: Bench) -> None:
    bench.news.pace = Slow()
    (ref,) = bench.started(("refunds", "on_time"))
    bench.news.came()
    bench.thread.news = [CaseFinished(ref, "passed", None, 0.1)]
    bench.thread.decided = True
    bench.news.came()
    assert timers(bench)[0].stopped
    assert bench.session.store.records[ref].state == "passed"


async def test_run_without_a_final_event_counts_as_interrupted(bench: Bench) -> None:
    (ref,) = bench.started(("refunds", "on_time"))
    bench.tell(Ended(1))
    assert bench.session.store.run.interrupted
    assert bench.session.store.records[ref].state == "cancelled"
    assert not bench.session.store.activity.busy


async def test_seconds_tick_only_during_a_run(bench: Bench) -> None:
    bench.started(("refunds", "on_time"))
    ticker = bench.news.ticker
    assert isinstance(ticker, Timer)
    bench.tell(RunFinished(1.0, interrupted=False), Ended(1))
    assert ticker.stopped
    assert bench.news.ticker is None


def test_warnings_are_counted_on_the_last_line_and_cover_nothing(bench: Bench) -> None:
    bench.tell(*(Noticed("warning", f"number {number}") for number in range(5)), Noticed("info", "quiet"))
    assert bench.view.notices == []
    assert bench.view.said == ["5 notices in the palette (:): number 0"]


def test_errors_and_a_single_short_warning_are_shown_in_full(bench: Bench) -> None:
    bench.tell(Noticed("error", "no place", "set one"), Noticed("error", "two"), Noticed("error", "three"))
    assert bench.view.notices == ["no place\nset one", "two"]
    assert bench.view.said == ["3 notices in the palette (:): three"]
    assert notice_line(Noticed("warning", "no key.", "Set KEY."), 1) == "no key. Set KEY"


async def test_listeners_learn_whether_a_run_ended(bench: Bench) -> None:
    told: list[bool] = []
    bench.news.when_taken.append(told.append)
    bench.started(("refunds", "on_time"))
    bench.tell(Ended(1))
    assert told == [False, True]


def test_end_of_a_run_does_not_end_the_next_run(bench: Bench) -> None:
    told: list[bool] = []
    (ref,) = bench.started(("refunds", "on_time"))
    bench.news.when_taken.append(told.append)
    root = str(bench.workspace.root)
    bench.tell(Ended(1), RunStarted("run-2", root, "2026-11-21T10:31:00Z", (PlannedCase(ref, None, "defaults"),)))
    assert told == [False]


async def test_data_that_leaves_this_machine_is_confirmed_on_screen(bench: Bench) -> None:
    sending = Sending("dask://h:1", "dask://h:1", Path("/shop"), {"a.py": 1}, {}, ("KEY",))
    for answer, said in ((None, []), (False, []), (True, ["confirmed: r runs there"])):
        bench.view.answers.append(answer)
        bench.tell(Refused("nothing was sent", "", sending))
        await bench.view.settled()
        assert bench.view.said == said
        assert is_confirmed(sending) is bool(answer)
    assert bench.view.notices == []
    assert bench.view.asked == ["this leaves your machine"] * 3

import asyncio
import io
import os
import re
from dataclasses import replace
from itertools import count

import pytest

from tests.cli.stores import BROKEN, FAILED, PASSED, all_statuses, case_events, feed, ref, started
from tests.hostile import HOSTILE, leaks
from workbench.cli.live_progress import LiveProgress, PlainProgress
from workbench.events.events import CaseError, CaseFinished, CaseRef, CaseStarted, JudgeWaits, Noticed, RunFinished
from workbench.store.store import Store

_OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""The codes with which the block is redrawn, the cursor hidden and words are coloured."""


class Terminal(io.StringIO):
    """A stream that keeps what a terminal would get."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """Return all text ever written, without our own codes."""
        return _OURS.sub("", self.getvalue())


class AsciiTerminal(Terminal):
    encoding = "ascii"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _sized_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


def test_results_and_messages_go_to_separate_streams() -> None:
    store, results, messages = Store(), io.StringIO(), io.StringIO()
    with PlainProgress(store, results, messages) as progress:
        for event in [
            started([PASSED, BROKEN]),
            Noticed("warning", "a key is dropped"),
            *case_events(BROKEN, "error", error=CaseError("timeout", "300 s are over")),
            *case_events(PASSED, "passed"),
        ]:
            store.apply(event)
        progress.message("stopping")
    store.apply(Noticed("info", "after the end"))
    assert results.getvalue().splitlines() == [
        "ERROR desk/refunds/unknown_order timeout: 300 s are over",
        "PASS desk/refunds/on_time",
    ]
    assert messages.getvalue().splitlines() == ["warning: a key is dropped", "stopping"]


def test_progress_block_counts_cases_and_names_the_slowest() -> None:
    store, terminal, clock = Store(), Terminal(), Clock()
    with LiveProgress(store, terminal, terminal, clock) as progress:
        for event in [started([PASSED, FAILED]), *case_events(PASSED, "passed"), CaseStarted(FAILED, 1.0, (), {})]:
            store.apply(event)
        clock.now += 63
        progress.refresh()
    shown = terminal.shown()
    assert "PASS  desk/refunds/on_time" in shown
    assert "▶ 1/2  ✓ 1 pass  1:03" in shown
    assert "desk/refunds/late_parcel  62 s" in shown
    assert "\x1b[?25h" in terminal.getvalue().rpartition("\x1b[?25l")[2], "the cursor is given back"


def test_times_count_from_the_start_of_the_newest_run() -> None:
    store, terminal, clock = Store(), Terminal(), Clock()
    with LiveProgress(store, terminal, terminal, clock) as progress:
        for second in (30, 3):
            clock.now += 60  # Such as a question to the user, or a run before.
            store.apply(started([PASSED]))
            store.apply(CaseStarted(PASSED, 1.0, (), {}))
            clock.now += second
            progress.refresh()
    shown = terminal.shown()
    assert "0:30" in shown
    assert "desk/refunds/on_time  29 s" in shown
    assert "0:03" in shown
    assert "desk/refunds/on_time  2 s" in shown


def test_many_events_cause_one_redraw() -> None:
    refs = [ref(f"case {number}") for number in range(1000)]
    store, terminal, clock = Store(), Terminal(), Clock()
    with LiveProgress(store, terminal, terminal, clock) as progress:
        store.apply(started(refs))
        progress.refresh()
        before = len(terminal.getvalue())
        for case in refs[:-1]:
            for event in case_events(case, "passed"):
                store.apply(event)
        assert len(terminal.getvalue()) == before, "nothing is written while events come"
        progress.refresh()
        drawn = len(terminal.getvalue()) - before
        progress.refresh()
        assert len(terminal.getvalue()) - before == drawn, "nothing changed, nothing is sent"
    assert drawn < 1000, "of many cases, those that passed are only counted"


def test_only_problems_get_lines_in_a_large_run() -> None:
    refs = [ref(f"case {number}") for number in range(60)]
    store, terminal = Store(), Terminal()
    with LiveProgress(store, terminal, terminal):
        store.apply(started(refs))
        for number, case in enumerate(refs):
            for event in case_events(case, "passed" if number else "failed"):
                store.apply(event)
    assert "FAIL  desk/refunds/case 0" in terminal.shown()
    assert "PASS" not in terminal.shown()


def test_terminal_without_unicode_shows_words_for_symbols() -> None:
    store, terminal = Store(), AsciiTerminal()
    with LiveProgress(store, terminal, terminal):
        for event in [started([FAILED]), *case_events(FAILED, "failed"), RunFinished(1.0)]:
            store.apply(event)
    assert terminal.getvalue().isascii()
    assert "1 fail" in terminal.shown()


def test_redirected_messages_do_not_reach_the_terminal() -> None:
    store, terminal, file = Store(), Terminal(), io.StringIO()
    with LiveProgress(store, terminal, file):
        store.apply(started([]))
        store.apply(Noticed("warning", "odd", "Mend it"))
    assert file.getvalue() == "warning: odd. Mend it\n"
    assert "odd" not in terminal.shown()


@pytest.mark.parametrize("text", HOSTILE, ids=count())
def test_foreign_text_cannot_control_the_terminal(text: str) -> None:
    case = CaseRef(text, text, text, text)
    store, terminal, clock = Store(), Terminal(), Clock()
    with LiveProgress(store, terminal, terminal, clock) as progress:
        store.apply(started([case]))
        store.apply(CaseStarted(case, 0.0, (), {}))
        store.apply(Noticed("error", text, text))
        clock.now += 2
        progress.refresh()
        for event in case_events(case, "error", error=CaseError("crashed", text, text, text))[1:]:
            store.apply(event)
    assert not leaks(terminal.shown())
    if text.startswith("[bold red]"):
        assert text in terminal.shown(), "markup is text like any other"


async def test_clock_moves_without_events() -> None:
    store, terminal, clock = Store(), Terminal(), Clock()
    with LiveProgress(store, terminal, terminal, clock) as progress:
        store.apply(started([PASSED]))
        clock.now += 5
        fresh = asyncio.create_task(progress.keep_fresh())
        await asyncio.sleep(0)
        fresh.cancel()
        await asyncio.gather(fresh, return_exceptions=True)
    assert "0/1 starting agents  0:05" in terminal.shown()


def test_vanished_terminal_does_not_stop_the_run() -> None:
    primary, secondary = os.openpty()
    stream = os.fdopen(secondary, "w", encoding="utf-8")
    store = all_statuses()
    with LiveProgress(store, stream, stream) as progress:
        os.close(primary)
        for event in case_events(PASSED, "passed"):
            store.apply(event)
        progress.refresh()
        progress.message("still here")
        progress.refresh()
    stream.close()


def test_finished_run_leaves_only_result_lines() -> None:
    store, terminal = feed([started([])]), Terminal()
    with LiveProgress(store, terminal, terminal):
        for event in [started([PASSED]), *case_events(PASSED, "passed")]:
            store.apply(event)
    after_last_line = terminal.getvalue().rpartition("PASS")[2]
    assert "\x1b[2K" in after_last_line, "the block is wiped"


def test_pause_of_a_judge_is_a_message() -> None:
    store, results, messages = Store(), io.StringIO(), io.StringIO()
    with PlainProgress(store, results, messages):
        store.apply(started([PASSED]))
        store.apply(JudgeWaits("gemini-2.5-flash", 1.0, 12.0, "quota \x1b[31m"))
        store.apply(JudgeWaits("gemini-2.5-flash", 13.0, 0.0, "quota"))
    assert messages.getvalue().startswith("gemini-2.5-flash: waiting 12 s: quota ")
    assert len(messages.getvalue().splitlines()) == 1, "that it goes on is seen by the cases"
    assert not leaks(messages.getvalue())
    assert results.getvalue() == ""


def test_pause_counts_down_on_a_terminal() -> None:
    store, terminal, clock = Store(), Terminal(), Clock()
    with LiveProgress(store, terminal, terminal, clock) as progress:
        store.apply(started([PASSED]))
        store.apply(JudgeWaits("gemini-2.5-flash", 1.0, 12.0, "quota \x1b[31m"))
        clock.now += 4
        progress.refresh()
        assert "gemini-2.5-flash waits 9 s  quota" in terminal.shown()
        clock.now += 5
        progress.refresh()
        assert "gemini-2.5-flash waits 4 s  quota" in terminal.shown()
        store.apply(JudgeWaits("gemini-2.5-flash", 13.0, 0.0, ""))
        before = len(terminal.shown())
        progress.refresh()
        assert "waits" not in terminal.shown()[before:]
    assert not leaks(terminal.shown())


def test_unstarted_cases_get_lines_at_the_end_of_the_run() -> None:
    store, results = Store(), io.StringIO()
    with PlainProgress(store, results, io.StringIO()):
        for event in [
            started([PASSED, FAILED, BROKEN]),
            *case_events(PASSED, "passed"),
            CaseFinished(FAILED, "cancelled", CaseError("cancelled", "cancelled while it was running"), 1.0),
            RunFinished(3.0, interrupted=True),
        ]:
            store.apply(event)
    assert results.getvalue().splitlines() == [
        "PASS desk/refunds/on_time",
        "CANCELLED desk/refunds/late_parcel",
        "CANCELLED desk/refunds/unknown_order",
    ]


def test_cases_of_the_next_run_are_not_reported_as_cancelled() -> None:
    store, results = Store(), io.StringIO()
    with PlainProgress(store, results, io.StringIO(), lambda: True):
        for event in [started([PASSED, FAILED]), *case_events(PASSED, "passed"), RunFinished(3.0)]:
            store.apply(event)
    assert results.getvalue().splitlines() == ["PASS desk/refunds/on_time"]


def test_cancelled_case_does_not_show_its_earlier_verdict() -> None:
    store, results = Store(), io.StringIO()
    for event in [started([PASSED]), *case_events(PASSED, "passed"), RunFinished(1.0)]:
        store.apply(event)
    with PlainProgress(store, results, io.StringIO()):
        store.apply(replace(started([PASSED]), run_id="2026-11-22T10-00-00-bbbb"))
        store.apply(CaseFinished(PASSED, "cancelled", CaseError("cancelled", "cancelled"), 1.0))
    assert store.records[PASSED].state == "passed"
    assert results.getvalue().splitlines() == ["CANCELLED desk/refunds/on_time"]

"""Cases whose conversations are not in memory: the screen waits for nothing, and keys keep their order."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen
from tests.ui.review.test_review_screen import CASES, run_all
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution


async def test_previous_case_stays_visible_and_keys_wait_until_the_next_one_is_read(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": CASES}}))
    may_read, threads = threading.Event(), []
    async with screen.open((100, 30)) as pilot:
        await run_all(screen, pilot)
        screen.main.go_to(0, 0)
        await screen.until(pilot, lambda: "desk › talk › good" in screen.text)
        store = screen.session.store
        whole = {ref: read_details(record) for ref, record in store.records.items()}

        def read(execution: Execution) -> tuple[CaseRecord, str]:
            threads.append(threading.current_thread())
            may_read.wait(60)
            return replace(whole[execution.ref]), ""

        monkeypatch.setattr("workbench.store.details._read", read)
        store.records = {ref: record.without_details(Path("a run"), 100) for ref, record in whole.items()}
        screen.patience = 0.1
        try:
            await pilot.press("j")
            await screen.until(pilot, lambda: bool(threads))
            assert "desk › talk › good" in screen.text
            await pilot.press("j", "2")
            late_1 = screen.main.rows.row_of(0, 1)
            assert screen.main.rows.cursor == late_1
            assert "desk › talk › good" in screen.text
        finally:
            may_read.set()
        await screen.until(pilot, lambda: "desk › talk › late_2" in screen.text)
        await screen.until(pilot, lambda: screen.main.right.detail.reading.pane.title == "Judges")
        assert threading.main_thread() not in threads

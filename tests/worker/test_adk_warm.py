"""Dummy cases before the first fork leave nothing behind."""

import signal
from pathlib import Path

import pytest

from tests.worker.conftest import needs_adk, needs_fork

pytestmark = [needs_adk, needs_fork]


def test_dummy_cases_leave_no_timer_and_no_descriptor() -> None:
    from workbench.worker.adk_warm import run_dummy_cases

    run_dummy_cases(1)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    run_dummy_cases(2)
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    # The teardown timer of a case would end the process that all others are forked from.
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_failing_dummy_case_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.worker import adk_warm

    monkeypatch.setattr(adk_warm, "_MESSAGE", {"role": "user", "parts": [{"text": ["no text"]}]})
    with pytest.raises(RuntimeError, match="text"):
        adk_warm.run_dummy_cases(1)

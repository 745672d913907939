"""Paints are rare enough for a slow line and frequent enough to look alive."""

import pytest

from workbench.ui.terminal.terminal import BYTES_A_SECOND, FASTEST, OVER_SSH, SAVED_UP, Pace, over_ssh


def test_first_paint_is_immediate_and_the_next_after_a_tenth_of_a_second() -> None:
    pace = Pace()
    assert pace.wait(100.0) == 0
    pace.painted(100.0, 1)
    assert pace.wait(100.0) == pytest.approx(FASTEST)
    assert pace.wait(100.0 + FASTEST) == 0


def test_verdicts_after_a_pause_are_painted_at_once() -> None:
    pace = Pace()
    at_once = 0
    while pace.wait(100.0, decided=True) == 0:
        pace.painted(100.0, 1)
        at_once += 1
    assert at_once == round(SAVED_UP / FASTEST) + 1
    assert pace.wait(100.0, decided=True) == pytest.approx(FASTEST)
    assert pace.wait(200.0, decided=True) == 0


def test_many_lines_need_a_longer_pause() -> None:
    pace = Pace()
    pace.painted(0.0, 80)
    assert pace.wait(0.0) > 80 * 150 / BYTES_A_SECOND
    pace.painted(0.0, 80)
    assert pace.wait(0.0, decided=True) > 2 * 80 * 150 / BYTES_A_SECOND - SAVED_UP


def test_paints_are_rarer_over_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not over_ssh()
    monkeypatch.setenv("SSH_TTY", "/dev/pts/1")
    assert over_ssh()
    pace = Pace()
    pace.painted(0.0, 0)
    assert pace.wait(0.0) == pytest.approx(OVER_SSH)

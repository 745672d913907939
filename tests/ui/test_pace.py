"""Seldom enough for a slow line, often enough to look alive."""

import pytest

from workbench.ui.pace import BYTES_A_SECOND, FASTEST, OVER_SSH, SAVED_UP, Pace, over_ssh


def test_the_first_is_painted_at_once_and_the_next_after_a_tenth() -> None:
    pace = Pace()
    assert pace.wait(100.0) == 0
    pace.painted(100.0, 1)
    assert pace.wait(100.0) == pytest.approx(FASTEST)
    assert pace.wait(100.0 + FASTEST) == 0


def test_verdicts_after_a_rest_are_painted_at_once_and_those_after_them_every_tenth() -> None:
    pace = Pace()
    at_once = 0
    while pace.wait(100.0, decided=True) == 0:
        pace.painted(100.0, 1)
        at_once += 1
    assert at_once == round(SAVED_UP / FASTEST) + 1
    assert pace.wait(100.0, decided=True) == pytest.approx(FASTEST)
    assert pace.wait(200.0, decided=True) == 0


def test_many_lines_cost_a_longer_rest() -> None:
    pace = Pace()
    pace.painted(0.0, 80)
    assert pace.wait(0.0) > 80 * 150 / BYTES_A_SECOND
    pace.painted(0.0, 80)
    assert pace.wait(0.0, decided=True) > 2 * 80 * 150 / BYTES_A_SECOND - SAVED_UP


def test_over_ssh_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not over_ssh()
    monkeypatch.setenv("SSH_TTY", "/dev/pts/1")
    assert over_ssh()
    pace = Pace()
    pace.painted(0.0, 0)
    assert pace.wait(0.0) == pytest.approx(OVER_SSH)

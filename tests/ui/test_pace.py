"""Seldom enough for a slow line, often enough to look alive."""

import pytest

from workbench.ui.pace import BYTES_A_SECOND, FASTEST, OVER_SSH, SAVED_UP, Pace, over_ssh


def test_what_comes_after_a_rest_is_painted_at_once_and_the_rest_every_tenth() -> None:
    pace = Pace()
    painted = []
    now = 100.0
    while now < 102.0:
        if pace.wait(now) == 0:
            painted.append(now)
            pace.painted(now, 1)
        now += 0.01
    at_once = [moment for moment in painted if moment < 100.06]
    assert len(at_once) == round(SAVED_UP / FASTEST) + 1
    assert len(painted) - len(at_once) == pytest.approx(2.0 / FASTEST, abs=1)
    assert pace.wait(200.0) == 0


def test_many_lines_cost_a_longer_rest() -> None:
    pace = Pace()
    pace.painted(100.0, 80)
    assert pace.wait(100.0) > 80 * 150 / BYTES_A_SECOND - SAVED_UP


def test_nothing_is_saved_up_beyond_the_credit() -> None:
    pace = Pace()
    pace.painted(100.0, 80)
    pace.painted(100.0, 80)
    assert pace.wait(100.0) > 2 * 80 * 150 / BYTES_A_SECOND - SAVED_UP


def test_over_ssh_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not over_ssh()
    monkeypatch.setenv("SSH_TTY", "/dev/pts/1")
    assert over_ssh()
    pace = Pace()
    for _ in range(3):
        pace.painted(100.0, 0)
    assert pace.wait(100.0) == pytest.approx(3 * OVER_SSH - SAVED_UP)

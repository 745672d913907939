"""Costs in cases of a bare Runner."""

import json
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.bare_runner import case_of, in_cases


def test_cost_of_a_case_excludes_the_start() -> None:
    assert case_of(lambda cases: 2.0 + 0.005 * cases, 1000) == pytest.approx(5.0)


def test_time_is_shown_as_a_multiple_of_this_machines_time_per_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(figures.VARIABLE, str(tmp_path / "figures"))
    in_cases("G5", 6.0, {"own cost": (3.0, 0.355), "adk eval": (12.0, None)})
    said = capsys.readouterr().out
    assert "6.00 ms each here: own cost 0.50 (the goal is 0.10 where it was set), adk eval 2.00\n" in said
    kept = [json.loads(line) for line in (tmp_path / "figures").read_text().splitlines()]
    assert [(one["value"], one["goal"]) for one in kept] == [(0.5, None), (2.0, None)]

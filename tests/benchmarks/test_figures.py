"""Figures are kept as data, read again, and held against earlier ones."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import VARIABLE, Figure, read, record, table, write

FIGURES = st.builds(
    Figure,
    goal_id=st.sampled_from(["G1", "G8", "G12", "saves"]),
    name=st.text(max_size=30),
    value=st.floats(allow_nan=False, allow_infinity=False),
    unit=st.sampled_from(["", "x", "ms"]),
    goal=st.none() | st.floats(0, 1e6),
    more_is_better=st.booleans(),
)


@given(st.lists(FIGURES, max_size=5))
def test_written_figures_can_be_read(new_folder: Callable[[], Path], figures: list[Figure]) -> None:
    file = new_folder() / "out.json"
    write(file, figures)
    assert read(file) == figures


def test_figures_of_several_benchmarks_go_to_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "figures"
    monkeypatch.setenv(VARIABLE, str(file))
    record("G8", "save to verdict", 80.5, "ms", goal=80)
    record("G1", "times less CPU", 4.0, "x", goal=3, more_is_better=True)
    assert read(file) == [
        Figure("G8", "save to verdict", 80.5, "ms", 80),
        Figure("G1", "times less CPU", 4.0, "x", 3, more_is_better=True),
    ]


def test_without_a_file_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    record("G8", "save to verdict", 80.5, "ms")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["[]", "nonsense", '{"figures": [{"no": 1}]}', '{"figures": 5}', "3"])
def test_unrelated_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "out.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="no figures"):
        read(file)


def test_empty_file_has_no_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    file.touch()
    assert read(file) == []


@pytest.mark.parametrize(
    ("figure", "reached"),
    [
        (Figure("G8", "a", 80.0, "ms", 80.0), True),
        (Figure("G8", "a", 80.1, "ms", 80.0), False),
        (Figure("G1", "a", 3.0, "x", 3.0, more_is_better=True), True),
        (Figure("G1", "a", 2.9, "x", 3.0, more_is_better=True), False),
        (Figure("saves", "a", 1.0), None),
    ],
)
def test_figure_shows_whether_its_goal_is_met(figure: Figure, reached: bool | None) -> None:
    assert figure.reached is reached


def test_table_compares_figures_in_the_order_of_goals() -> None:
    now = [Figure("G12", "idle", 0.0, "B/s", 0.0), Figure("G8", "p50", 90.0, "ms", 80.0), Figure("G2", "new", 1.0, "x")]
    before = [Figure("G8", "p50", 180.0, "ms", 80.0), Figure("G12", "idle", 0.0, "B/s", 0.0)]
    lines = list(table(now, before))
    assert [line.split()[0] for line in lines] == ["goal", "G2", "G8", "G12"]
    assert lines[2].endswith("0.50")
    assert " NO " in lines[2]
    assert lines[3].endswith("yes")  # Nothing can be divided by zero.


def test_file_names_its_schema(tmp_path: Path) -> None:
    write(tmp_path / "out.json", [])
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == "agent-workbench/benchmarks/1"

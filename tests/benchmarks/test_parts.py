"""Each goal has its own part, all of them run with one command, and nothing stays behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks import parts as running
from benchmarks.__main__ import GOALS, parts


def test_every_goal_has_a_part_and_every_part_a_module(repository: Path) -> None:
    assert list(GOALS) == [f"G{number}" for number in range(1, 14)]
    modules = {part[0] for part in parts([])}
    assert all((repository / "benchmarks" / f"{module}.py").is_file() for module in modules)
    assert set(GOALS.values()) <= set(parts([]))


def test_each_part_runs_once() -> None:
    assert parts(["G11", "G12"]) == [("screen", "keys", "busy")]
    assert parts(["watch"]) == [("watch", "one"), ("watch", "many"), ("watch", "saves")]
    assert len(parts([])) == len(set(parts([])))


def test_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no G14; there are G1, G2"):
        parts(["G14"])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`benchmarks.made_up`, for a part that runs in the test's folder."""
    package = tmp_path / "benchmarks"
    package.mkdir()
    (package / "__init__.py").touch()
    source = Path(str(figures.__file__)).read_text()
    (package / "figures.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    return package / "made_up.py"


def test_part_returns_its_figures(module: Path) -> None:
    module.write_text("from benchmarks import figures\nfigures.record('G1', 'x', 2.0)\n")
    done = running.run_part(["made_up"])
    assert done.figures == [figures.Figure("G1", "x", 2.0)]
    assert done.faults == []


def test_figures_before_a_failure_are_kept(module: Path) -> None:
    module.write_text("from benchmarks import figures\nfigures.record('G1', 'x', 2.0)\nraise SystemExit(3)\n")
    done = running.run_part(["made_up"])
    assert len(done.figures) == 1
    assert done.faults == ["made_up: ended with 3"]


def test_leftover_processes_are_reported_and_killed(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_SETTLE", 0.0)
    module.write_text(
        "import subprocess, pathlib\n"
        "left = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "pathlib.Path('pid').write_text(str(left.pid))\n"
    )
    done = running.run_part(["made_up"])
    assert done.faults == ["made_up: left 1 processes behind"]
    pid = (module.parents[1] / "pid").read_text()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
    assert state.strip()[:1] in ("", "Z")


def test_hanging_part_is_ended(module: Path) -> None:
    module.write_text("import time\ntime.sleep(1000)\n")
    done = running.run_part(["made_up"], longest=0.5)
    assert done.faults == ["made_up: took longer than 0.5 s and was ended"]


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

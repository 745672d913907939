"""Damaged files of every kind: each reports its own faults quickly and raises nothing."""

import contextlib
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.mutations import mutated
from workbench.agents.environment import agent_environment
from workbench.agents.python_source import agent_attribute
from workbench.agents.workspace import open_workspace
from workbench.editing.check.project import check_project
from workbench.editing.migration import AlreadyCurrentError, migrate
from workbench.files.criteria import read_config
from workbench.files.evalset import BrokenFileError, open_evalset, read_initial_session
from workbench.files.settings import read_settings

_SAMPLES = Path(__file__).parents[2] / "sample_agents"
_EVALSETS = sorted([*_SAMPLES.rglob("*.evalset.json"), *_SAMPLES.rglob("*.test.json")])
_CONFIGS = sorted(_SAMPLES.rglob("test_config.json"))
_SOURCES = sorted(_SAMPLES.rglob("agent.py"))
_SEEDS = st.integers(0, 1 << 32)
_MOST_SECONDS = 2


def _damaged(folder: Path, files: list[Path], kind: str, seed: int) -> Path:
    chance = random.Random(seed)
    source = chance.choice(files)
    file = folder / source.name
    file.write_bytes(mutated(source.read_bytes(), kind, chance)[1])
    return file


@given(_SEEDS)
@settings(deadline=None, max_examples=100)
def test_damaged_evalset_has_faults_or_cases(new_folder: Callable[[], Path], seed: int) -> None:
    file = _damaged(new_folder(), _EVALSETS, "json", seed)
    began = time.process_time()
    document = open_evalset(file)
    faults = document.check()
    for case in document.cases:
        with contextlib.suppress(BrokenFileError):
            document.case(case.index)
    with contextlib.suppress(BrokenFileError, AlreadyCurrentError):
        migrate(file, name="x")
    assert faults or document.cases
    assert not any("report it" in fault.hint for fault in faults)
    assert time.process_time() - began < _MOST_SECONDS


@given(_SEEDS)
@settings(deadline=None, max_examples=100)
def test_damaged_config_or_session_has_faults(new_folder: Callable[[], Path], seed: int) -> None:
    file = _damaged(new_folder(), _CONFIGS, "json", seed)
    config = read_config(file)
    assert not any("report it" in fault.hint for fault in config.faults)
    with contextlib.suppress(BrokenFileError):
        read_initial_session(file)


@given(_SEEDS)
@settings(deadline=None, max_examples=60)
def test_damaged_agent_or_env_is_read_without_running_it(new_folder: Callable[[], Path], seed: int) -> None:
    file = _damaged(new_folder(), _SOURCES, "python", seed)
    agent_attribute(file)
    (file.parent / ".env").write_bytes(mutated(b"A=1\nB='${A} ${C:-x}'\n", "text", random.Random(seed))[1])
    agent_environment(file.parent, {})


@given(_SEEDS)
@settings(deadline=None, max_examples=60)
def test_damaged_settings_are_one_fault(new_folder: Callable[[], Path], seed: int) -> None:
    file = new_folder() / "config.toml"
    chance = random.Random(seed)
    text = b'theme = "night"\n[prices]\n"a" = { input = 0.3, output = 2.5 }\n[keys]\nrun = ["R"]\n'
    file.write_bytes(mutated(text, chance.choice(("text", "python")), chance)[1])
    read_settings(file)
    file.write_bytes(b"a = " + b"[" * chance.choice((500, 5_000, 50_000)))
    assert read_settings(file).faults
    file.write_bytes(b"a = " + b"9" * 5_000)
    assert read_settings(file).faults


@given(st.lists(_SEEDS, min_size=1, max_size=8))
@settings(deadline=None, max_examples=15)
def test_good_file_beside_damaged_ones_is_complete(new_folder: Callable[[], Path], seeds: list[int]) -> None:
    root = new_folder()
    shutil.copytree(_SAMPLES / "wrapped_bot", root / "bot", ignore=shutil.ignore_patterns("__pycache__"))
    for number, seed in enumerate(seeds):
        folder = root / "bot" / f"m{number}"
        folder.mkdir()
        _damaged(folder, _EVALSETS, "json", seed)
        _damaged(folder, _CONFIGS, "json", seed)
    workspace = open_workspace(root)
    problems = check_project(workspace)
    good = next(entry for entry in workspace.evalsets if entry.file.parent == root / "bot")
    assert good.agent is not None
    assert good.document.case(0).turns
    assert not any(problem.fault.file == good.file and problem.fault.severity == "error" for problem in problems)

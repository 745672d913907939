"""Sources that Python's parser cannot handle are errors, not crashes."""

import os
import sys
import time
from pathlib import Path

import pytest

from workbench.agents.answering_child import FunctionFailedError, Functions
from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import JudgeEnvironment
from workbench.agents.ownership import declared_name
from workbench.agents.python_source import (
    LARGEST_SOURCE,
    _usable,
    agent_attribute,
    fails_in_adk,
    function_file,
    missing_evaluate,
    missing_function,
    parse_source,
)
from workbench.files.plugins import OWN, Extension, Trouble, module_file
from workbench.worker.drivers import _drivers


@pytest.mark.parametrize(
    "source",
    [
        b"-" * 100_000 + b"1", b"a" + b".b" * 100_000, b"a+" * 100_000 + b"a", b"a" + b"()" * 50_000,
        b"if a:\n  pass\n" + b"elif a:\n  pass\n" * 20_000, b"1 if a else " * 20_000 + b"1", b"lambda:" * 50_000 + b"1",
    ],
    ids=["minus", "attributes", "sum", "calls", "elif", "else", "lambda"],
)  # fmt: skip
def test_deeply_nested_expression_is_an_error(source: bytes) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_source(source)


def test_large_source_is_not_parsed() -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="at most 512 kB are parsed"):
        parse_source(b"a=1;" * LARGEST_SOURCE)
    assert time.process_time() - began < 1


def test_name_of_an_agent_is_found_in_linear_time_even_in_odd_files(tmp_path: Path) -> None:
    began = time.process_time()
    python, yaml = tmp_path / "agent.py", tmp_path / "root_agent.yaml"
    python.write_text(f"from {'import ' * 10_000}\nfrom desk import root_agent\n")
    assert agent_attribute(python)[0] == "root_agent"
    yaml.write_text(f"name: a{' ' * 10_000}x'y'\nname: desk  # of parcels\n")
    assert declared_name(AgentFolder("a", tmp_path, "yaml", yaml, "")) == "desk"
    assert time.process_time() - began < 1


def test_source_of_a_metric_that_is_nested_too_deeply_is_left_to_the_call(tmp_path: Path) -> None:
    assert missing_evaluate({"file": "", "source": f"{'-' * 100_000}1"}, tmp_path) == ""


GOOD = "import json\ndef recognise(found): ...\nasync def answer(agent, message, session): ...\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that cannot be imported, around the modules that a test writes."""
    package = tmp_path / "package_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return package


def usable(package: Path, source: str) -> Path | Trouble:
    (package / "driver.py").write_text(source, encoding="utf-8")
    return _usable(Extension("agents", "mine", f"{package.name}.driver", "a-package"))


def test_driver_file_is_found_without_importing_its_package(package: Path) -> None:
    assert usable(package, GOOD) == package / "driver.py"
    assert package.name not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        module_file(f"{package.name}.driver.more")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (GOOD.replace("recognise", "other"), "defines no recognise"),
        ("", "defines no answer and no recognise"),
        (f"import numpy, os\nfrom chain.core import x\n{GOOD}", "imports chain, numpy at its top"),
        (
            f"import chain\nfrom chain import x\n{GOOD}",
            "imports chain at its top, but an agent's interpreter may lack it",
        ),
        (f"from . import sibling\n{GOOD}", "imports its own package at its top"),
        ("def recognise(:", "SyntaxError"),
    ],
)
def test_unusable_driver_is_named(package: Path, source: str, reason: str) -> None:
    found = usable(package, source)
    assert isinstance(found, Trouble)
    assert reason in found.reason


def test_built_in_drivers_are_listed() -> None:
    assert [driver.name for driver in _drivers()] == [name for name, value in OWN["agents"].items() if ":" in value]


FILES = {
    "desk/__init__.py": "",
    "desk/agent.py": "root_agent = None\n",
    "desk/own.py": "import json\nfrom json import dumps as written\ndef brief(q): return 'x'\n"
    "class Judge:\n    @staticmethod\n    def of(q): return 'x'\n"
    "if True:\n    def nested(q): return 'x'\nalias = other = brief\n",
    "desk/open.py": "from desk.own import *\n",
    "desk/dynamic.py": "globals()['made'] = lambda q: 'x'\n",
    "desk/broken.py": "def brief(:\n",
    "shared/__init__.py": "def inside(q): return 'x'\n",
    "src/deep/judges.py": "def brief(q): return 'x'\n",
}


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")


THERE = [
    ("desk.own.brief", "desk/own.py"),
    ("agent.own.brief", "desk/own.py"),
    ("own.brief", "desk/own.py"),
    ("desk.own:Judge.of", "desk/own.py"),
    ("desk.own.nested", "desk/own.py"),
    ("desk.own.other", "desk/own.py"),
    ("desk.own.written", "desk/own.py"),
    ("desk.open.brief", "desk/open.py"),
    ("desk.dynamic.made", "desk/dynamic.py"),
    ("shared.inside", "shared/__init__.py"),
    ("deep.judges.brief", "src/deep/judges.py"),
]
MISSING = [
    ("desk.own.brif", "own.py has no function brif"),
    ("agent.own.brif", "own.py has no function brif"),
    ("desk.owm.brief", "there is no module desk.owm: "),
    ("brief", "brief does not name a function; use package.module.function"),
    ("", "an empty name does not name a function"),
]


@pytest.mark.parametrize(("path", "file"), THERE)
async def test_existing_functions_are_found(path: str, file: str, tmp_path: Path) -> None:
    root, folder = tmp_path, tmp_path / "desk"
    assert function_file(path, root, folder) == tmp_path / file
    assert missing_function(path, root, folder) == ""
    functions = Functions(JudgeEnvironment("", os.environ, sys.executable, str(root), str(folder), str(root)))
    try:
        assert await functions.call("judge", path, {}) in ("x", '"x"', "{}")
    finally:
        await functions.close()


@pytest.mark.parametrize(("path", "message"), MISSING)
async def test_certainly_missing_functions_are_reported(path: str, message: str, tmp_path: Path) -> None:
    root, folder = tmp_path, tmp_path / "desk"
    assert message in missing_function(path, root, folder)
    functions = Functions(JudgeEnvironment("", os.environ, sys.executable, str(root), str(folder), str(root)))
    try:
        with pytest.raises(FunctionFailedError):
            await functions.call("judge", path, {})
    finally:
        await functions.close()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def m(a, b, c, d): return EvaluationResult(overall_score=1, per_invocation_results=[])", "it stops"),
        ("async def m(a, b, c, d): return e.EvaluationResult(overall_score=1, overall_eval_status=1)", "it stops"),
        ("def m(a, b, c, d): return EvaluationResult(overall_score=1, per_invocation_results=made)", ""),
        ("def m(a, b, c, d): return EvaluationResult(**made)", ""),
        ("def m(a, b, c, d): return EvaluationResult()", ""),
        ("def m(a, b, c, d, final_session_state): return made", "without `final_session_state`"),
        ("def m(a, b, c, d, *, final_session_state): return made", "without `final_session_state`"),
        ("def m(a, b, c, d, final_session_state=None): return made", ""),
        ("def m(a, b, c, d, *, final_session_state=None): return made", ""),
        ("m = made", ""),
        ("def m(", ""),
    ],
)
def test_metrics_that_adk_cannot_use_are_named(source: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir(exist_ok=True)
    (tmp_path / "desk" / "whole.py").write_text(source)
    found = fails_in_adk("desk.whole.m", tmp_path, tmp_path / "desk")
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize("path", ["numpy.testing.nothing", "json.dumps", "desk.broken.brief", "nowhere.at_all"])
def test_uncertain_functions_are_not_reported(path: str, tmp_path: Path) -> None:
    assert missing_function(path, tmp_path, tmp_path / "desk") == ""

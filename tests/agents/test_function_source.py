"""User functions found from files alone, compared with the child that really imports them."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from workbench.agents.functions import FunctionFailedError, Functions
from workbench.agents.workspace.python_source import fails_in_adk, function_file, missing_function

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


@dataclass(frozen=True)
class Place:
    root: str
    folder: str
    cwd: str
    values: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    interpreter: str = sys.executable


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
    functions = Functions(Place(str(root), str(folder), str(root)))
    try:
        assert await functions.call("judge", path, {}) in ("x", '"x"', "{}")
    finally:
        await functions.close()


@pytest.mark.parametrize(("path", "message"), MISSING)
async def test_certainly_missing_functions_are_reported(path: str, message: str, tmp_path: Path) -> None:
    root, folder = tmp_path, tmp_path / "desk"
    assert message in missing_function(path, root, folder)
    functions = Functions(Place(str(root), str(folder), str(root)))
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

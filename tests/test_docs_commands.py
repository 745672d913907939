"""The `sh` blocks of all pages: each command runs in a copy of the sample agents."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.cli.projects import run_here, run_script
from tests.testing.pytest_runs import run_pytest
from tests.warm.nursery import Nursery
from tests.warm.scorers import warm_scorers
from workbench.cli.command_line import execute
from workbench.files.folders import trust
from workbench.ui.terminal.themes import Themes

pytestmark = pytest.mark.usefixtures("warm_scorers", "warm_programs")

_ROOT = Path(__file__).parent.parent
_BLOCKS = {
    page: re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for page in (*_ROOT.glob("*.md"), *_ROOT.glob("docs/*.md"))
}
_PAGES = sorted(page for page, blocks in _BLOCKS.items() if blocks)
_COMMANDS = "run|eval|try|score|merge|check|status|migrate|freeze|history|compare|export|--version|--help"
_OPENS = re.compile(rf"^agent-workbench(?! ({_COMMANDS}))")
_NEEDS_SHELL = re.compile(r"^(?!agent-workbench)|[|&<>$;]")
_WORDS = set(re.findall(r"\w+", str(list(_BLOCKS.values()))))


def _text(name: str) -> str:
    return (_ROOT / "docs" / name).read_text("utf-8")


def _commands(block: str) -> list[str]:
    """Split a block into its commands, without comments.

    Calls of `make` only show what they would do, because CI runs them. Tests are only collected.
    """
    lines = block.replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    commands = [re.sub(r"^make\b", f"make --dry-run --directory={_ROOT}", command) for command in commands]
    return [re.sub(r"^\.venv/bin/.*pytest", rf"cd {_ROOT} && \g<0> --collect-only", command) for command in commands]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Path:
    """Return the sample agent that the pages name, after two runs. Each wrote a report. The first is the baseline.

    Its evalsets have the cases that the pages name, or one.
    """
    folder = tmp_path_factory.mktemp("docs") / "sample_agents"
    unused = shutil.ignore_patterns("__pycache__", ".*", "customers")
    shutil.copytree(_ROOT / "sample_agents/order_desk", folder / "order_desk", ignore=unused)
    shutil.copy(_ROOT / "sample_agents/scripted_judge.py", folder)
    for file in folder.rglob("*.evalset.json"):
        evalset = json.loads(file.read_text("utf-8"))
        cases = evalset["eval_cases"]
        evalset["eval_cases"] = [case for case in cases if case["eval_id"] in _WORDS] or cases[:1]
        file.write_text(json.dumps(evalset), "utf-8")
    (folder / ".git").mkdir()
    (folder / "strict.json").write_text('{"criteria": {"response_match_score": 0.95}}', "utf-8")
    old = '[{"query": "hello", "expected_tool_use": [], "reference": "Hello"}]'
    (folder / "order_desk/old.test.json").write_text(old, "utf-8")
    for command in (
        "agent-workbench run order_desk/refunds.evalset.json --json main.json",
        "agent-workbench history pin last",
        "agent-workbench run order_desk/refunds.evalset.json --json report.json",
    ):
        with warm_scorers(nursery):
            code, output = _run(command, folder)
        assert code in (0, 1), output
    return folder


@pytest.fixture
def project(samples: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(samples, tmp_path / "sample_agents", symlinks=True))
    trust(folder)
    return folder


def _run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command to its end; return its exit code and its output.

    Calls of the program run in this process, and those of pytest as forks, which saves the time to start them.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "pytest":
        tests = run_pytest(folder, *words[1:], plugins=("pytest_asyncio.plugin", "workbench.testing.plugin"))
        return tests.code, tests.output
    environment = {"GITHUB_STEP_SUMMARY": "summary.md", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with patch("workbench.cli.watch_run.watch", return_value=0):
        if _NEEDS_SHELL.search(command.partition(" #")[0]):
            done = run_script(folder, command, environment)
        else:
            done = run_here(folder, words[1:], environment)
    return done.returncode, done.stdout + done.stderr


def _open(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit code of a command that opens the screen, without opening it."""

    def open_screen(path: Path, *, theme: str | None, **more: Any) -> int:
        if theme is not None:
            Themes().read(theme)
        return 0 if path.exists() else 2

    with patch("workbench.cli.command_line.can_draw", return_value=True), chdir(folder):
        return execute(shlex.split(command, comments=True)[1:], open_screen), ""


def _first_case(project: Path) -> Path:
    """Write the evalset of the page beside an agent that passes it."""
    (evalset,) = re.findall(r"^```json\n(.*?)^```", _text("first-case.md"), re.MULTILINE | re.DOTALL)[:1]
    (project / "hello").mkdir()
    (project / "hello/agent.py").write_text("def root_agent(message, session):\n    return 'Order A-7 is late.'\n")
    (project / "hello/first.evalset.json").write_text(evalset, "utf-8")
    return _named_path(project)


def _named_path(project: Path) -> Path:
    """Make the folder that stands for any project in the pages."""
    shutil.copytree(project / "order_desk", project / "path/to/project/order_desk")
    return project


def _start(project: Path) -> Path:
    """Make the folders that the start page names: the samples, and a project."""
    shutil.copytree(project / "order_desk", project / "sample_agents/order_desk")
    return _named_path(project)


def _from_adk(project: Path) -> Path:
    """Name an agent and its evalset as the page does, and write a session of `adk test`."""
    shutil.copytree(project / "order_desk", project / "my_agent")
    evalset = (project / "my_agent/refunds.evalset.json").read_text("utf-8")
    (project / "my_agent/set.evalset.json").write_text(evalset.replace("on_time", "one").replace("late_parcel", "two"))
    said = [(author, {"role": "user", "parts": [{"text": "Hello"}]}) for author in ("user", "order_desk")]
    events = [{"author": author, "content": content} for author, content in said]
    (project / "order_desk/tests").mkdir()
    (project / "order_desk/tests/hello.json").write_text(json.dumps({"events": events}), "utf-8")
    return project


_PREPARATIONS: dict[str, Callable[[Path], Path]] = {
    "first-case.md": _first_case,
    "from-adk.md": _from_adk,
    "README.md": _start,
    "tour.md": lambda project: project.parent,
}
"""What a page needs besides the samples; each returns the folder in which its commands run."""


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_each_documented_command_runs(page: Path, project: Path) -> None:
    prepare = _PREPARATIONS.get(page.name)
    folder = prepare(project) if prepare else project
    for block in _BLOCKS[page]:
        for command in _commands(block):
            code, output = (_open if _OPENS.search(command) else _run)(command, folder)
            assert code not in (2, 126, 127), f"{command} ended with {code}:\n{output}"

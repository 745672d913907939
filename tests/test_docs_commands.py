"""The `sh` blocks of all pages: each command runs in a copy of the sample agents."""

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.projects import run_here
from workbench.files.folders import trust

pytestmark = pytest.mark.usefixtures("warm_scorers")

_ROOT = Path(__file__).parent.parent
_BLOCKS = {
    page: re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for page in (*_ROOT.glob("*.md"), *_ROOT.glob("docs/*.md"))
}
_PAGES = sorted(page for page, blocks in _BLOCKS.items() if blocks)
_COMMANDS = "run|eval|try|score|merge|check|status|migrate|freeze|history|compare|export|--version|--help"
_NEVER_ENDS = re.compile(rf"--watch|^agent-workbench(?! ({_COMMANDS}))")
_NEEDS_SHELL = re.compile(r"^(?!agent-workbench)|[|&<>$;]")
_WITHIN = 60.0


def _text(name: str) -> str:
    return (_ROOT / "docs" / name).read_text("utf-8")


def _commands(block: str) -> list[str]:
    """Split a block into its commands, without comments.

    Calls of `make` only show what they would do, because CI runs them. Commands that use the `.venv` of a checkout run
    in it.
    """
    lines = block.replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    commands = [re.sub(r"^make\b", f"make --dry-run --directory={_ROOT}", command) for command in commands]
    return [re.sub(r"^\.venv/bin/", f"cd {_ROOT} && ", command) for command in commands]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample agent that the pages name, after two runs. Each wrote a report. The first is the baseline."""
    folder = tmp_path_factory.mktemp("docs") / "sample_agents"
    unused = shutil.ignore_patterns("__pycache__", ".*", "customers")
    shutil.copytree(_ROOT / "sample_agents/order_desk", folder / "order_desk", ignore=unused)
    (folder / ".git").mkdir()
    (folder / "strict.json").write_text('{"criteria": {"response_match_score": 0.95}}', "utf-8")
    old = '[{"query": "hello", "expected_tool_use": [], "reference": "Hello"}]'
    (folder / "order_desk/old.test.json").write_text(old, "utf-8")
    for command in (
        "agent-workbench run order_desk/refunds.evalset.json --json main.json",
        "agent-workbench history pin last",
        "agent-workbench run order_desk/refunds.evalset.json --json report.json",
    ):
        code, output = _run(command, folder)
        assert code in (0, 3), output
    return folder


@pytest.fixture
def project(samples: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(samples, tmp_path / "sample_agents", symlinks=True))
    trust(folder)
    return folder


def _environment() -> dict[str, str]:
    programs = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": "summary.md",
        # The pages run one test file. Importing plugins that it does not use would take longer than its tests.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "pytest_asyncio.plugin,workbench.testing.plugin",
    }


def _run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command to its end; return its exit code and its output.

    A call of the program alone runs in this process, which saves the time to start one.
    """
    if not _NEEDS_SHELL.search(command.partition(" #")[0]):
        ended = run_here(folder, shlex.split(command, comments=True)[1:], _environment())
        return ended.returncode, ended.stdout + ended.stderr
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_WITHIN,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def _start_and_end(command: str, folder: Path) -> tuple[int, str]:
    """Start a command in a terminal, and end it once its screen is open or it watches."""
    ours, theirs = pty.openpty()
    environment = {**_environment(), "TERM": "xterm-256color"}
    words = ["bash", "-c", f"exec {command}"]
    output = b""
    with subprocess.Popen(words, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        with suppress(OSError):  # the other end of the terminal is closed
            while select.select([ours], [], [], _WITHIN)[0] and (read := os.read(ours, 65536)):
                output += read
                if b"\x1b[?1049h" in output or b"watching" in output:
                    process.send_signal(signal.SIGTERM)
        os.close(ours)
        return process.wait(_WITHIN), output.decode(errors="replace")


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
            code, output = (_start_and_end if _NEVER_ENDS.search(command) else _run)(command, folder)
            assert code not in (2, 126, 127), f"{command} ended with {code}:\n{output}"

"""Modules loaded in fresh interpreters. An unnoticed heavy import makes every start slow."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HEAVY = {"google", "agentplatform", "litellm", "pandas", "nltk", "numpy", "rouge_score", "scipy", "absl"}
SCREEN = {"textual"}
LATER = {"pydantic", "pydantic_core", "rich", "asyncio"}
"""Modules that a usage error does not import."""
SLOW = {"importlib.metadata", "workbench.events.events"}
"""Modules that a mistyped run or target does not import. Each takes an eighth of a whole start."""

_AROUND = "import sys; before = set(sys.modules)\n{}\nprint('\\n'.join(set(sys.modules) - before))"


def loaded(code: str, repository: Path) -> set[str]:
    """Return top-level names of the modules that `code` loads in a fresh interpreter.

    Packages that load parts of themselves at every start of Python do not count.
    """
    done = subprocess.run(
        [sys.executable, "-c", _AROUND.format(code)],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def program(*words: str) -> str:
    """Return code that runs the program and ignores its exit code."""
    return (
        "import contextlib, io\nfrom workbench.__main__ import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()), "
        f"contextlib.redirect_stderr(io.StringIO()): main({list(words)!r})"
    )


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["run", "--help"], ["--theem"], ["run", ".", "--jsn", "-", "--json", "-"]],
    ids=" ".join,
)
def test_help_and_version_load_almost_nothing(words: list[str], repository: Path) -> None:
    names = loaded(program(*words), repository)
    assert "click" in names
    assert not names & (HEAVY | SCREEN | LATER)


USAGE_ERRORS = [
    "nowhere",
    "run",
    "run nowhere",
    "run nowhere.evalset.json",
    "run sample_agents --case nowhere",
    "run sample_agents/order_desk/refunds.evalset.json:nowhere",
    "run sample_agents --agent tests",
    "run sample_agents --config nowhere.json",
    "run sample_agents --initial-session-file nowhere.json",
    "run sample_agents --python nowhere",
    "run sample_agents --watch nowhere",
    "eval sample_agents/order_desk nowhere.evalset.json",
    "score",
    "score nowhere",
    "score nowhere.json --json -",
    "compare nowhere",
    "compare nowhere elsewhere",
    "export nowhere",
    "export nowhere --format html",
    "history nowhere",
    "history pin",
    "history delete nowhere",
    "migrate nowhere.json",
    "migrate sample_agents -o sample_agents",
    "check nowhere",
    "check --config nowhere",
]


def test_usage_errors_load_no_run_modules(repository: Path) -> None:
    """All run in one interpreter, which is quicker. The first that loads a heavy module is named."""
    code = (
        "import contextlib, io, sys\nfrom workbench.__main__ import main\n"
        f"for words in {USAGE_ERRORS!r}:\n"
        "    try:\n"
        "        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        "            main(words.split())\n"
        "    except SystemExit as ended:\n"
        f"        slow = {SLOW!r} if words.startswith(('run', 'score', 'compare')) else set()\n"
        f"        heavy = ({HEAVY | SCREEN | LATER!r} | slow) & (set(sys.modules) - before)\n"
        "        assert ended.code == 2 and not heavy, (words, ended.code, heavy)"
    )
    assert "click" in loaded(code, repository)


@pytest.mark.parametrize("words", [[], ["."]], ids=["alone", "with a folder"])
def test_folder_is_opened_without_reading_options(words: list[str], repository: Path) -> None:
    code = (
        "import contextlib, os, sys\nfrom workbench.__main__ import main\nfrom workbench.ui import app\n"
        "os.environ['TERM'] = 'xterm'\n"
        "app.open_screen = lambda path: print('opened') or 0\n"
        "sys.stdin.isatty = sys.stdout.isatty = lambda: True\n"
        f"with contextlib.suppress(SystemExit): main({words!r})"
    )
    names = loaded(code, repository)
    assert "opened" in names
    assert not names & (HEAVY | SCREEN | LATER | {"click"})


def test_package_import_loads_no_other_modules(repository: Path) -> None:
    assert loaded("import workbench", repository) == {"workbench"}


def test_run_loads_no_screen_and_no_framework(repository: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "agent.py").write_text("def root_agent(message, session):\n    return message\n", encoding="utf-8")
    turn = '{"user_content": {"parts": [{"text": "hi"}]}, "final_response": {"parts": [{"text": "hi"}]}}'
    cases = f'{{"eval_set_id": "s", "eval_cases": [{{"eval_id": "c", "conversation": [{turn}]}}]}}'
    (tmp_path / "s.evalset.json").write_text(cases, encoding="utf-8")
    report = tmp_path / "report.json"
    words = [
        "run",
        str(tmp_path),
        "--json",
        str(report),
        "--junit",
        str(tmp_path / "j.xml"),
        "--print-detailed-results",
    ]
    names = loaded(program(*words), repository)
    assert '"passed": 1' in report.read_text(encoding="utf-8")
    assert not names & (HEAVY | SCREEN)


def test_opening_the_workbench_loads_no_framework(repository: Path) -> None:
    names = loaded(
        "import workbench.ui.app, workbench.ui.main.workbench_app; "
        "import workbench.agents.workspace, workbench.run.run",
        repository,
    )
    assert "textual" in names
    assert not names & HEAVY


LOWER = ("text", "events", "files", "store", "agents", "judges", "criteria", "freshness", "run")


def test_only_the_screen_imports_textual(repository: Path) -> None:
    """All lower packages, and what renders text and controls the screen, in one interpreter."""
    forbidden = HEAVY | SCREEN | {"click"}
    code = (
        f"import importlib, pkgutil\nfor room in {LOWER}:\n"
        "    root = importlib.import_module(f'workbench.{room}')\n"
        "    for item in pkgutil.walk_packages(getattr(root, '__path__', []), root.__name__ + '.'):\n"
        "        if not item.name.rpartition('.')[2].startswith('__') and '.worker' not in item.name:\n"
        "            importlib.import_module(item.name)\n"
        "import workbench.results.panes, workbench.ui.main.wiring"
    )
    names = loaded(code, repository)
    assert "workbench" in names
    assert not names & forbidden


def test_worker_needs_only_the_standard_library(repository: Path) -> None:
    """The agent's interpreter may have nothing else installed. Modules for ADK agents load only for them."""
    code = (
        "import importlib, pkgutil, sys\nroot = importlib.import_module('workbench.worker')\n"
        "for item in pkgutil.iter_modules(root.__path__, root.__name__ + '.'):\n"
        "    if not item.name.endswith('__main__') and '.adk_' not in item.name:\n"
        "        importlib.import_module(item.name)"
    )
    names = loaded(code, repository)
    outside = {name for name in names if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert outside == {"workbench"}


def test_architecture_page_has_the_order_of_the_packages(repository: Path) -> None:
    """The checked layers are the rows of the page, the other way round."""
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    layers = [sorted(re.findall(r"\w+", layer)) for layer in reversed(contract["layers"])]
    page = (repository / "docs/architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("\n## Packages\n")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted(name for layer in layers for name in layer)
    while layers:
        layer = layers.pop(0)
        assert sorted(rows[: len(layer)]) == layer
        rows = rows[len(layer) :]


def test_packages_have_at_most_one_level_of_folders(repository: Path) -> None:
    paths = (path.relative_to(repository) for path in (repository / "workbench").rglob("*.py"))
    assert not [path for path in paths if len(path.parts) > 4]

"""The walk through a project, and the agents and evalsets it finds."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agents.conftest import AGENT, Tree, evalset
from workbench.agents.discovery import AgentFolder, Discovery, agent_at, discover, is_evalset_file, name_agents
from workbench.agents.python_source import agent_attribute

DATASET = '{"eval_cases": [{"eval_case_id": "a", "prompt": {"role": "user", "parts": [{"text": "hi"}]}}]}'


def _evalsets(project: Path, found: Discovery) -> list[str]:
    return [path.relative_to(project).as_posix() for path in found.evalsets]


def _agents(project: Path, found: Discovery) -> list[str]:
    return [agent.folder.relative_to(project).as_posix() for agent in found.agents]


def _reasons(project: Path, found: Discovery) -> dict[str, str]:
    return {item.path.relative_to(project).as_posix(): item.reason for item in found.ignored}


def test_agents_and_evalsets_are_found_in_order_at_any_depth(tree: Tree) -> None:
    project = tree(
        {
            "b/agent.py": AGENT,
            "a/__init__.py": AGENT,
            "a/deep/er/x.test.json": "{}",
            "c/d/root_agent.yaml": "name: x",
            "a/a.evalset.json": "{}",
            "b/notes.txt": "",
            "e/agent.py": "x = 1",
        }
    )
    found = discover(project)
    assert _agents(project, found) == ["a", "b", "c/d"]
    assert _evalsets(project, found) == ["a/a.evalset.json", "a/deep/er/x.test.json"]
    assert [agent.kind for agent in found.agents] == ["python", "python", "yaml"]
    assert found.ignored == ()


def test_folder_itself_may_be_an_agent(tree: Tree) -> None:
    project = tree({"agent.py": AGENT})
    agent = discover(project).agents[0]
    assert agent == AgentFolder("project", project, "python", project / "agent.py", "root_agent")


@pytest.mark.parametrize(
    ("files", "folder", "reason"),
    [
        ({"env/pyvenv.cfg": "", "env/lib/x/agent.py": AGENT}, "env", "virtual environment"),
        ({"env/conda-meta/": "", "env/lib/x/agent.py": AGENT}, "env", "virtual environment"),
        ({"node_modules/x/a.test.json": "{}"}, "node_modules", "npm"),
        ({"lib/site-packages/x/agent.py": AGENT}, "lib/site-packages", "installed"),
        ({".hidden/agent.py": AGENT}, ".hidden", "hidden"),
        ({"a/.adk/x.evalset.json": "{}"}, "a/.adk", "ADK"),
        ({".workbench/x.evalset.json": "{}"}, ".workbench", "workbench"),
    ],
)
def test_skipped_folders_are_named(tree: Tree, files: dict[str, str], folder: str, reason: str) -> None:
    project = tree(files)
    found = discover(project)
    assert (found.agents, found.evalsets) == ((), ())
    assert reason in _reasons(project, found)[folder]


def test_caches_and_git_are_skipped_silently(tree: Tree) -> None:
    project = tree({"__pycache__/a.test.json": "{}", ".git/a.test.json": "{}"})
    found = discover(project)
    assert (found.evalsets, found.ignored) == ((), ())


def test_recordings_beside_an_evalset_are_not_searched(tree: Tree) -> None:
    project = tree({"a.evalset.json": "{}", "a.evalset.frozen/eval_cases.frozen.json": '{"eval_cases": []}'})
    found = discover(project)
    assert _evalsets(project, found) == ["a.evalset.json"]
    assert found.ignored == ()


def test_requested_environment_is_searched(tree: Tree) -> None:
    project = tree({"pyvenv.cfg": "", "agent.py": AGENT})
    assert _agents(project, discover(project)) == ["."]


def test_gitignore_files_at_all_levels_apply(tree: Tree) -> None:
    project = tree(
        {
            ".git/info/exclude": "private/",
            ".gitignore": "build/\n*.test.json\nold_*\n",
            "sub/.gitignore": "!keep.test.json\n",
            "sub/keep.test.json": "{}",
            "sub/drop.test.json": "{}",
            "sub/build/x.evalset.json": "{}",
            "sub/private/x.evalset.json": "{}",
            "sub/old_agent/agent.py": AGENT,
            "sub/agent.py": AGENT,
        }
    )
    found = discover(project)
    assert _evalsets(project, found) == ["sub/keep.test.json"]
    assert _agents(project, found) == ["sub"]
    reasons = _reasons(project, found)
    assert sorted(reasons) == ["sub/build", "sub/drop.test.json", "sub/old_agent", "sub/private"]
    assert "line 2: *.test.json" in reasons["sub/drop.test.json"]
    # Rules above the opened folder apply too.
    assert _evalsets(project, discover(project / "sub")) == ["sub/keep.test.json"]


def test_agent_file_that_git_ignores_defines_nothing(tree: Tree) -> None:
    project = tree({".gitignore": "agent.py", "a/agent.py": AGENT})
    found = discover(project)
    assert found.agents == ()
    assert "ignored by git" in _reasons(project, found)["a/agent.py"]


def test_requested_ignored_folder_is_searched(tree: Tree) -> None:
    project = tree({".git/": "", ".gitignore": "build/", "build/x/a.test.json": "{}", "build/.gitignore": "y/"})
    tree({"build/y/a.test.json": "{}"})
    assert _evalsets(project, discover(project / "build")) == ["build/x/a.test.json"]
    assert _evalsets(project, discover(project / "build" / "x")) == ["build/x/a.test.json"]


def test_ignore_rules_above_the_repository_do_not_apply(tree: Tree) -> None:
    project = tree({".gitignore": "*", "repo/.git/": "", "repo/a.test.json": "{}"})
    assert _evalsets(project, discover(project / "repo")) == ["repo/a.test.json"]


def test_link_loops_end_and_each_folder_is_visited_once(tree: Tree) -> None:
    project = tree({"b/real/agent.py": AGENT, "b/real/x.test.json": "{}"})
    (project / "b" / "real" / "loop").symlink_to(project / "b")
    (project / "b" / "self").symlink_to("self")
    (project / "a").symlink_to(project / "b" / "real")
    (project / "up").symlink_to(project.parent)
    found = discover(project)
    assert _agents(project, found) == ["b/real"]
    assert _evalsets(project, found) == ["b/real/x.test.json"]
    reasons = _reasons(project, found)
    assert str(project / "b" / "real") in reasons["a"]
    assert "link to" in reasons["b/real/loop"]
    assert "outside the project" in reasons["up"]


def test_link_to_a_skipped_folder_is_followed(tree: Tree) -> None:
    project = tree({".shared/evals/x.test.json": "{}", "agent/agent.py": AGENT})
    (project / "agent" / "evals").symlink_to(project / ".shared" / "evals")
    assert _evalsets(project, discover(project)) == ["agent/evals/x.test.json"]


def test_linked_and_special_files_are_listed(tree: Tree) -> None:
    project = tree({"a.test.json": "{}", ".hidden.test.json": "{}"})
    (project / "b.test.json").symlink_to("a.test.json")
    (project / "gone.test.json").symlink_to("nowhere")
    os.mkfifo(project / "pipe.test.json")
    found = discover(project)
    # Unreadable files are listed too, so that they become errors.
    assert _evalsets(project, found) == ["a.test.json", "b.test.json", "gone.test.json", "pipe.test.json"]
    assert _reasons(project, found) == {".hidden.test.json": "a hidden file"}


def test_unreadable_folders_are_named_and_the_rest_is_found(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree({"a/x.test.json": "{}", "locked/y.test.json": "{}"})
    scan = os.scandir

    def guarded(path: Path | int) -> Iterator[os.DirEntry[str]]:
        if not isinstance(path, int) and Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = discover(project)
    assert _evalsets(project, found) == ["a/x.test.json"]
    assert _reasons(project, found) == {"locked": "cannot be read: Permission denied"}


def test_missing_folder_is_reported_not_raised(tmp_path: Path) -> None:
    found = discover(tmp_path / "nothing")
    assert found.agents == ()
    assert "cannot be read" in found.ignored[0].reason


def test_json_that_looks_like_an_evalset_is_named(tree: Tree) -> None:
    project = tree(
        {
            "a/cases.json": evalset(),
            "a/old.json": '[{"query": "hi", "expected_tool_use": []}]',
            "a/package.json": '{"name": "x"}',
            "a/test_config.json": '{"criteria": {}}',
            "a/run.evalset_result.json": "{}",
        }
    )
    found = discover(project)
    assert found.evalsets == ()
    reasons = _reasons(project, found)
    assert sorted(reasons) == ["a/cases.json", "a/old.json", "a/run.evalset_result.json"]
    assert "looks like an evalset" in reasons["a/cases.json"]
    assert "results" in reasons["a/run.evalset_result.json"]


def test_only_a_limited_number_of_json_files_is_checked(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.agents.discovery._HEADS_READ", 2)
    project = tree({f"data/{number}.json": evalset() for number in range(5)})
    reasons = _reasons(project, discover(project))
    assert sorted(reasons) == [".", "data/0.json", "data/1.json"]
    assert "of 5 JSON files" in reasons["."]


def test_agent_with_a_syntax_error_is_listed(tree: Tree) -> None:
    project = tree({"a/agent.py": "def (:", "b/agent.py": AGENT})
    found = discover(project)
    assert _agents(project, found) == ["b"]
    assert "line 1" in _reasons(project, found)["a/agent.py"]


def test_file_names_that_are_not_utf8_are_listed(tree: Tree) -> None:
    project = tree({"a/agent.py": AGENT})
    odd = os.fsencode(project) + b"/a/\xff.test.json"
    Path(os.fsdecode(odd)).write_text("{}")
    found = discover(project)
    assert _evalsets(project, found) == ["a/\udcff.test.json"]


def test_clashing_agent_names_become_paths(tree: Tree) -> None:
    project = tree({"one/app/agent.py": AGENT, "two/app/agent.py": AGENT, "desk/agent.py": AGENT})
    assert [agent.name for agent in name_agents(discover(project).agents, project)] == ["desk", "one/app", "two/app"]


def test_names_stay_distinct_if_the_root_is_an_agent(tree: Tree) -> None:
    project = tree({"agent.py": AGENT, "project/agent.py": AGENT, "a/project/agent.py": AGENT})
    names = [agent.name for agent in name_agents(discover(project).agents, project)]
    assert names == ["project", "project/a/project", "project/project"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    links=st.lists(
        st.tuples(st.sampled_from(["a", "b", "a/c", "b/d"]), st.sampled_from(["a", "b", "a/c", "b/d", ".", ".."])),
        max_size=6,
    )
)
def test_every_evalset_is_found_once_despite_links(
    new_folder: Callable[[], Path], links: list[tuple[str, str]]
) -> None:
    project = new_folder()
    for name in ("a", "b", "a/c", "b/d"):
        (project / name).mkdir()
        (project / name / "x.test.json").write_text("{}")
    for number, (where, target) in enumerate(links):
        (project / where / f"link{number}").symlink_to(project / target)
    found = discover(project)
    assert _evalsets(project, found) == [f"{name}/x.test.json" for name in ("a/c", "a", "b/d", "b")]
    assert len(found.ignored) == len(links)


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("tests/eval/datasets/basic.json", DATASET, True),
        ("eval/datasets/deep/basic.json", DATASET, True),
        ("datasets/camel.json", '{"evalCases": [{"agentData": {}}]}', True),
        ("datasets/artifacts/traces.json", DATASET, False),
        ("artifacts/datasets/made.json", DATASET, True),
        ("datasets/products.json", '{"products": [{"prompt": "x"}]}', False),
        ("datasets/adk.json", '{"eval_cases": [{"eval_id": "a", "conversation": []}]}', False),
        ("data/basic.json", DATASET, False),
    ],
)
def test_dataset_of_agents_cli_is_found_below_its_folder(tree: Tree, file: str, content: str, found: bool) -> None:
    project = tree({"app/agent.py": AGENT, file: content})
    discovery = discover(project)
    assert (_evalsets(project, discovery) == [file], is_evalset_file(project / file)) == (found, found)


def test_results_of_agents_cli_are_not_evalsets(tree: Tree) -> None:
    project = tree({"artifacts/traces/traces_1.json": DATASET})
    (ignored,) = discover(project).ignored
    assert (ignored.reason, ignored.evalset) == ("results that agents-cli wrote, not an evalset", False)


_ADK = "from google.adk.agents import Agent\n"


def _attribute(folder: Path, **files: str) -> str | None:
    """Return the attribute found in a folder with these files (`agent` for agent.py, `init` for __init__.py …)."""
    names = {"agent": "agent.py", "init": "__init__.py", "yaml": "root_agent.yaml", "main": "main.py"}
    for key, text in files.items():
        (folder / names[key]).write_text(text, encoding="utf-8")
    definition, unreadable = agent_at(folder)
    assert unreadable == ()
    return None if definition is None else definition.attribute


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        ("root_agent = Agent(name='x')", "root_agent"),
        ("root_agent: Agent = Agent(name='x')", "root_agent"),
        ("a = root_agent = Agent(name='x')", "root_agent"),
        ("root_agent, stack = asyncio.run(make())", "root_agent"),
        ("[*rest, root_agent] = make()", "root_agent"),
        ("from .team import router as root_agent", "root_agent"),
        ("from elsewhere import root_agent", "root_agent"),
        ("import team.router as root_agent", "root_agent"),
        ("async def root_agent(message, session):\n    yield 'hi'", "root_agent"),
        ("def root_agent(message, session):\n    return 'hi'", "root_agent"),
        ("async def get_agent_async():\n    return None, None", "get_agent_async"),
        ("if True:\n    root_agent = 1\nelse:\n    pass", "root_agent"),
        ("if x:\n    pass\nelif y:\n    root_agent = make()", "root_agent"),
        ("try:\n    import a\nexcept ImportError:\n    root_agent = make()", "root_agent"),
        ("try:\n    pass\nfinally:\n    root_agent = make()", "root_agent"),
        ("with tracing():\n    root_agent = make()", "root_agent"),
        (_ADK + "from google.adk.apps import App\nroot_agent = Agent()\napp = App(root_agent=root_agent)", "app"),
        ("from google.adk.apps.app import App\napp = App(name='x')", "app"),
        ("from google.adk import apps\napp: apps.App = apps.App(name='x')", "app"),
        ("import google.adk.apps\napp = google.adk.apps.App(name='x')", "app"),
        ("from .factory import make_app\napp = make_app()", "app"),
        (_ADK + "def make():\n    pass\napp = make()", "app"),
        ("from fastapi import FastAPI\napp = FastAPI()\nroot_agent = make()", "root_agent"),
        # None of these is an agent.
        ("root_agent: Agent", None),
        ("def make():\n    root_agent = Agent()", None),
        ("class A:\n    root_agent = 1", None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import root_agent", None),
        ("if __name__ == '__main__':\n    root_agent = Agent()", None),
        ("print(root_agent)\nroot_agent.x = 1\nroot_agent['a'] = 2", None),
        ("from fastapi import FastAPI\napp = FastAPI()", None),
        ("import typer\napp = typer.Typer()", None),
        ("from google.adk.cli.fast_api import get_fast_api_app\napp = get_fast_api_app(agents_dir='.')", None),
        ("def create_app():\n    pass\napp = create_app()", None),
        ("from flask import Flask\nfrom google.adk.runners import Runner\napp = Flask(__name__)", None),
        ("from server import app", None),
        ("def app(scope):\n    pass", None),
        ("app = None", None),
        ("", None),
    ],
)
def test_known_names_define_an_agent(tmp_path: Path, source: str, attribute: str | None) -> None:
    assert _attribute(tmp_path, agent=source) == attribute


def test_agent_module_comes_before_the_package_that_imports_it(tmp_path: Path) -> None:
    _attribute(tmp_path, init="from . import agent", agent="root_agent = make()")
    definition, _ = agent_at(tmp_path)
    assert definition is not None
    assert definition.definition == tmp_path / "agent.py"


@pytest.mark.parametrize(
    ("init", "main", "attribute"),
    [
        ("from .main import root_agent", "", "root_agent"),
        ("from .main import app", "from google.adk.apps import App\napp = App(name='x')", "app"),
        ("from .main import app", "from fastapi import FastAPI\napp = FastAPI()", None),
        ("from .missing import app", "", None),
        ("from .main import app", "def broken(:", None),
        ("# root_agent is elsewhere", "", None),
    ],
)
def test_name_imported_from_another_module_counts_if_that_module_defines_an_agent(
    tmp_path: Path, init: str, main: str, attribute: str | None
) -> None:
    (tmp_path / "main.py").write_text(main)
    assert _attribute(tmp_path, init=init) == attribute


def test_app_imported_by_the_full_name_of_its_package_is_an_agent(tmp_path: Path) -> None:
    package = tmp_path / "desk"
    package.mkdir()
    (package / "main.py").write_text("from google.adk.apps import App\napp = App(name='desk')")
    assert _attribute(package, init="from desk.main import app") == "app"


def test_python_definition_comes_before_yaml(tmp_path: Path) -> None:
    assert _attribute(tmp_path, yaml="name: x") == ""
    assert _attribute(tmp_path, yaml="name: x", agent="tools = []") == ""
    assert _attribute(tmp_path, yaml="name: x", agent="root_agent = make()") == "root_agent"


def test_broken_python_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import os\ndef f(:\n")
    definition, unreadable = agent_at(tmp_path)
    assert definition is None
    assert unreadable[0].path == tmp_path / "agent.py"
    assert "line 2" in unreadable[0].reason


@pytest.mark.parametrize(
    "line",
    [
        "root_agent = Agent(",
        "root_agent: Agent = make()",
        "async def root_agent(message):",
        "from .a import x, root_agent",
    ],
)
def test_syntax_of_a_newer_python_does_not_hide_the_agent(tmp_path: Path, line: str) -> None:
    (tmp_path / "agent.py").write_text(f"{line}\nthis is not (valid\n")
    definition, unreadable = agent_at(tmp_path)
    assert definition is not None
    assert definition.attribute == "root_agent"
    assert "treated as an agent" in unreadable[0].reason


@pytest.mark.parametrize(
    "content", [b"\0", b"x = '\xff'", b"(" * 5000 + b"\nroot_agent", b"# coding: nonsense\nroot_agent = 1"]
)
def test_bytes_that_are_not_python_are_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agent.py").write_bytes(content)
    _, unreadable = agent_at(tmp_path)
    assert "not valid Python" in unreadable[0].reason


def test_other_encodings_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_bytes("# coding: latin-1\nname = 'é'\nroot_agent = 1".encode("latin-1"))
    definition, unreadable = agent_at(tmp_path)
    assert definition is not None
    assert not unreadable
    (tmp_path / "agent.py").write_bytes("\ufeffroot_agent = 1".encode())
    definition, unreadable = agent_at(tmp_path)
    assert definition is not None
    assert not unreadable


def test_invalid_escape_sequence_gives_no_warning(tmp_path: Path) -> None:
    assert _attribute(tmp_path, agent="root_agent = '\\d'") == "root_agent"


def test_reading_imports_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    assert _attribute(tmp_path, agent=f"open({str(marker)!r}, 'w')\nroot_agent = 1") == "root_agent"
    assert not marker.exists()


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "agent.py").mkdir()
    assert agent_attribute(tmp_path / "agent.py")[0] == ""
    assert "cannot be read" in agent_attribute(tmp_path / "agent.py")[1]

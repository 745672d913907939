"""Importing agents: every layout that ADK's tools accept and some they do not, and errors with hints."""

import sys
from pathlib import Path

import pytest

from tests.worker.client import Worker, is_alive, wait_until
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork, write
from workbench.worker.faults import install_adk_hint

pytestmark = needs_fork

ANSWER = "def root_agent(message, session): return 'x'\n"


@pytest.mark.parametrize(
    "files",
    [
        {"agent.py": ANSWER},
        {"agent.py": ANSWER, "__init__.py": ""},
        {"agent.py": ANSWER, "__init__.py": "from . import agent"},
        {"agent.py": ANSWER, "__init__.py": "from .agent import root_agent"},
        {"__init__.py": ANSWER},
        {"__init__.py": "from .main import root_agent", "main.py": ANSWER},
        {"agent.py": "from desk.main import root_agent", "main.py": ANSWER, "__init__.py": ""},
        {"agent.py": "from desk.main import root_agent", "main.py": ANSWER},
        {"agent.py": "from .deep.down import root_agent", "deep/down.py": ANSWER},
    ],
)
def test_agent_is_loaded_from_every_layout(worker: Worker, tmp_path: Path, files: dict[str, str]) -> None:
    agent = worker.agent(write(tmp_path / "desk", files))
    assert agent.imported["op"] == "imported", agent.imported
    assert agent.run("hi").answers == ["x"]


@pytest.mark.parametrize("name", ["my-agent", "v1.2", "json", "agent", "frames", "case", "2fast", "für dich"])
def test_any_folder_name_is_accepted(worker: Worker, tmp_path: Path, name: str) -> None:
    files = {"agent.py": "from .tools import helper\nimport json\n" + ANSWER, "tools.py": "helper = 1"}
    agent = worker.agent(write(tmp_path / name, {**files, "__init__.py": "from . import agent"}))
    assert agent.imported["op"] == "imported", agent.imported
    assert agent.run("hi").answers == ["x"]


@pytest.mark.parametrize(
    "source",
    [
        "from shop.agents.desk.tools import helper\n",
        "from ..shared import helper\n",
        "from shop.agents.shared import helper\n",
        "from desk.tools import helper\n",
        "from agents.shared import helper\n",
    ],
)
def test_agents_inside_larger_packages_are_loaded(worker: Worker, tmp_path: Path, source: str) -> None:
    names = ["shop/__init__.py", "shop/agents/__init__.py", "shop/agents/desk/__init__.py"]
    helpers = {"shop/agents/shared.py": "helper = 1", "shop/agents/desk/tools.py": "helper = 1"}
    if source.startswith("from agents"):
        names = names[2:]
    write(tmp_path, {**dict.fromkeys(names, ""), **helpers, "shop/agents/desk/agent.py": source + ANSWER})
    agent = worker.agent(tmp_path / "shop" / "agents" / "desk", root=tmp_path / "shop")
    assert agent.imported["op"] == "imported", agent.imported
    assert agent.run("hi").answers == ["x"]


def test_root_and_its_src_come_last_on_the_path(worker: Worker, tmp_path: Path) -> None:
    source = "import email, helpers, library\nLINE = email.__file__\ndef root_agent(m, s): return LINE"
    files = {"email.py": "", "helpers.py": "", "src/library.py": "", "agents/desk/agent.py": source}
    agent = worker.agent(write(tmp_path, files) / "agents" / "desk", root=tmp_path)
    (answer,) = agent.run("hi").answers
    assert answer is not None
    assert str(tmp_path) not in answer


def test_process_has_the_agents_environment_and_folder(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(
        """
        import os, sys
        SEEN = [os.environ.get("MY_SETTING"), os.getcwd(), str(sys.argv), sys.path[0], str("workbench" in sys.modules)]

        def root_agent(message, session):
            return "|".join(SEEN)
        """,
        env={"MY_SETTING": "on"},
    )
    assert agent.run("hi").answers == [f"on|{tmp_path}|['agent-workbench']|{tmp_path}|False"]


def test_workbench_is_not_on_the_agents_path(make_agent: MakeAgent) -> None:
    for name in ("frames", "case", "zygote", "shared"):
        agent = make_agent(f"import {name}", name=f"desk_{name}")
        assert agent.imported["op"] == "import_failed"
        assert f"No module named '{name}'" in agent.imported["error"]["message"]


def test_missing_package_names_the_interpreter(make_agent: MakeAgent) -> None:
    error = make_agent("import no_such_package").imported["error"]
    assert error["kind"] == "import_failed"
    assert error["message"] == f"ModuleNotFoundError: No module named 'no_such_package' (by {sys.executable})"
    assert sys.executable in error["hint"]
    assert "import no_such_package" in error["traceback"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = (", "SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit(3)", "the agent called sys.exit(3) while it was imported"),
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("nothing = 1", "desk/agent.py: no root_agent, app or get_agent_async"),
        ("root_agent = 5", "desk.agent.root_agent is an int, neither an ADK agent nor callable"),
        ("root_agent = None", "desk.agent.root_agent is a NoneType, neither an ADK agent nor callable"),
    ],
)
def test_failed_imports_are_explained(make_agent: MakeAgent, source: str, message: str) -> None:
    imported = make_agent(source).imported
    assert imported["op"] == "import_failed"
    assert imported["error"]["kind"] == "import_failed"
    assert message in imported["error"]["message"]


def test_exit_status_of_an_import_that_ends_the_process_is_reported(worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "desk", {"agent.py": "import os\nprint('bye')\nos._exit(9)"})
    agent = worker.agent(folder, awaited=False)
    assert worker.report("exited", agent.number)["status"] == 9 << 8
    assert agent.channel.receive() is None
    assert agent.output() == (b"bye\n", b"")


def test_output_of_the_import_is_reported(make_agent: MakeAgent) -> None:
    agent = make_agent("import sys\nprint('hello')\nprint('careful', file=sys.stderr)\n" + ANSWER)
    assert agent.output() == (b"hello\n", b"careful\n")
    assert agent.run("hi").stdout == b""


def test_two_versions_of_an_agent_can_run_at_once(worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "desk", {"agent.py": "def root_agent(m, s): return 'old'"})
    old = worker.agent(folder)
    write(folder, {"agent.py": "def root_agent(m, s): return 'new'"})
    new = worker.agent(folder)
    assert (old.run("hi").answers, new.run("hi").answers) == (["old"], ["new"])


def test_broken_file_that_is_not_imported_is_ignored(worker: Worker, tmp_path: Path) -> None:
    agent = worker.agent(write(tmp_path / "desk", {"__init__.py": ANSWER, "agent.py": "1 / 0"}))
    assert agent.run("hi").answers == ["x"]


def test_syntax_error_shows_its_line_and_nothing_of_ours(make_agent: MakeAgent) -> None:
    trace = make_agent("def root_agent(message, session):\n    return (").imported["error"]["traceback"]
    assert "return (" in trace
    assert "^" in trace
    assert "sources.py" not in trace
    assert "importlib" not in trace


def test_processes_started_by_the_import_live_as_long_as_the_agent(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import subprocess
        server = subprocess.Popen(["sleep", "1000"])

        def root_agent(message, session):
            return str(server.pid)
        """
    )
    (pid,) = agent.run("hi").answers
    agent.run("hi")
    assert is_alive(int(pid or 0))
    agent.channel.close()
    wait_until(lambda: not is_alive(int(pid or 0)))


def test_agent_may_turn_warnings_into_errors(make_agent: MakeAgent) -> None:
    agent = make_agent("import warnings\nwarnings.simplefilter('error')\n" + ANSWER)
    assert agent.run("hi").answers == ["x"]


def test_threads_left_by_the_import_prevent_forks(make_agent: MakeAgent) -> None:
    source = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True, name='pump').start()\n"
    )
    imported = make_agent(source + ANSWER).imported
    assert imported["can_fork"] is False
    assert imported["why"] == "the import left threads running (pump)"


def test_import_may_use_an_event_loop(make_agent: MakeAgent) -> None:
    source = "import asyncio\nasync def nothing(): return 'x'\nX = asyncio.run(nothing())\n"
    agent = make_agent(source + "async def root_agent(m, s):\n await asyncio.sleep(0)\n return X")
    assert agent.imported["can_fork"] is True
    assert agent.run("hi").answers == ["x"]


@needs_adk
def test_broken_yaml_agent_is_reported(make_agent: MakeAgent) -> None:
    error = make_agent("name: desk\ninstructions: [", kind="yaml").imported["error"]
    assert error["kind"] == "import_failed"


@needs_adk
def test_app_in_the_submodule_comes_before_root_agent_of_the_package(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        from google.adk.agents import LlmAgent
        from google.adk.apps import App
        from google.adk.models.llm_response import LlmResponse
        from google.adk.plugins.base_plugin import BasePlugin
        from google.genai import types

        class Answering(BasePlugin):
            async def before_model_callback(self, *, callback_context, llm_request):
                return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="by the app")]))

        root_agent = LlmAgent(name="bare", model="gemini-2.5-flash")
        app = App(name="whole", root_agent=root_agent, plugins=[Answering(name="answering")])
        """,
        files={"__init__.py": "from . import agent\nfrom .agent import root_agent\n"},
    )
    assert agent.imported["framework"] == "adk"
    assert agent.imported["adk"]
    assert agent.run("hi").answers == ["by the app"]


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """An interpreter without installed packages."""
    import venv

    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    return str(tmp_path / "bare" / "bin" / "python")


@pytest.mark.parametrize(
    ("kind", "source"), [("python", "from google.adk.agents import LlmAgent"), ("yaml", "name: a")]
)
def test_missing_framework_names_the_interpreter_and_what_to_install(
    bare_python: str, tmp_path: Path, kind: str, source: str
) -> None:
    folder = write(tmp_path / "desk", {"agent.py" if kind == "python" else "root_agent.yaml": source})
    worker = Worker(python=bare_python)
    try:
        assert worker.ready["adk"] is None
        error = worker.agent(folder, kind=kind).imported["error"]
    finally:
        worker.close()
    assert error["kind"] == "no_framework"
    assert error["message"] == f"google-adk is not installed in {bare_python}"
    assert error["hint"] == install_adk_hint(bare_python)


def test_plain_agents_need_no_framework(bare_python: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "desk", {"agent.py": ANSWER})
    worker = Worker(python=bare_python)
    try:
        agent = worker.agent(folder)
        assert agent.run("hi").answers == ["x"]
    finally:
        worker.close()


def test_agent_gets_only_the_given_environment(worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "desk", {"agent.py": "import os\ndef root_agent(m, s): return str('ONLY' in os.environ)"})
    assert worker.agent(folder, env={"ONLY": "1"}).run("hi").answers == ["True"]
    assert worker.agent(folder).run("hi").answers == ["False"]

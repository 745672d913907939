import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.projects import Project, case
from tests.warm.nursery import SERVER, WORKER_SERVER
from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, own_python
from workbench.run.scoring.client import MODULE

pytestmark = [
    pytest.mark.usefixtures("warm_scorers"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt others"),
]


async def test_fork_is_a_child_with_its_own_session_folder_and_exit_code() -> None:
    read, write = os.pipe()
    frames: asyncio.Queue[Frame] = asyncio.Queue()
    command = own_python(MODULE, os.environ)
    child = ChildProcess(command, read, frames.put_nowait)
    assert await frames.get() == {"op": "ready"}
    of_child = Path(f"/proc/{child.pid}")
    assert str(SERVER) in (of_child / "cmdline").read_text(), "it is a fork"
    assert int((of_child / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    assert os.getsid(child.pid) == child.pid
    assert (of_child / "cwd").readlink() == command.folder
    await child.close()
    assert child.ended.result() == "ended with exit code 0"
    os.close(read)
    os.close(write)


async def test_interpreter_that_finds_other_modules_is_not_a_fork(tmp_path: Path) -> None:
    read, write = os.pipe()
    ready = asyncio.get_running_loop().create_future()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    child = ChildProcess(own_python(MODULE, environment), read, ready.set_result)
    await ready
    assert str(SERVER) not in Path(f"/proc/{child.pid}/cmdline").read_text()
    await child.close()
    os.close(read)
    os.close(write)


def test_worker_is_a_fork_that_has_only_its_own_modules(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.evalset(case("told"))
    tells = "import os, sys, own\n\ndef root_agent(message, session):\n"
    tells += "    foreign = [name for name in sys.modules if name.split('.')[0] in ('tests', 'workbench', 'forks')]\n"
    tells += "    return f\"{open('/proc/self/cmdline').read()} {foreign} {own.__file__} {os.environ['TOLD']}\"\n"
    project.write("echo/agent.py", tells)
    own = project.write("above/own.py", "")
    variables = {"TOLD": "yes", "PYTHONPATH": str(own.parent)}
    (told,) = json.loads(project.run("run", ".", "--json", "-", environment=variables).stdout)["cases"]
    answer = told["invocations"][0]["actual"]["final_response"]["parts"][0]["text"]
    assert WORKER_SERVER.name in answer, "it is a fork"
    assert answer.endswith(f" [] {own} yes")


def test_program_is_a_child_with_its_own_environment_and_scorers_of_its_own(
    tmp_path: Path, warm_programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    project = Project(tmp_path)
    project.evalset(case("told", "scorer"))
    tells = "import os\n\ndef root_agent(message, session):\n"
    tells += "    return os.environ['TOLD'] + ' ' + os.environ['COLUMNS'] + ' ' + os.getcwd()\n"
    project.write("echo/agent.py", tells)
    process = project.start("run", ".", "--json", "-", environment={"TOLD": "yes"})
    assert SERVER.name in Path(f"/proc/{process.pid}/cmdline").read_text(), "it is a fork"
    assert int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    assert os.getsid(process.pid) == process.pid
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    (told,) = json.loads(out)["cases"]
    assert told["invocations"][0]["actual"]["final_response"]["parts"][0]["text"] == f"yes 70 {tmp_path}"
    assert told["status"] == "failed", "its scorer has compared the answers"


def test_program_with_another_interpreter_is_not_a_fork(tmp_path: Path, warm_programs: None) -> None:
    for other in ({"PYTHONHASHSEED": "7"}, {"LC_ALL": "C"}):
        (tmp_path / next(iter(other))).mkdir()
        process = Project(tmp_path / next(iter(other))).start("--version", environment=other)
        assert SERVER.name not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert process.communicate(timeout=60)[0].startswith(b"agent-workbench ")

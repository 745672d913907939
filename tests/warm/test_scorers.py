import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.warm import server
from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, own_python
from workbench.engine.scoring.client import MODULE

pytestmark = [
    pytest.mark.usefixtures("warm_scorers"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt others"),
]


async def test_fork_is_a_child_with_its_own_session_folder_and_end() -> None:
    read, write = os.pipe()
    frames: asyncio.Queue[Frame] = asyncio.Queue()
    command = own_python(MODULE, os.environ)
    child = ChildProcess(command, read, frames.put_nowait)
    assert await frames.get() == {"op": "ready"}
    of_child = Path(f"/proc/{child.pid}")
    assert server.__file__ in (of_child / "cmdline").read_text(), "it is a fork"
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
    assert server.__file__ not in Path(f"/proc/{child.pid}/cmdline").read_text()
    await child.close()
    os.close(read)
    os.close(write)

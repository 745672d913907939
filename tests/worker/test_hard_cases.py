"""Misbehaving agents: each one is an error of its own case, and the next case is unaffected."""

import os
import signal
from pathlib import Path

import pytest

from tests.worker.client import Outcome, is_alive, wait_until
from tests.worker.conftest import MakeAgent, needs_fork

pytestmark = needs_fork


def crash(make_agent: MakeAgent, *lines: str) -> Outcome:
    """Run an agent whose turn is these lines, then an ordinary case of it."""
    body = "\n".join(f"    {line}" for line in lines)
    agent = make_agent(
        "import asyncio, os, signal, subprocess, sys, threading, time\n"
        "async def root_agent(message, session):\n"
        "    if message == 'well?':\n        yield 'fine'\n        return\n"
        f"{body}\n    yield 'done'\n"
    )
    outcome = agent.run("hi")
    assert agent.run("well?").answers == ["fine"]
    return outcome


@pytest.mark.parametrize(
    "error", ["KeyboardInterrupt()", "asyncio.CancelledError()", "GeneratorExit()", "MemoryError()"]
)
def test_unusual_exceptions_are_errors_of_the_agent(make_agent: MakeAgent, error: str) -> None:
    outcome = crash(make_agent, f"raise {error}")
    assert outcome.error["kind"] == "agent_raised"
    assert outcome.error["message"] == error.removeprefix("asyncio.").removesuffix("()")


def test_exception_without_a_usable_message_is_reported(make_agent: MakeAgent) -> None:
    outcome = crash(make_agent, "class Odd(Exception):", "    def __str__(self): return self.missing", "raise Odd")
    assert outcome.error["message"] == "Odd: its message cannot be shown, AttributeError"


def test_killing_an_unknown_case_is_not_an_error(make_agent: MakeAgent) -> None:
    agent = make_agent("def root_agent(message, session): return 'x'")
    agent.kill(99, signal.SIGKILL)
    assert agent.run("hi").answers == ["x"]


def test_large_answer_below_the_limit_is_recorded(make_agent: MakeAgent) -> None:
    (answer,) = crash(make_agent, "yield 'x' * 8_000_000").answers
    assert answer == "x" * 8_000_000 + "done"


def test_large_output_is_complete(make_agent: MakeAgent) -> None:
    outcome = crash(make_agent, "for _ in range(2000): print('y' * 999)", "print('z' * 9, file=sys.stderr)")
    assert outcome.stdout == (b"y" * 999 + b"\n") * 2000
    assert outcome.stderr == b"z" * 9 + b"\n"
    assert outcome.answers == ["done"]


def test_agent_may_close_its_standard_streams(make_agent: MakeAgent) -> None:
    assert crash(make_agent, "for fd in range(3): os.close(fd)").answers == ["done"]
    assert crash(make_agent, "sys.stdout.close()", "sys.stderr = None").answers == ["done"]


def test_agent_that_closes_all_descriptors_has_crashed(make_agent: MakeAgent) -> None:
    outcome = crash(make_agent, "os.closerange(0, 4096)")
    assert outcome.answers == []
    assert outcome.status is not None


def test_standard_input_is_empty(make_agent: MakeAgent) -> None:
    assert crash(make_agent, "yield repr(sys.stdin.read())").answers == ["''done"]
    outcome = crash(make_agent, "input('name? ')")
    assert outcome.error["message"].startswith("the agent asked for keyboard input, which is not available here")


def test_changed_working_folder_affects_only_its_own_case(make_agent: MakeAgent, tmp_path: Path) -> None:
    assert crash(make_agent, "os.chdir('/')", "yield os.getcwd()").answers == ["/done"]
    agent = make_agent("import os\ndef root_agent(message, session): return os.getcwd()", name="other")
    assert agent.run("hi").answers == [str(tmp_path)]


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.Popen(['sleep', '1000'])",
        "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
        "subprocess.Popen(['sh', '-c', 'sleep 1000 & sleep 1000 & wait'], start_new_session=True)",
    ],
)
def test_no_grandchild_outlives_its_case(make_agent: MakeAgent, start: str) -> None:
    outcome = crash(make_agent, f"child = {start}", "yield f'{child.pid} '")
    pid = int((outcome.answers[0] or "").split()[0])
    wait_until(lambda: not is_alive(pid))


def test_orphan_in_its_own_session_ends_with_its_case(make_agent: MakeAgent) -> None:
    command = ["setsid", "-f", "sh", "-c", "echo $$; exec sleep 1000"]
    start = f"child = subprocess.Popen({command}, stdout=subprocess.PIPE)"
    outcome = crash(make_agent, start, "print(child.stdout.readline().decode())")
    pid = int(outcome.stdout)
    wait_until(lambda: not is_alive(pid))


def test_remaining_threads_and_tasks_do_not_delay_the_end(make_agent: MakeAgent) -> None:
    outcome = crash(
        make_agent,
        "threading.Thread(target=time.sleep, args=(1000,)).start()",
        "session.state['task'] = asyncio.create_task(asyncio.sleep(1000))",
    )
    assert outcome.answers == ["done"]
    assert outcome.exit_code == 0


def test_agent_can_use_multiprocessing_with_spawn_and_fork(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import multiprocessing
        from .sums import double

        def root_agent(message, session):
            with multiprocessing.get_context(str(message)).Pool(1) as pool:
                return str(pool.map(double, [2]))
        """,
        files={"sums.py": "def double(number): return 2 * number\n", "__init__.py": ""},
    )
    assert agent.run("spawn").answers == ["[4]"]
    assert agent.run("fork").answers == ["[4]"]


def test_messages_of_an_agents_fork_are_ignored(make_agent: MakeAgent) -> None:
    outcome = crash(make_agent, "child = os.fork()", "yield 'child ' if child == 0 else 'parent '")
    assert outcome.answers == ["parent done"]


def test_signal_handlers_of_the_agent_work_in_its_cases(make_agent: MakeAgent) -> None:
    agent = make_agent(
        "import os, signal\nGOT = []\nsignal.signal(signal.SIGCHLD, lambda *_: GOT.append('chld'))\n"
        "signal.signal(signal.SIGUSR1, lambda *_: GOT.append('usr1'))\n"
        "def root_agent(message, session):\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n    os.system('true')\n    return ' '.join(GOT)"
    )
    assert agent.run("hi").answers[0] in ("usr1", "usr1 chld")
    assert agent.run("hi").answers[0] in ("usr1", "usr1 chld")


def test_end_of_the_socket_is_the_end_of_the_case(make_agent: MakeAgent) -> None:
    agent = make_agent("def root_agent(message, session): return 'x'")
    case = agent.start()
    case.say(iter(["hi"]))
    case.wait(until=lambda outcome: bool(outcome.of("TurnFinished")))
    case.hang_up()
    assert case.wait().exit_code == 0


def test_case_ends_quietly_if_its_reader_is_gone(make_agent: MakeAgent) -> None:
    agent = make_agent("def root_agent(message, session):\n print('here')\n return 'x' * 9_000_000")
    case = agent.start()
    case.say(iter(["hi"]))
    case.wait(until=lambda outcome: outcome.stdout == b"here\n")
    case.hang_up()
    outcome = case.wait()
    assert outcome.stderr == b""


def test_randomness_differs_from_case_to_case(make_agent: MakeAgent) -> None:
    agent = make_agent("import random\ndef root_agent(message, session): return str(random.random())")
    assert agent.run("hi").answers != agent.run("hi").answers


def test_case_processes_are_reported(make_agent: MakeAgent) -> None:
    agent = make_agent(
        "import os\ndef root_agent(message, session): return f'{os.getpid()} {os.getpgrp()} {os.getsid(0)}'"
    )
    case = agent.start()
    pid = case.pid
    assert case.play(["hi"]).answers == [f"{pid} {pid} {pid}"]
    assert os.getpid() != pid

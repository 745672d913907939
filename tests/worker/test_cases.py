"""Cases that share a process: as tasks of an agent process, and in a solo worker that forks nothing."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.client import Agent, Worker, is_alive, wait_until
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork, write
from tests.worker.test_adk_agents import SCRIPTED


@pytest.fixture
def solo() -> Iterator[Worker]:
    worker = Worker("solo", warm=False)
    assert worker.ready["can_fork"] is False
    yield worker
    worker.process.kill()
    worker.close()


@needs_fork
def test_cases_in_a_shared_process_share_modules(make_agent: MakeAgent) -> None:
    agent = make_agent("SEEN = []\ndef root_agent(m, s):\n SEEN.append(m)\n return ' '.join(SEEN)")
    assert agent.run("a", share=True).answers == ["a"]
    outcome = agent.run("b", "c", share=True)
    assert outcome.answers == ["a b", "a b c"]
    assert outcome.exit_code == 0
    assert outcome.of("Ended") == [{"event": "Ended", "warnings": []}]


@needs_fork
def test_end_of_a_case_is_reported_once(make_agent: MakeAgent) -> None:
    agent = make_agent("def root_agent(m, s):\n    return {'fine': 'yes'}[m]")
    assert agent.run("fine", share=True).of("Ended")
    failing = agent.start(share=True)
    failing.say(iter(["boom"]))
    # The first case reports its own end. For one without an `Ended`, the process reports it.
    messages = iter(agent.receive, None)
    assert next(one for one in messages if "op" in one) == {"op": "exited", "id": failing.number, "status": 0}


@needs_fork
@pytest.mark.parametrize("wait", ["await asyncio.sleep(0.01)", "time.sleep(0.01)"])
def test_cases_run_concurrently_with_separate_output(make_agent: MakeAgent, wait: str) -> None:
    word = "async " if "await" in wait else ""
    agent = make_agent(
        f"import asyncio, sys, time\n{word}def root_agent(m, s):\n    print('first', m)\n    {wait}\n"
        f"    print('second', m, file=sys.stderr)\n    return m"
    )
    cases = [agent.start(share=True) for _ in range(10)]
    for index, case in enumerate(cases):
        case.say(iter([str(index)]))
    for index, case in enumerate(cases):
        outcome = case.play([])
        assert outcome.stdout == f"first {index}\n".encode()
        assert outcome.stderr == f"second {index}\n".encode()
        assert outcome.answers == [str(index)]


@needs_fork
def test_printed_bytes_and_unusual_characters_are_reported(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import sys

        def root_agent(m, s):
            sys.stderr.buffer.write("ご注文".encode()[:4])
            sys.stderr.buffer.write("ご注文".encode()[4:])
            print("\\udc80", file=sys.stderr)
            print("ご" * 100_000)
            return "done"
        """
    )
    outcome = agent.run("hi", share=True)
    assert outcome.stderr == "ご注文\\udc80\n".encode()
    assert outcome.stdout == ("ご" * 100_000 + "\n").encode()


@needs_fork
def test_threads_may_print_while_steps_are_reported(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import asyncio

        async def root_agent(m, s):
            printing = [asyncio.create_task(asyncio.to_thread(print, "x" * 200_000)) for _ in range(4)]
            for number in range(20):
                await asyncio.sleep(0)
                yield {"tool_call": {"name": "f", "args": {"n": number, "text": "y" * 20_000}}}
            await asyncio.gather(*printing)
            yield "done"
        """
    )
    outcome = agent.run("hi", share=True)
    assert outcome.answers == ["done"]
    assert len(outcome.of("AgentActed")) == 21
    assert len(outcome.stdout) == 4 * 200_001


@needs_fork
def test_output_after_the_case_or_in_a_fork_goes_to_the_process(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import asyncio, os, subprocess, sys
        KEPT = []

        async def late(over):
            await over.wait()
            print("late")
            KEPT.append("told")

        async def root_agent(m, s):
            if m == "first":
                KEPT.extend([over := asyncio.Event(), asyncio.create_task(late(over))])
                child = os.fork()
                if not child:
                    print("in a fork")
                    os._exit(0)
                os.waitpid(child, 0)
                subprocess.run(["echo", "in a child"], stdout=sys.stdout)
                print("here")
            else:
                KEPT[0].set()
                await KEPT[1]
            return str(len(KEPT))
        """
    )
    assert agent.run("first", share=True).stdout == b"here\n"
    assert agent.run("second", share=True).answers == ["3"]
    assert agent.output() == (b"in a fork\nin a child\nlate\n", b"")


@needs_fork
def test_waiting_case_can_be_cancelled(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import asyncio

        async def root_agent(m, s):
            asyncio.get_running_loop().call_soon(print, "here")
            if m == "wait":
                await asyncio.sleep(1000)
            return m
        """
    )
    case = agent.start(share=True)
    case.say(iter(["wait"]))
    case.wait(until=lambda outcome: outcome.stdout == b"here\n")
    agent.kill(case.number)
    outcome = case.wait()
    (stopped,) = outcome.of("Stopped")
    assert "await asyncio.sleep(1000)" in stopped["where"]
    assert outcome.of("Failed") == []
    assert agent.run("next", share=True).answers == ["next"]


@needs_fork
@pytest.mark.parametrize(
    "line",
    [
        "raise asyncio.CancelledError",
        "sys.exit(3)",
        "raise SystemExit(3)",
        "await asyncio.create_task(leave())",
        "raise KeyError('k')",
    ],
)
def test_failing_case_does_not_affect_others(make_agent: MakeAgent, line: str) -> None:
    agent = make_agent(
        "import asyncio, sys\nasync def leave(): sys.exit(3)\n"
        f"async def root_agent(m, s):\n    if m == 'fail': {line}\n    return m"
    )
    first = agent.start(share=True)
    assert agent.run("fail", share=True).error["kind"] == "agent_raised"
    assert first.play(["x"]).answers == ["x"]


@needs_fork
@pytest.mark.parametrize("line", ["next(iter(()))", "raise StopIteration", "raise KeyboardInterrupt"])
def test_synchronous_agent_may_raise_unusual_exceptions(make_agent: MakeAgent, line: str) -> None:
    agent = make_agent(f"def root_agent(m, s):\n    if m == 'stop': {line}\n    return m")
    error = agent.run("stop", share=True).error
    assert error["message"] in ("StopIteration", "KeyboardInterrupt")
    assert line in error["traceback"]
    assert agent.run("x", share=True).answers == ["x"]


@needs_fork
def test_endless_loop_ends_with_its_process(worker: Worker, make_agent: MakeAgent) -> None:
    agent = make_agent("async def root_agent(m, s):\n    print('here')\n    while True: pass")
    case = agent.start(share=True)
    case.say(iter(["x"]))
    case.wait(until=lambda outcome: outcome.stdout == b"here\n")
    worker.channel.send({"op": "kill", "id": agent.number, "signal": 9})
    assert worker.report("exited", agent.number)["status"] == signal.SIGKILL
    case.close()


def test_solo_worker_runs_cases(solo: Worker, tmp_path: Path) -> None:
    source = "import os\nprint('imported')\ndef root_agent(m, s): return f'{m} {os.getppid()}'"
    agent = solo.agent(write(tmp_path / "desk", {"agent.py": source}), solo=True)
    assert agent.imported["can_fork"] is False
    # Its parent is the process that we started, which only waits for it.
    assert agent.run("a", "b", share=True).answers == [f"a {solo.process.pid}", f"b {solo.process.pid}"]
    assert agent.output() == (b"imported\n", b"")
    agent.channel.send({"op": "quit"})
    assert solo.process.wait(60) == 0


@needs_fork
@pytest.mark.parametrize("name", ["SIGSTOP", "SIGKILL"])
def test_solo_agent_survives_stopping_or_killing_its_parent(solo: Worker, tmp_path: Path, name: str) -> None:
    source = f"import os, signal\ndef root_agent(m, s):\n    os.kill(os.getppid(), signal.{name})\n    return m"
    agent = solo.agent(write(tmp_path / "desk", {"agent.py": source}), solo=True)
    try:
        assert agent.run("a", share=True).answers == ["a"]
    finally:
        solo.cut_lifeline()
    assert solo.process.wait(60) in (0, -signal.SIGKILL)


@needs_fork
def test_solo_worker_ends_like_its_agent(solo: Worker, tmp_path: Path) -> None:
    source = "import os, signal\ndef root_agent(m, s): os.kill(os.getpid(), signal.SIGSEGV)"
    agent = solo.agent(write(tmp_path / "desk", {"agent.py": source}), solo=True)
    agent.start(share=True).say(iter(["a"]))
    assert solo.process.wait(60) == -signal.SIGSEGV


def test_solo_worker_ends_with_the_workbench_even_in_an_endless_loop(solo: Worker, tmp_path: Path) -> None:
    source = (
        "import subprocess\ndef root_agent(m, s):\n"
        "    print(subprocess.Popen(['sleep', '1000']).pid)\n    while True: pass"
    )
    agent: Agent = solo.agent(write(tmp_path / "desk", {"agent.py": source}), solo=True)
    case = agent.start(share=True)
    case.say(iter(["x"]))
    case.wait(until=lambda outcome: outcome.stdout.endswith(b"\n"))
    child = int(case.outcome.stdout)
    solo.cut_lifeline()
    # Both the loop and the lifeline thread notice the end; either may be first.
    assert solo.process.wait(60) in (0, -signal.SIGKILL)
    if sys.platform == "linux":
        wait_until(lambda: not is_alive(child))


def test_solo_worker_reports_import_failures(solo: Worker, tmp_path: Path) -> None:
    agent = solo.agent(write(tmp_path / "desk", {"agent.py": "1 / 0"}), solo=True)
    assert agent.imported["error"]["message"] == "ZeroDivisionError: division by zero"
    assert solo.process.wait(60) == 0


@needs_fork
@needs_adk
def test_adk_agents_can_share_a_process(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        from .scripted import *

        class Echo(Scripted):
            async def generate_content_async(self, llm_request, stream=False):
                print("asked")
                yield says(llm_request.contents[-1].parts[0].text)

        root_agent = LlmAgent(name="desk", model=Echo(steps=[]))
        """,
        files={"scripted.py": SCRIPTED, "__init__.py": ""},
    )
    cases = [agent.start(share=True) for _ in range(5)]
    outcomes = [case.play([f"{index}", "x"]) for index, case in enumerate(cases)]
    assert [outcome.answers for outcome in outcomes] == [[f"{index}", "x"] for index in range(5)]
    assert {outcome.stdout for outcome in outcomes} == {b"asked\nasked\n"}
    assert {outcome.usage["model_calls"] for outcome in outcomes} == {2}

"""A place needs only JSON messages, and the engine needs only the protocol."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.run.project import Outcome, Project
from workbench.agents.channel import Frame
from workbench.files.run_options import RunOptions
from workbench.run.place import AgentLink, OnFrame, Place
from workbench.run.plan.plan import AgentSetting
from workbench.run.processes.children import Children
from workbench.run.run import Run
from workbench.worker import processes

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = """
import os, signal, time

def root_agent(message, session):
    print("printed", message)
    if message == "kill parent":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    if message == "exit":
        os._exit(3)
    return message
"""


class Relay:
    """A place that passes every message on as text, as if there were a network between. It keeps them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.sent: list[Frame] = []
        self.came: list[Frame] = []

    def open(self, concurrency: int) -> None:
        self._place.open(concurrency)

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> "RelayLink":
        def take(frame: Frame, size: int) -> None:
            self.came.append(json.loads(json.dumps(frame)))
            on_frame(self.came[-1], size)

        return RelayLink(await self._place.start(agent, take, cases=cases), self.sent)

    def attempts(self) -> Iterator[tuple[int, Any]]:
        for frame in self.sent:
            if frame["op"] == "case":
                yield frame["attempt"], frame["case"]["eval_id"]


class RelayLink:
    def __init__(self, link: AgentLink, sent: list[Frame]) -> None:
        self._link, self._sent = link, sent
        self.ended, self.serves_one_case = link.ended, link.serves_one_case
        self.kill, self.close = link.kill, link.close

    def send(self, *frames: Frame) -> None:
        copies = [json.loads(json.dumps(frame)) for frame in frames]
        self._sent.extend(copies)
        self._link.send(*copies)


async def ran(project: Project, relay: Relay, children: Children, **options: Any) -> Outcome:
    outcome = Outcome()
    children.place = relay
    await Run(project.plan(RunOptions(**options)), outcome.take, children).execute()
    children.place = children.local
    return outcome


@pytest.mark.parametrize("isolation", ["case", "run"])
async def test_cases_run_at_a_place_that_only_relays_messages(
    project: Project, children: Children, isolation: Any
) -> None:
    project.agent(AGENT)
    project.cases("one", "two", "three", response_match_score=0.0)
    relay = Relay(children.local)
    outcome = await ran(project, relay, children, isolation=isolation)
    assert outcome.states == dict.fromkeys(("one", "two", "three"), "passed")
    assert outcome.record("two").output == {"stdout": "printed two\n"}
    exits = [frame["id"] for frame in relay.came if frame.get("op") == "exited"]
    assert sorted(exits) == sorted({frame["id"] for frame in relay.sent if "id" in frame})
    for number in exits:
        said = [frame for frame in relay.came if frame.get("id") == number]
        assert said[-1]["op"] == "exited"
        assert "Printed" in [frame.get("event") for frame in said]


async def test_each_attempt_has_its_own_number(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("one", "exit", response_match_score=0.0)
    relay = Relay(children.local)
    outcome = await ran(project, relay, children, isolation="run", concurrency=1)
    assert outcome.states == {"one": "passed", "exit": "error"}
    assert list(relay.attempts()) == [(1, "one"), (1, "exit"), (2, "exit")]
    assert outcome.record("exit").attempt == 2


@pytest.mark.skipif(bool(processes.cannot_fork()), reason="processes are forked on Linux only")
async def test_attempt_exits_once_if_its_parent_died_first(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("kill parent", "one", response_match_score=0.0)
    relay = Relay(children.local)
    outcome = await ran(project, relay, children, concurrency=1)
    assert outcome.error("kill parent")[0] == "crashed"
    assert outcome.states["one"] == "passed"
    exits = [frame["how"] for frame in relay.came if frame.get("op") == "exited"]
    assert exits[0] is None
    assert exits[1:] == ["ended with exit code 0"]

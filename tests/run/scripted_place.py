"""A place whose agents answer as a test says, without any process. It keeps what it is sent."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from workbench.agents.channel import Frame
from workbench.run.place import OnFrame
from workbench.run.plan.plan import AgentSetting

Answer = Callable[[dict[str, Any], list[Frame], str], Iterable[Frame]]
"""A function from the case's settings, the frames before its first turn and the user's text to the frames that it
sends in the turn, without the number of the turn."""


class ScriptedPlace:
    """A place. `cases` has the settings of each case, in the order of their start."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.cases: list[dict[str, Any]] = []

    def open(self, concurrency: int) -> None: ...

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> "_Link":
        return _Link(self, on_frame)


class _Link:
    serves_one_case = False

    def __init__(self, place: ScriptedPlace, on_frame: OnFrame) -> None:
        self._place, self._on_frame = place, on_frame
        self._loop = asyncio.get_running_loop()
        self._cases: dict[int, tuple[dict[str, Any], list[Frame]]] = {}
        self._turns: dict[int, int] = {}
        self._unfinished: set[int] = set()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._tell({"op": "imported", "framework": "python", "can_fork": True, "why": ""})

    def send(self, *frames: Frame) -> None:
        for frame in frames:
            number = frame["id"]
            match frame["op"]:
                case "case":
                    self._place.cases.append(frame["case"])
                    self._cases[number] = frame["case"], []
                    self._turns[number] = 0
                case "turn":
                    self._answer(number, frame["content"]["parts"][0]["text"])
                case "end" if number not in self._unfinished:
                    self._tell({"id": number, "event": "Ended", "warnings": []})
                    self._tell({"op": "exited", "id": number, "how": "ended"})
                case "kill":
                    self._tell({"op": "exited", "id": number, "how": "was killed"})
                case "recorded" | "answered":
                    self._cases[number][1].append(json.loads(json.dumps(frame)))

    def kill(self) -> None: ...

    async def close(self) -> None:
        if not self.ended.done():
            self.ended.set_result("was closed")

    def _answer(self, number: int, text: str) -> None:
        case, before = self._cases[number]
        self._unfinished.add(number)
        for frame in self._place.answer(case, before, text):
            if frame["event"] in ("TurnFinished", "Failed"):
                self._unfinished.discard(number)
            self._tell({"id": number, "turn": self._turns[number], **frame})
        self._turns[number] += 1

    def _tell(self, frame: Frame) -> None:
        self._loop.call_soon(self._on_frame, frame, 0)

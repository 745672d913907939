"""The engine's end of the scorer: conversations in, verdicts out as they come."""

import asyncio
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import workbench
from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, Command
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.events import MetricResult
from workbench.metrics.base import Scored
from workbench.model.criteria import Criterion

MODULE = "workbench.engine.scorer"
_ANSWER_WITHIN = 300.0
"""Seconds that one criterion may take over one conversation."""
_ATTEMPTS = 2
"""How often a criterion is tried when the scorer does not survive it."""

OnScored = Callable[[Scored], None]


@dataclass
class Conversation:
    """What is to be scored: invocations one a turn, `expected` None for a scenario; `custom` are the names of criteria
    that the config defines itself."""

    criteria: Sequence[Criterion]
    expected: Sequence[dict[str, Any]] | None
    actual: Sequence[dict[str, Any]]
    scenario: dict[str, Any] | None = None
    rubrics: Sequence[dict[str, Any]] = ()
    custom: frozenset[str] = frozenset()


@dataclass
class _Request:
    conversation: Conversation
    on_scored: OnScored
    done: "asyncio.Future[None]"
    results: list[Scored] = field(default_factory=list)
    attempts: int = 0
    overdue: bool = False

    def take(self, scored: Scored) -> bool:
        """Hands on the next result; whether that was the last one."""
        self.results.append(scored)
        self.attempts = 0
        self.on_scored(scored)
        if len(self.results) < len(self.conversation.criteria):
            return False
        if not self.done.done():
            self.done.set_result(None)
        return True

    def fail(self, reason: str, details: dict[str, Any] | None = None) -> None:
        """The next criterion has no verdict."""
        lost = self.conversation.criteria[len(self.results)]
        self.take(Scored(MetricResult(lost.name, "error", None, lost.threshold, reason, details or {})))


class Scorer:
    """The scorer child, started when it is first needed and again if it dies. `lifeline` is the pipe it dies with."""

    def __init__(self, lifeline: int) -> None:
        self._lifeline = lifeline
        self._child: ChildProcess | None = None
        self.ready = False
        """Whether the running child has answered."""
        self._failed_starts = 0
        """How many children in a row ended before they answered."""
        self._numbers = itertools.count(1)
        self._open: dict[int, _Request] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """The running child; None if there is none."""
        return self._child.pid if self._child is not None else None

    def warm(self, criteria: Iterable[str]) -> None:
        """Starts the child and has it import what these criteria need, without waiting."""
        self._running().channel.send({"op": "warm", "criteria": sorted(set(criteria))})

    async def score(self, conversation: Conversation, on_scored: OnScored) -> list[Scored]:
        """The verdicts, one a criterion in their order; `on_scored` gets each as soon as it exists. What cannot be
        scored is a result too."""
        if not conversation.criteria:
            return []
        request = _Request(conversation, on_scored, asyncio.get_running_loop().create_future())
        self._send(request)
        await request.done
        return request.results

    async def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        self._stop_clock()
        if child is not None:
            await child.close()

    def _running(self) -> ChildProcess:
        if self._child is None:
            self.ready = False
            child = ChildProcess(_command(), self._lifeline, self._take)
            child.ended.add_done_callback(lambda ended: self._lost(child, ended.result()))
            self._child = child
        return self._child

    def _send(self, request: _Request) -> None:
        number = next(self._numbers)
        self._open[number] = request
        if len(self._open) == 1:
            self._start_clock()
        try:
            self._running().channel.send(*_frames(number, request))
        except (FrameTooLargeError, RecursionError) as error:
            self._open.pop(number)
            self._give_up(request, f"the conversation cannot be handed to the scorer: {error}")

    def _take(self, frame: Frame) -> None:
        if frame["op"] == "ready":
            self.ready = True
            return
        request = self._open.get(frame["id"])
        if request is None or frame["index"] != len(request.results):
            return
        result = MetricResult(**frame["result"])
        if request.take(Scored(result, tuple(MetricResult(**turn) for turn in frame["turns"]))):
            del self._open[frame["id"]]
        self._start_clock()

    def _start_clock(self) -> None:
        """Each criterion has its time; they are scored one after the other."""
        self._stop_clock()
        if self._open:
            self._timer = asyncio.get_running_loop().call_later(_ANSWER_WITHIN, self._too_long)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_long(self) -> None:
        request = next(iter(self._open.values()))
        request.overdue = True
        if self._child is not None:
            self._child.signal_group(9)

    def _lost(self, child: ChildProcess, how: str) -> None:
        """The child died. What it was working on is tried once more, then given up; the rest is sent again."""
        if child is not self._child:
            return
        self._child = None
        requests, self._open = list(self._open.values()), {}
        self._failed_starts = 0 if self.ready else self._failed_starts + 1
        if self._failed_starts == _ATTEMPTS:
            self._failed_starts = 0
            for request in requests:
                self._give_up(request, f"the scorer {how} before it could begin: {child.last_words}")
            return
        if self.ready:
            for request in requests[:1]:
                self._blame(request, how)
        for request in requests:
            if not request.done.done():
                self._send(request)

    def _blame(self, request: _Request, how: str) -> None:
        """The scorer died over this one."""
        request.attempts += 1
        if request.overdue:
            request.overdue = False
            request.fail(f"took longer than {_ANSWER_WITHIN:g} s")
        elif request.attempts == _ATTEMPTS:
            request.fail(f"the metric crashed: the scorer {how}", {"traceback": f"the scorer {how}, twice"})

    def _give_up(self, request: _Request, reason: str) -> None:
        while not request.done.done():
            request.fail(reason)


def _frames(number: int, request: _Request) -> Iterable[Frame]:
    """What has to be sent for the criteria that have no result yet."""
    conversation = request.conversation
    first = len(request.results)
    yield {
        "op": "case",
        "id": number,
        "first": first,
        "criteria": [_criterion(item, conversation.custom) for item in conversation.criteria[first:]],
        "scenario": conversation.scenario,
        "rubrics": list(conversation.rubrics),
        "static": conversation.expected is not None,
    }
    for turn in conversation.expected or ():
        yield {"op": "expected", "id": number, "turn": turn}
    for turn in conversation.actual:
        yield {"op": "actual", "id": number, "turn": turn}
    yield {"op": "score", "id": number}


def _criterion(criterion: Criterion, custom: frozenset[str]) -> dict[str, Any]:
    return {
        "name": criterion.name,
        "threshold": criterion.threshold,
        "value": criterion.value,
        "options": criterion.options,
        "custom": criterion.name in custom,
    }


def _command() -> Command:
    """Our own interpreter. The folder above the package is named only where Python would not find it by itself, and
    the working directory is kept off the path: it belongs to the user, and may hold modules of any name."""
    home = Path(workbench.__file__).parents[1]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    if home.name not in ("site-packages", "dist-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(home))))
    return Command([sys.executable, "-P", "-X", "utf8", "-m", MODULE], environment, home)

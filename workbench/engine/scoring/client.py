"""The engine's end of the scorer: conversations in, verdicts out as they come."""

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, own_python
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.engine.scoring.conversation import ATTEMPTS, Conversation, OnScored, Request, blame, frames_of
from workbench.events import MetricResult
from workbench.metrics.base import Scored
from workbench.metrics.registry import asks

MODULE = "workbench.engine.scoring.scorer"
_ANSWER_WITHIN = 300.0
"""Seconds without any sign of the scorer: a calculation that takes longer is given up. Waiting for a judge is no
silence."""

OnWait: TypeAlias = Callable[[str, float, str], None]
"""A judge's model, the seconds for which its queue pauses (0: it goes on), and why."""


@dataclass
class Line:
    """Frames to and from a part of the scorer that is not scoring, under one number. `on_lost` is called, once, when
    the scorer dies: nothing will come on this line any more."""

    number: int
    on_frame: Callable[[Frame], None]
    on_lost: Callable[[str], None]


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
        self._open: dict[int, Request] = {}
        self._lines: dict[int, Line] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at = 0.0
        """When the child gave its last sign, or was asked first."""
        self._limits: Frame | None = None
        self._on_wait: OnWait = lambda model, seconds, reason: None
        self._on_notice: Callable[[str], None] = lambda text: None
        self._calls: Counter[int] = Counter()
        """Calls that the run has made, by the number they were made for: another child has so many fewer."""
        self._told: set[str] = set()
        """What the running child knows: keys of environments, and "" for the limits of the run."""

    @property
    def pid(self) -> int | None:
        """The running child; None if there is none."""
        return self._child.pid if self._child is not None else None

    def warm(self, criteria: Iterable[str]) -> None:
        """Starts the child and has it import what these criteria need, without waiting."""
        computed = sorted(name for name in set(criteria) if not asks(name))
        self._running().channel.send({"op": "warm", "criteria": computed})

    def begin_run(
        self,
        *,
        in_flight: int,
        max_calls: int | None,
        use_cache: bool,
        cache_dir: Path | None,
        on_wait: OnWait,
        since: float | None = None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """From here on these limits hold for whoever is asked (`workbench.judge.limits.RunLimits`), and calls are
        counted anew. `on_notice` is told what concerns the whole run, such as that answers cannot be kept."""
        folder = None if cache_dir is None else str(cache_dir)
        self._limits = {
            "op": "run",
            "in_flight": in_flight,
            "max_calls": max_calls,
            "use_cache": use_cache,
            "since": since,
            "cache_dir": folder,
        }
        self._on_wait = on_wait
        self._on_notice = on_notice
        self._calls.clear()
        self._told.discard("")

    async def score(self, conversation: Conversation, on_scored: OnScored) -> list[Scored]:
        """The verdicts, one a criterion in their order; `on_scored` gets each as soon as it exists, those that ask
        somebody in whatever order they are answered. What cannot be scored is a result too; only what was forgone is
        none. Cancelled, it lets go of what is not scored yet."""
        if not conversation.criteria:
            return []
        request = Request(conversation, on_scored, asyncio.get_running_loop().create_future())
        self._send(request)
        try:
            await request.done
        except asyncio.CancelledError:
            for number in [number for number, other in self._open.items() if other is request]:
                self._drop(number, request)
                del self._open[number]
            raise
        return [scored for _, scored in sorted(request.results.items())]

    def forgo(self, conversation: Conversation) -> None:
        """Asks nobody any more about a conversation that is being scored, at once. What is computed still comes."""
        for number, request in list(self._open.items()):
            if request.conversation is conversation:
                request.asks_nobody = True
                self._drop(number, request)
                if request.ends():
                    del self._open[number]

    def open_line(
        self, environment: Mapping[str, Any], on_frame: Callable[[Frame], None], on_lost: Callable[[str], None]
    ) -> Line:
        """A line to what answers under one number in the scorer, with the agent's environment known there."""
        line = Line(next(self._numbers), on_frame, on_lost)
        self._lines[line.number] = line
        self._start_clock()
        self._running().channel.send(*self._introduction(environment))
        return line

    def say(self, line: Line, message: Frame) -> None:
        """Sends a frame on a line; nothing if it was lost or closed.

        Raises:
            FrameTooLargeError: it is over 16 MiB.
        """
        if line.number in self._lines:
            self._running().channel.send({**message, "id": line.number})

    def close_line(self, line: Line) -> None:
        """Ends at once what is done under the line's number."""
        if self._lines.pop(line.number, None) is not None and self._child is not None:
            self._child.channel.send({"op": "drop", "id": line.number})
            self._start_clock()

    async def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        self._stop_clock()
        if child is not None:
            await child.close()

    def _running(self) -> ChildProcess:
        if self._child is None:
            self.ready = False
            self._told.clear()
            command = own_python(MODULE, {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
            child = ChildProcess(command, self._lifeline, self._take)
            child.ended.add_done_callback(lambda ended: self._lost(child, ended.result()))
            self._child = child
        return self._child

    def _send(self, request: Request) -> None:
        number = next(self._numbers)
        self._open[number] = request
        if len(self._open) == 1:
            self._start_clock()
        try:
            channel = self._running().channel
            asking = request.conversation.asking
            if asking is not None and request.left(asking=True) and not request.asks_nobody:
                channel.send(*self._introduction(asking.environment))
            channel.send(*frames_of(number, request))
        except (FrameTooLargeError, RecursionError) as error:
            self._open.pop(number)
            request.give_up(f"the conversation cannot be handed to the scorer: {error}")

    def _introduction(self, environment: Mapping[str, Any]) -> Iterator[Frame]:
        """What the child must know before it asks in this environment, as far as it does not yet."""
        if "" not in self._told and self._limits is not None:
            self._told.add("")
            most = self._limits["max_calls"]
            yield {**self._limits, "max_calls": None if most is None else max(0, most - self._calls.total())}
        if environment["key"] not in self._told:
            self._told.add(environment["key"])
            yield {"op": "environment", **environment}

    def _drop(self, number: int, request: Request) -> None:
        if self._child is not None and request.left(asking=True):
            self._child.channel.send({"op": "drop", "id": number})

    def _take(self, frame: Frame) -> None:
        match frame["op"]:
            case "scored":
                self._scored(frame)
            case "ready":
                self.ready = True
                return
            case "waits":
                self._on_wait(frame["model"], frame["seconds"], frame["reason"])
            case "notice":
                self._on_notice(frame["text"])
            case _:
                line = self._lines.get(frame.get("id", 0))
                if line is not None:
                    # Of a line, the tally counts what was asked so far.
                    self._calls[line.number] = (frame.get("tally") or {}).get("calls", self._calls[line.number])
                    line.on_frame(frame)
        self._start_clock()

    def _scored(self, frame: Frame) -> None:
        number = frame["id"]
        request = self._open.get(number)
        if request is None:
            return
        for one in frame["results"]:
            result = MetricResult(**one["result"])
            self._calls[number] += (result.details.get("tally") or {}).get("calls", 0)
            if request.take(one["index"], Scored(result, tuple(MetricResult(**turn) for turn in one["turns"]))):
                self._open.pop(number, None)

    def _start_clock(self) -> None:
        """Whatever comes from the child starts it anew."""
        self._heard_at = asyncio.get_running_loop().time()
        if self._timer is None:
            self._set_timer(_ANSWER_WITHIN)

    def _set_timer(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look_at_clock)

    def _look_at_clock(self) -> None:
        """One timer for all that comes: it is set again for what is left of the time."""
        self._timer = None
        if self._open or self._lines:
            left = self._heard_at + _ANSWER_WITHIN - asyncio.get_running_loop().time()
            if left > 0:
                self._set_timer(left)
            else:
                self._too_long()

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_long(self) -> None:
        for request in self._open.values():
            request.overdue = True
        if self._child is not None:
            self._child.signal_group(9)

    def _lost(self, child: ChildProcess, how: str) -> None:
        """The child died. What it was working on is tried once more, then given up; the rest is sent again."""
        if child is not self._child:
            return
        self._child = None
        requests, self._open = list(self._open.values()), {}
        lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            line.on_lost(how)
        self._failed_starts = 0 if self.ready else self._failed_starts + 1
        if self._failed_starts == ATTEMPTS:
            self._failed_starts = 0
            for request in requests:
                request.give_up(f"the scorer {how} before it could begin: {child.last_line}")
            return
        if self.ready:
            blame(requests, how, _ANSWER_WITHIN)
        for request in requests:
            if not request.done.done():
                request.overdue = False
                self._send(request)

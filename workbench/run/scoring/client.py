"""The engine's client of the scorer process. If the process dies, the client starts it again."""

import asyncio
import itertools
import math
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, own_python
from workbench.criteria.base import Scored
from workbench.criteria.registry import needs_bench
from workbench.events.events import InnerCalls, MetricResult, Usage
from workbench.files.criteria import Criterion
from workbench.files.prices import Prices
from workbench.worker.frames import FrameTooLargeError

ATTEMPTS = 2
"""Number of attempts at a criterion if the scorer dies."""

States: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""The expected and the actual session state at the end of a case. Each is None if it does not exist or is unknown."""
OnScored: TypeAlias = Callable[[Scored], None]
MODULE = "workbench.run.scoring.scorer"
_ANSWER_WITHIN = 300.0
"""Maximum seconds without a message of the scorer while it computes. After that, its process is killed.

Waiting for a judge does not count as silence.
"""
_GRACE = 10.0
"""Seconds by which a silence may exceed the time limit of a case."""
_AFTER_CANCEL = 5.0
"""Maximum seconds without a message after the run was cancelled."""
_LATE = 1.0
"""Seconds. If a timer is later than this, the workbench itself was stopped or very busy."""
OnWait: TypeAlias = Callable[[str, float, str], None]
"""A function that gets a judge's model, the seconds of a pause (0 ends it), and its reason."""


@dataclass
class Conversation:
    """A conversation to score.

    `expected` and `actual` have one invocation for each turn. `expected` is None for a scenario. `custom` are the
    config's `custom_metrics` by name. `environment` has the fields of the `workbench.judges.base.JudgeEnvironment` in
    which judges are asked. It may be None only if no criterion asks a judge.
    """

    criteria: Sequence[Criterion]
    expected: Sequence[dict[str, Any]] | None
    actual: Sequence[dict[str, Any]]
    scenario: dict[str, Any] | None = None
    rubrics: Sequence[dict[str, Any]] = ()
    custom: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] | None = field(default=None, repr=False)
    repeat: int = 1
    all_votes: bool = False
    states: States = (None, None)
    dataset_case: dict[str, Any] | None = None
    inner_calls: Sequence[InnerCalls] = ()
    """The calls inside agents that are used as tools, for each turn; () if they are not known."""
    usage: Usage | None = None

    def asks(self, index: int) -> bool:
        """Return whether a criterion waits for an answer of a judge, a service or a function."""
        name = self.criteria[index].name
        return needs_bench(name, custom=name in self.custom)


@dataclass
class Request:
    """A conversation in the scorer, with its results so far.

    `on_scored` gets each result as it arrives. `done` is done after the last one.
    """

    conversation: Conversation
    on_scored: OnScored
    done: "asyncio.Future[None]"
    results: dict[int, Scored] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    """Index of a criterion → number of times that the scorer died while scoring it."""
    overdue: bool = False
    judges_skipped: bool = False
    """Whether criteria that ask judges are skipped."""

    def take(self, index: int, scored: Scored) -> bool:
        """Add a result, and return whether it was the last one."""
        if index not in self.results:
            self.results[index] = scored
            self.on_scored(scored)
        return self.ends()

    def ends(self) -> bool:
        """Complete the request if no more results will arrive, and return whether that is so."""
        missing = len(self.results) < len(self.conversation.criteria)
        if missing and (not self.judges_skipped or self.left(asking=False)):
            return False
        if not self.done.done():
            self.done.set_result(None)
        return True

    def left(self, *, asking: bool) -> list[int]:
        """Return the indexes of the criteria without a result: of those that ask judges, or of the computed ones."""
        missing = (index for index in range(len(self.conversation.criteria)) if index not in self.results)
        return [index for index in missing if self.conversation.asks(index) == asking]

    def fail(self, index: int, reason: str, details: dict[str, Any] | None = None) -> None:
        """Give a criterion an error instead of a verdict."""
        lost = self.conversation.criteria[index]
        self.take(index, Scored(MetricResult(lost.name, "error", None, lost.threshold, reason, details or {})))

    def count_loss(self, index: int, how: str, silence: float) -> None:
        """Count a death of the scorer during a criterion, or its kill after `silence` seconds.

        The criterion gets an error at its last attempt, or at once if it is computed and took too long.
        """
        self.lost[index] = self.lost.get(index, 0) + 1
        if self.overdue and not self.conversation.asks(index):
            self.fail(index, f"took longer than {silence:g} s")
        elif self.lost[index] == ATTEMPTS:
            self.fail(index, f"the metric crashed: the scorer {how}", {"traceback": f"the scorer {how}, twice"})

    def abandon(self, reason: str) -> None:
        """End a request. Its missing results become errors, or are left out if its judges are skipped."""
        if not self.judges_skipped:
            self.give_up(reason)
        elif not self.done.done():
            self.done.set_result(None)

    def give_up(self, reason: str) -> None:
        """Give all criteria without a result an error."""
        for index in range(len(self.conversation.criteria)):
            if index not in self.results:
                self.fail(index, reason)


def blame_crash(requests: Sequence[Request], how: str, silence: float) -> None:
    """Count a death of the scorer against the criteria that may have caused it.

    The scorer computes one criterion at a time in this order, so the first one without a result is to blame. If none is
    left, any pending judge request may be to blame, and each of them loses one attempt.
    """
    for request in requests:
        computed = request.left(asking=False)
        if computed:
            request.count_loss(computed[0], how, silence)
            return
    for request in requests:
        for index in () if request.judges_skipped else request.left(asking=True):
            request.count_loss(index, how, silence)


def frames_of(number: int, request: Request, prices: Prices) -> Iterable[Frame]:
    """Yield the frames of a request: the case with the criteria still to be scored, its turns, and `score`."""
    conversation = request.conversation
    yield {
        "op": "case",
        "id": number,
        "criteria": [
            {
                "index": index,
                "asks": conversation.asks(index),
                "name": item.name,
                "threshold": item.threshold,
                "value": item.value,
                "options": item.options,
                "custom": item.name in conversation.custom,
                "custom_config": conversation.custom.get(item.name),
            }
            for index, item in enumerate(conversation.criteria)
            if index not in request.results and not (request.judges_skipped and conversation.asks(index))
        ],
        "scenario": conversation.scenario,
        "rubrics": list(conversation.rubrics),
        "static": conversation.expected is not None,
        "states": list(conversation.states),
        "dataset_case": conversation.dataset_case,
        "inner_calls": list(conversation.inner_calls),
        "usage": None if conversation.usage is None else asdict(conversation.usage),
        "prices": asdict(prices),
        "environment": "" if conversation.environment is None else conversation.environment["key"],
        "repeat": conversation.repeat,
        "all_votes": conversation.all_votes,
    }
    for turn in conversation.expected or ():
        yield {"op": "expected", "id": number, "turn": turn}
    for turn in conversation.actual:
        yield {"op": "actual", "id": number, "turn": turn}
    yield {"op": "score", "id": number}


@dataclass
class ScorerChannel:
    """A channel to the scorer for one request ID, used for simulated users.

    `on_lost` is called once when the scorer dies. Nothing arrives after that.
    """

    number: int
    on_frame: Callable[[Frame], None]
    on_lost: Callable[[str], None]


class Scorer:
    """The scorer process, started on first use and again if it dies. It ends when the pipe `lifeline` closes."""

    def __init__(self, lifeline: int) -> None:
        self._lifeline = lifeline
        self._child: ChildProcess | None = None
        self.ready = False
        """Whether the running process has answered."""
        self._failed_starts = 0
        """Number of processes in a row that ended before they answered."""
        self._numbers = itertools.count(1)
        self._open: dict[int, Request] = {}
        self._channels: dict[int, ScorerChannel] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last_sign = 0.0
        """Time of the last message of the process, or of the first request."""
        self._silence = _ANSWER_WITHIN
        """Seconds without a message after which a process that is ready is killed."""
        self._run_cancelled = False
        self._limits: Frame | None = None
        self._on_wait: OnWait = lambda model, seconds, reason: None
        self._on_notice: Callable[[str], None] = lambda text: None
        self._calls: Counter[int] = Counter()
        """Judge calls of the run by request ID. A new process may make only the rest of the limit."""
        self.prices = Prices()
        """Prices of models, for limits of cost."""
        self._known_to_child: set[str] = set()
        """Keys of environments that the running process has, and "" for the limits of the run."""

    @property
    def pid(self) -> int | None:
        """ID of the running process, or None."""
        return self._child.pid if self._child is not None else None

    def warm(self, criteria: Iterable[str]) -> None:
        """Start the process, and let it import what the computed ones of these criteria need. Do not wait for it."""
        computed = sorted(name for name in set(criteria) if not needs_bench(name))
        self._running().channel.send({"op": "warm", "criteria": computed})

    def begin_run(
        self,
        *,
        in_flight: int,
        max_calls: int | None,
        use_cache: bool,
        cache_dir: Path | None,
        timeout: float,
        on_wait: OnWait,
        since: float | None = None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Set the limits for judges (`workbench.judges.cache.RunLimits`) and reset the count of calls.

        `timeout` is the time limit of a case in seconds. If a calculation takes more than a few seconds longer, or more
        than `_ANSWER_WITHIN`, the process is killed. `on_notice` gets messages about the whole run, for example that
        answers cannot be stored.
        """
        self._limits = {
            "op": "run",
            "in_flight": in_flight,
            "max_calls": max_calls,
            "use_cache": use_cache,
            "since": since,
            "cache_dir": None if cache_dir is None else str(cache_dir),
        }
        self._set_silence(min(_ANSWER_WITHIN, timeout + _GRACE), run_cancelled=False)
        self._on_wait = on_wait
        self._on_notice = on_notice
        self._calls.clear()
        self._known_to_child.discard("")

    async def score(self, conversation: Conversation, on_scored: OnScored) -> list[Scored]:
        """Return the verdicts in the order of the criteria.

        `on_scored` gets each verdict as soon as it exists. Verdicts of judges arrive in any order. A criterion that
        cannot be scored has a verdict too, but skipped judges have none. Cancelling this drops unfinished criteria.
        """
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

    def skip_judges(self, conversation: Conversation) -> None:
        """Stop asking judges about a conversation that is being scored. Computed verdicts still arrive."""
        for number, request in list(self._open.items()):
            if request.conversation is conversation:
                request.judges_skipped = True
                self._drop(number, request)
                if request.ends():
                    del self._open[number]

    def run_cancelled(self) -> None:
        """Wait only briefly for computed verdicts from now on. The next run begins with its own limit."""
        self._set_silence(_AFTER_CANCEL, run_cancelled=True)

    def open_channel(
        self, environment: Mapping[str, Any], on_frame: Callable[[Frame], None], on_lost: Callable[[str], None]
    ) -> ScorerChannel:
        """Open a scorer channel for one request ID, and send the agent's environment."""
        scorer_channel = ScorerChannel(next(self._numbers), on_frame, on_lost)
        self._channels[scorer_channel.number] = scorer_channel
        self._start_clock()
        self._running().channel.send(*self._introduction(environment))
        return scorer_channel

    def send(self, scorer_channel: ScorerChannel, message: Frame) -> None:
        """Send a frame, unless the channel was lost or closed. Raise FrameTooLargeError if it is over 16 MiB."""
        if scorer_channel.number in self._channels:
            self._running().channel.send({**message, "id": scorer_channel.number})

    def close_channel(self, scorer_channel: ScorerChannel) -> None:
        """Close a channel and end the work for it at once."""
        if self._channels.pop(scorer_channel.number, None) is not None and self._child is not None:
            self._child.channel.send({"op": "drop", "id": scorer_channel.number})
            self._start_clock()

    async def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        self._stop_clock()
        if child is not None:
            await child.close()

    def _running(self) -> ChildProcess:
        if self._child is None:
            self.ready = False
            self._known_to_child.clear()
            command = own_python(MODULE, {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
            child = ChildProcess(command, self._lifeline, self._take)
            child.ended.add_done_callback(lambda ended: self._lost(child, ended.result()))
            self._child = child
        self._child.kill_if_stopped(lambda: bool(self._open or self._channels))
        return self._child

    def _send(self, request: Request) -> None:
        number = next(self._numbers)
        self._open[number] = request
        if len(self._open) == 1:
            self._start_clock()
        try:
            channel = self._running().channel
            environment = request.conversation.environment
            if environment is not None and request.left(asking=True) and not request.judges_skipped:
                channel.send(*self._introduction(environment))
            channel.send(*frames_of(number, request, self.prices))
        except (FrameTooLargeError, RecursionError) as error:
            self._open.pop(number)
            request.give_up(f"the conversation cannot be sent to the scorer: {error}")

    def _introduction(self, environment: Mapping[str, Any]) -> Iterator[Frame]:
        """Yield the limits and the environment unless the process has them, and record that it has them now."""
        if "" not in self._known_to_child and self._limits is not None:
            self._known_to_child.add("")
            most = self._limits["max_calls"]
            yield {**self._limits, "max_calls": None if most is None else max(0, most - self._calls.total())}
        if environment["key"] not in self._known_to_child:
            self._known_to_child.add(environment["key"])
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
            case "waits":
                self._on_wait(frame["model"], frame["seconds"], frame["reason"])
            case "notice":
                self._on_notice(frame["text"])
            case _:
                scorer_channel = self._channels.get(frame.get("id", 0))
                if scorer_channel is not None:
                    if "calls" in (tally := frame.get("tally") or {}):
                        self._calls[scorer_channel.number] = tally["calls"]  # The tally of a channel is a total.
                    scorer_channel.on_frame(frame)
        self._start_clock()

    def _scored(self, frame: Frame) -> None:
        number = frame["id"]
        request = self._open.get(number)
        if request is None:
            return
        result = MetricResult(**frame["result"])
        self._calls[number] += (result.details.get("tally") or {}).get("calls", 0)
        if request.take(frame["index"], Scored(result, tuple(MetricResult(**turn) for turn in frame["turns"]))):
            del self._open[number]

    def _start_clock(self) -> None:
        self._last_sign = asyncio.get_running_loop().time()
        if self._timer is None:
            self._set_timer(self._silence)

    def _set_silence(self, seconds: float, *, run_cancelled: bool) -> None:
        self._silence, self._run_cancelled = seconds, run_cancelled
        self._stop_clock()
        self._start_clock()

    def _set_timer(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check_clock)

    def _check_clock(self) -> None:
        """Set the single timer again for the remaining time, or give up."""
        now, due = asyncio.get_running_loop().time(), math.inf if self._timer is None else self._timer.when()
        self._timer = None
        if now - due > _LATE:
            self._last_sign = now  # The scorer may have been stopped too.
        if self._open or self._channels:
            left = self._last_sign + (self._silence if self.ready else _ANSWER_WITHIN) - now
            if left > 0:
                self._set_timer(left)
                return
            for number, request in list(self._open.items()):
                request.overdue = True
                if self._run_cancelled:
                    request.abandon(f"did not end within {self._silence:g} s after the run was cancelled")
                    del self._open[number]
            if self._child is not None:
                self._child.signal_group(signal.SIGKILL)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lost(self, child: ChildProcess, how: str) -> None:
        """Handle the death of the process: report lost channels, and send open requests again.

        If two processes in a row ended before they answered, give up all requests.
        """
        if child is not self._child:
            return
        self._child = None
        requests, self._open = list(self._open.values()), {}
        scorer_channels, self._channels = list(self._channels.values()), {}
        for scorer_channel in scorer_channels:
            scorer_channel.on_lost(how)
        self._failed_starts = 0 if self.ready else self._failed_starts + 1
        if self._failed_starts == ATTEMPTS:
            self._failed_starts = 0
            for request in requests:
                request.give_up(f"the scorer {how} before it could start: {child.last_line}")
            return
        if self.ready:
            blame_crash(requests, how, self._silence)
        for request in requests:
            if not request.done.done():
                request.overdue = False
                self._send(request)

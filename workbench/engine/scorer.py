"""The child that scores: `python -m workbench.engine.scorer --control FD --lifeline FD`, in our own interpreter.

What scoring imports (nltk, numpy) and what it does to memory and threads stays here. One conversation at a time, in
the order they come; each criterion's result is sent as soon as it exists.

→ `{"op": "warm", "criteria": [name, …]}` imports what these need
→ `{"op": "case", "id", "first", "criteria": [{"name", "threshold", "value", "options", "custom"}, …], "scenario",
   "rubrics", "static": bool}`, then a frame a turn, `{"op": "expected" | "actual", "id", "turn": {…}}` (an invocation
   can be as large as a frame), then `{"op": "score", "id"}`
← `{"op": "ready"}` once; `{"op": "scored", "id", "index", "result": {…}, "turns": [{…}, …]}` for each criterion,
   `index` counted from `first`
"""

import argparse
import dataclasses
import os
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import Any

from workbench.agents.worker.frames import Channel, FrameTooLargeError, encode
from workbench.events import MetricResult
from workbench.metrics import registry
from workbench.metrics.base import NotScorableError, Scored, ScoreRequest
from workbench.model.criteria import Criterion

_NOT_NEEDED = ("matplotlib", "pandas", "scipy", "sklearn", "tkinter")
"""What nltk imports if it is there, and does without if it is not: a second and a hundred megabytes."""


_TOGETHER = 0.003
"""Seconds that a result may wait for the next one of its case."""


@dataclass
class Case:
    """A conversation as it comes, a frame a turn: `static` says whether it has a reference."""

    first: int
    criteria: list[dict[str, Any]]
    scenario: dict[str, Any] | None
    rubrics: tuple[dict[str, Any], ...]
    static: bool
    expected: list[dict[str, Any]] = field(default_factory=list)
    actual: list[dict[str, Any]] = field(default_factory=list)


def score_one(case: Case, criterion: dict[str, Any]) -> Scored:
    """The verdict of one criterion; if it crashes, that is its verdict: `error`, with the traceback in `details`."""
    name, threshold = criterion["name"], criterion["threshold"]
    request = ScoreRequest(
        Criterion(name, threshold, criterion["value"], criterion["options"]),
        tuple(case.expected) if case.static else None,
        tuple(case.actual),
        case.scenario,
        case.rubrics,
        criterion["custom"],
    )
    try:
        return registry.score(request)
    except NotScorableError as error:
        return Scored(MetricResult(name, "error", None, threshold, str(error)))
    except (Exception, SystemExit) as error:
        reason = f"the metric crashed: {type(error).__name__}: {error}"
        details = {"traceback": traceback.format_exc()}
        return Scored(MetricResult(name, "error", None, threshold, reason, details))


def serve(channel: Channel) -> None:
    """Answers until the other side closes."""
    cases: dict[int, Case] = {}
    channel.send({"op": "ready"})
    while (message := channel.receive()) is not None:
        number = message.get("id", 0)
        match message["op"]:
            case "warm":
                _warm(message["criteria"])
            case "case":
                fields = (message[key] for key in ("first", "criteria", "scenario", "rubrics", "static"))
                cases[number] = Case(*fields)
            case "expected":
                cases[number].expected.append(message["turn"])
            case "actual":
                cases[number].actual.append(message["turn"])
            case "score":
                _score(channel, number, cases.pop(number))
            case "quit":
                return


def _score(channel: Channel, number: int, case: Case) -> None:
    """Sends the results. Those that come within a moment go together; none waits for a judge."""
    replies: list[bytes] = []
    due = time.monotonic() + _TOGETHER
    for index, criterion in enumerate(case.criteria, case.first):
        if time.monotonic() >= due or _takes_time(criterion["name"]):
            channel.sock.sendall(b"".join(replies))
            replies.clear()
            due = time.monotonic() + _TOGETHER
        replies.append(_reply(number, index, score_one(case, criterion)))
    channel.sock.sendall(b"".join(replies))


def _takes_time(name: str) -> bool:
    info = registry.known().get(name)
    return info is None or info.needs_judge or info.needs_service


def _reply(number: int, index: int, scored: Scored) -> bytes:
    message = {"op": "scored", "id": number, "index": index}
    try:
        return encode({**message, **_plain(scored)})
    except FrameTooLargeError as error:
        # The verdict counts; its explanation is too large for anybody to read.
        bare = dataclasses.replace(scored.result, details={"left_out": f"the explanation: {error}"})
        turns = tuple(dataclasses.replace(turn, details={}) for turn in scored.turns)
        return encode({**message, **_plain(Scored(bare, turns))})


def _plain(scored: Scored) -> dict[str, Any]:
    return {"result": _fields(scored.result), "turns": [_fields(turn) for turn in scored.turns]}


def _fields(result: MetricResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__slots__}


def _warm(names: list[str]) -> None:
    """Scores nothing in particular, so that what the criteria import is there when the first case comes."""
    turn = {"final_response": {"parts": [{"text": "warm"}]}}
    for name in names:
        criterion = {"name": name, "threshold": 0.0, "value": 0.0, "options": {}, "custom": False}
        score_one(Case(0, [], None, (), True, [turn], [turn]), criterion)


def forgo_what_is_not_needed() -> None:
    """Lets imports of what nltk can do without fail at once."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def _end_with(lifeline: int) -> None:
    """Ends this process when the workbench is gone, also in the middle of a long calculation."""
    os.read(lifeline, 1)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="workbench.engine.scorer")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    threading.Thread(target=_end_with, args=(arguments.lifeline,), daemon=True).start()
    forgo_what_is_not_needed()
    serve(Channel(socket.socket(fileno=arguments.control)))


if __name__ == "__main__":
    main()

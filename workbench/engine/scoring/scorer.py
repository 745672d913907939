"""The child that scores, in our own interpreter.

It is started as `python -m workbench.engine.scoring.scorer --control FD --lifeline FD`.

What scoring imports (a stemmer, a judge's client) and what it does to memory and threads stays here. Criteria that
are computed come first, in order, one conversation at a time; those that ask somebody (a judge, a service, a function
of the user's) wait side by side, in an event loop that starts with the first of them
(`workbench.engine.scoring.asking`). Each result is sent as soon as it exists, but for those that are computed within
a moment: they go together.

→ `{"op": "warm", "criteria": [name, …]}` imports what these need
→ `{"op": "case", "id", "criteria": [{"index", "asks", "name", "threshold", "value", "options", "custom",
   "custom_config"}, …], "scenario", "rubrics", "static": bool, "environment", "repeat", "all_votes"}`, then a frame a
   turn, `{"op": "expected" | "actual", "id", "turn": {…}}` (an invocation can be as large as a frame), then
   `{"op": "score", "id"}`
→ whatever `workbench.engine.scoring.asking` knows
← `{"op": "ready"}` once; `{"op": "scored", "id", "results": [{"index", "result": {…}, "turns": [{…}, …]}, …]}` until
   each criterion has its result, those that ask in the order in which they are answered
"""

import argparse
import os
import socket
import sys
import threading
import time
from typing import Any

from workbench.agents.worker.collector import collect_rarely
from workbench.agents.worker.frames import Channel
from workbench.engine.scoring.scored_case import Case, reply, score_one
from workbench.metrics.base import Scored

_NOT_NEEDED = ("matplotlib", "pandas", "scipy", "sklearn", "tkinter")
"""What nltk imports if it is there, and does without if it is not: a second and a hundred megabytes, should its stemmer
need all of it (`workbench.metrics.stemmer`)."""


_LAST_WORDS = 2.0
"""Seconds that this process has to end by itself when the workbench is gone."""
_TOGETHER = 0.003
"""Seconds that a result may wait for the next one of its case."""


class Counter:
    """Takes what comes in, and scores what is computed. `for_others` collects what only an event loop can deal with."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.for_others: list[dict[str, Any]] = []
        self._cases: dict[int, Case] = {}

    def take(self, message: dict[str, Any]) -> None:
        number = message.get("id", 0)
        match message["op"]:
            case "warm":
                _warm(message["criteria"])
            case "case":
                fields = ("criteria", "scenario", "rubrics", "static", "environment", "repeat", "all_votes")
                self._cases[number] = Case(*(message[key] for key in fields))
            case "expected":
                self._cases[number].expected.append(message["turn"])
            case "actual":
                self._cases[number].actual.append(message["turn"])
            case "score":
                self._score(number, self._cases.pop(number))
            case _:
                self.for_others.append(message)

    def _score(self, number: int, case: Case) -> None:
        """Sends the results of what is computed. Those that come within a moment go together."""
        results: dict[int, Scored] = {}
        due = time.monotonic() + _TOGETHER
        for criterion in case.criteria:
            if criterion["asks"]:
                self.for_others.append({"op": "ask", "id": number, "case": case, "criterion": criterion})
                continue
            if results and time.monotonic() >= due:
                self.channel.sock.sendall(reply(number, results))
                results.clear()
                due = time.monotonic() + _TOGETHER
            results[criterion["index"]] = score_one(case, criterion)
        if results:
            self.channel.sock.sendall(reply(number, results))


def serve(channel: Channel) -> None:
    """Answers until the other side closes."""
    counter = Counter(channel)
    channel.send({"op": "ready"})
    while (message := channel.receive()) is not None and message["op"] != "quit":
        counter.take(message)
        if counter.for_others:
            from workbench.engine.scoring.asking import serve_asking

            return serve_asking(counter)
    return None


def _warm(names: list[str]) -> None:
    """Scores nothing in particular, so that what the criteria import is there when the first case comes."""
    turn = {"final_response": {"parts": [{"text": "warm"}]}}
    case = Case([], None, (), True, expected=[turn], actual=[turn])
    rest = {"threshold": 0.0, "value": 0.0, "options": {}, "custom": False, "custom_config": None}
    for name in names:
        score_one(case, {"name": name, **rest})


def forgo_what_is_not_needed() -> None:
    """Lets imports of what nltk can do without fail at once."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def _end_with(lifeline: int) -> None:
    """Ends this process when the workbench is gone, also in the middle of a long calculation. What judges have answered
    is written first: a run that is resumed does not ask it again."""
    os.read(lifeline, 1)
    time.sleep(_LAST_WORDS)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="workbench.engine.scoring.scorer")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    threading.Thread(target=_end_with, args=(arguments.lifeline,), daemon=True).start()
    collect_rarely()
    forgo_what_is_not_needed()
    serve(Channel(socket.socket(fileno=arguments.control)))


if __name__ == "__main__":
    main()

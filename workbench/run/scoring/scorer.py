"""The process that scores, in the workbench's own interpreter.

It is started as `python -m workbench.run.scoring.scorer --control FD --lifeline FD`.

Its imports (a stemmer, a judge's client) and their use of memory and threads stay in this process. Computed criteria
are scored first, in order, one conversation at a time. Criteria that ask a judge, a service or a function of the user
wait side by side in an event loop, which starts with the first of them (`workbench.run.scoring.async_scorer`). Each
result is sent as soon as it exists. Results that are computed at nearly the same time are sent together.

→ `{"op": "warm", "criteria": [name, …]}` imports what these need
→ `{"op": "case", "id", "criteria": [{"index", "asks", "name", "threshold", "value", "options", "custom",
   "custom_config"}, …], "scenario", "rubrics", "static": bool, "environment", "repeat", "all_votes", "states",
   "dataset_case", "prices", "inner_calls", "usage"}`, then a frame for each turn, `{"op": "expected" | "actual", "id",
   "turn": {…}}` (an invocation can be as large as a frame), then `{"op": "score", "id"}`
→ the frames of `workbench.run.scoring.async_scorer`
← `{"op": "ready"}` once; `{"op": "scored", "id", "results": [{"index", "result": {…}, "turns": [{…}, …]}, …]}` until
   each criterion has its result, those of judges in the order of the answers
"""

import argparse
import os
import socket
import sys
import threading
import time
from typing import Any

from workbench.criteria.base import Scored
from workbench.run.scoring.scored_case import Case, reply, score_one
from workbench.worker import collect_rarely
from workbench.worker.frames import Channel

_NOT_NEEDED = ("matplotlib", "pandas", "scipy", "sklearn", "tkinter")
"""Optional imports of nltk that cost a second and a hundred megabytes. Its stemmer does not need them
(`workbench.criteria.rouge_words`)."""


_LAST_WORDS = 2.0
"""Seconds in which this process may end by itself after the workbench has ended."""
_TOGETHER = 0.003
"""Seconds for which a result may wait for the next one of its case."""


class SyncScorer:
    """The scorer of computed criteria. It collects messages for the event loop in `async_messages`."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.async_messages: list[dict[str, Any]] = []
        self._cases: dict[int, Case] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Handle a message."""
        number = message.get("id", 0)
        match message["op"]:
            case "warm":
                _warm(message["criteria"])
            case "case":
                fields = (
                    "criteria",
                    "scenario",
                    "rubrics",
                    "static",
                    "environment",
                    "repeat",
                    "all_votes",
                    "states",
                    "dataset_case",
                    "prices",
                    "inner_calls",
                    "usage",
                )
                self._cases[number] = Case(**{name: message[name] for name in fields})
            case "expected":
                self._cases[number].expected.append(message["turn"])
            case "actual":
                self._cases[number].actual.append(message["turn"])
            case "score":
                self._score(number, self._cases.pop(number))
            case _:
                self.async_messages.append(message)

    def _score(self, number: int, case: Case) -> None:
        """Send the results of computed criteria. Results that follow each other quickly are sent together."""
        results: dict[int, Scored] = {}
        due = time.monotonic() + _TOGETHER
        for criterion in case.criteria:
            if criterion["asks"]:
                self.async_messages.append({"op": "ask", "id": number, "case": case, "criterion": criterion})
                continue
            if results and time.monotonic() >= due:
                self.channel.sock.sendall(reply(number, results))
                results.clear()
                due = time.monotonic() + _TOGETHER
            results[criterion["index"]] = score_one(case, criterion)
        if results:
            self.channel.sock.sendall(reply(number, results))


def serve(channel: Channel) -> None:
    """Answer messages until the other side closes."""
    sync_scorer = SyncScorer(channel)
    channel.send({"op": "ready"})
    while (message := channel.receive()) is not None and message["op"] != "quit":
        sync_scorer.take(message)
        if sync_scorer.async_messages:
            from workbench.run.scoring.async_scorer import serve_async

            return serve_async(sync_scorer)
    return None


def _warm(names: list[str]) -> None:
    """Score a dummy case, so that the imports of the criteria are done before the first case."""
    turn = {"final_response": {"parts": [{"text": "warm"}]}}
    case = Case([], None, (), True, expected=[turn], actual=[turn])
    rest = {"threshold": 0.0, "value": 0.0, "options": {}, "custom": False, "custom_config": None}
    for name in names:
        score_one(case, {"name": name, **rest})


def block_unneeded_imports() -> None:
    """Let imports of nltk's optional packages fail at once."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def _end_with(lifeline: int) -> None:
    """End this process after the workbench has ended, even during a long calculation.

    Answers of judges are written first, so that a resumed run does not ask again.
    """
    os.read(lifeline, 1)
    time.sleep(_LAST_WORDS)
    os._exit(0)


def main() -> None:
    """Run the scorer with the descriptors of the command line."""
    parser = argparse.ArgumentParser(prog="workbench.run.scoring.scorer")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    threading.Thread(target=_end_with, args=(arguments.lifeline,), daemon=True).start()
    collect_rarely()
    block_unneeded_imports()
    serve(Channel(socket.socket(fileno=arguments.control)))


if __name__ == "__main__":
    main()

"""The process that scores, in the workbench's own interpreter.

It is started as `python -m workbench.run.scoring.scorer --control FD --lifeline FD`.

Its imports (a stemmer, a judge's client) and their use of memory and threads stay in this process. Computed criteria
are scored first, in order, one conversation at a time. Criteria that ask a judge, a service or a function of the user
wait side by side in an event loop, which starts with the first of them (`workbench.run.scoring.async_scorer`). Each
result is sent as soon as it exists.

→ `{"op": "warm", "criteria": [name, …]}` imports what these need
→ `{"op": "case", "id", "criteria": [{"index", "asks", "name", "threshold", "value", "options", "custom",
   "custom_config"}, …], "scenario", "rubrics", "static": bool, "environment", "repeat", "all_votes", "states",
   "dataset_case", "prices", "inner_calls", "usage"}`, then a frame for each turn, `{"op": "expected" | "actual", "id",
   "turn": {…}}` (an invocation can be as large as a frame), then `{"op": "score", "id"}`
→ the frames of `workbench.run.scoring.async_scorer`
← `{"op": "ready"}` once; `{"op": "scored", "id", "index", "result": {…}, "turns": [{…}, …]}` for each criterion,
   those of judges in the order of the answers
"""

import argparse
import os
import socket
import sys
import threading
import time

from workbench.run.scoring.scored_case import SyncScorer
from workbench.worker import collect_rarely
from workbench.worker.frames import Channel

_NOT_NEEDED = ("matplotlib", "pandas", "scipy", "sklearn", "tkinter")
"""Optional imports of nltk that cost a second and a hundred megabytes.

Its stemmer does not need them (`workbench.criteria.rouge_words`).
"""
_EXIT_SECONDS = 2.0
"""Seconds in which this process may finish after the workbench has ended. After that, it is ended."""


def serve(channel: Channel) -> None:
    """Answer messages until the other side closes or sends `quit`."""
    sync_scorer = SyncScorer(channel)
    channel.send({"op": "ready"})
    while (message := channel.receive()) is not None and message["op"] != "quit":
        sync_scorer.take(message)
        if sync_scorer.async_messages:
            # A third of a second of imports, which a run without judges saves.
            import asyncio

            from workbench.run.scoring.async_scorer import serve_async

            asyncio.run(serve_async(sync_scorer))
            return


def block_unneeded_imports() -> None:
    """Let imports of nltk's optional packages fail at once."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def _end_with(lifeline: int) -> None:
    """End this process `_EXIT_SECONDS` after the workbench has ended, even during a long calculation.

    Until then, pending answers of judges can be stored. A resumed run need not ask again.
    """
    os.read(lifeline, 1)
    time.sleep(_EXIT_SECONDS)
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

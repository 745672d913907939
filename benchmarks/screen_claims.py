"""The workbench with a judged answer of so many sentences: `python -m benchmarks.screen_claims FOLDER SENTENCES`.

Only for `benchmarks.screen`: the verdicts are made up, so that what is measured is the screen alone.
"""

import sys
import time
from pathlib import Path
from typing import Any

from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.ui.running.run_thread import Build, Publish

LABELS = ("supported", "supported", "unsupported", "not_applicable", "contradictory")
CLAIMS = "hallucinations_v1"


def happened(ref: CaseRef, root: str, sentences: int) -> list[Event]:
    """Return the events of a run of one case whose only answer has so many sentences."""
    judge = {"model": "made up", "kind": "python", "note": "", "base_url": ""}
    rows = [_sentence(number) for number in range(sentences)]
    text = {"author": "shop", "step": None, "final": True, "text": "", "score": 0.6, "unread": "", "sentences": rows}
    turn = MetricResult(CLAIMS, "failed", 0.6, 0.8, "", {"texts": [text], "questions": []})
    user = {"role": "user", "parts": [{"text": "Where is my order?"}]}
    return [
        RunStarted("claims", root, "2026-11-21T10:30:00Z", (PlannedCase(ref, None, "defaults"),)),
        CaseStarted(ref, 0.0, ({"user_content": user},), {CLAIMS: 0.8}),
        TurnStarted(ref, 0, user),
        TurnFinished(ref, 0, {"user_content": user}),
        MetricScored(ref, MetricResult(CLAIMS, "failed", 0.6, 0.8, "", {"judge": judge, "share": 0.6}), (turn,)),
        CaseFinished(ref, "failed", None, 0.1),
        RunFinished(0.1),
    ]


def _sentence(number: int) -> dict[str, Any]:
    return {
        "text": f"Sentence {number} says that the parcel will arrive tomorrow morning, or a little later than that.",
        "label": LABELS[number % len(LABELS)],
        "rationale": f"The result of call {number} gives the day of the delivery, and no time of day.",
        "supporting": '"expected": "tomorrow"',
        "contradicting": "",
        "source": {"kind": "result", "name": "find_order", "event": 1, "call_id": None},
    }


def layout_seconds(sentences: int, rounds: int = 9) -> float:
    """Return the shortest time that the layout of the pane takes, in seconds."""
    from workbench.results.document import Subject
    from workbench.results.judges import build
    from workbench.results.lines import View
    from workbench.store.details import read_details
    from workbench.store.store import Store

    ref, store = CaseRef("shop", "shop/many.evalset.json", "many", "case_000000"), Store()
    for event in happened(ref, "/", sentences):
        store.apply(event)
    best = 1e9
    for _ in range(rounds):
        started = time.perf_counter()
        build(Subject(read_details(store.records[ref])), View(75))
        best = min(best, time.perf_counter() - started)
    return best


class Judged:
    """A run that is over as soon as it begins."""

    def __init__(self, publish: Publish, events: list[Event]) -> None:
        self._publish, self._events = publish, events

    async def execute(self) -> None:
        for event in self._events:
            self._publish(event)

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        """Do nothing: the run is already over."""

    def stop(self) -> None:
        """Do nothing: the run is already over."""

    def machines(self) -> tuple[()]:
        """Return no other machines."""
        return ()


def main() -> None:
    """Open the screen. `r` starts the made-up run."""
    from workbench.ui.terminal import terminal

    terminal.prepare()
    from workbench.files import settings as config
    from workbench.ui.main.workbench_app import WorkbenchApp
    from workbench.ui.running.engine_run import Engine
    from workbench.ui.session.session import Session
    from workbench.ui.terminal.themes import DEFAULT, Themes

    session = Session(Path(sys.argv[1]))

    def build(targets: Any, times: object = None) -> Build:
        assert session.workspace is not None
        evalset, case = targets[0]
        entry = session.workspace.evalsets[evalset]
        document = entry.document
        ref = CaseRef("shop", entry.relative, document.eval_set_id, document.cases[case].eval_id)

        async def judged(publish: Publish) -> Judged:
            return Judged(publish, happened(ref, sys.argv[1], int(sys.argv[2])))

        return judged

    themes = Themes()
    settings = config.Settings(Path("none.toml"))
    engine = Engine(session, settings)
    engine.build = build  # type: ignore[method-assign, assignment]
    WorkbenchApp(session, settings, themes, themes.read(DEFAULT), engine=engine).run()


if __name__ == "__main__":
    main()

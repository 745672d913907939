"""A case with 5 000 trace events opens in at most 0.2 s: from the key of its pane to the frame; so do unfolding a row
of it and going to another one. The time with the maximum number of spans is printed next to it. Requests and answers
are in a file, as after a real run."""

import asyncio
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult

from benchmarks.figures import record as figure
from workbench.events.event_json import as_line
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    PlannedCase,
    RunFinished,
    RunStarted,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)
from workbench.files.prices import Price, Prices
from workbench.results.document import Subject
from workbench.results.lines import View
from workbench.results.trace import build
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.history.run_writer import RunWriter
from workbench.store.store import Store
from workbench.ui.detail.body import Body
from workbench.ui.detail.pane import CaseDetail
from workbench.ui.terminal.themes import read_theme, variable_defaults
from workbench.worker.spans import SPANS_LIMIT

EVENTS, LIMIT, ROUNDS = 5_000, 0.2, 7


def prices() -> Prices:
    """Return the user's prices in a new object, so that no cached reading of a trace is used."""
    return Prices({"gemini-2.5-flash": Price(0.3, 2.5)})


def main() -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for events, turns in ((EVENTS, 1), (EVENTS, 50), (SPANS_LIMIT, 1)):
            case = made_up(Path(folder), turns, events // turns)
            laid_out = min(_layout_seconds(case, Path(folder)) for _ in range(ROUNDS))
            times = asyncio.run(_screen_seconds(case, Path(folder)))
            name = f"{events:,} trace events in {turns} turn{'s' * (turns > 1)}"
            told = zip(("laid out", "opened", "a row unfolded", "the next row"), (laid_out, *times), strict=True)
            for what, value in told:
                goal = LIMIT if events == EVENTS else None
                print(f"{name}, {what}: {value:.3f} s" + (f" of {goal}" if goal else ""))
                figure("trace", f"{name}, {what}", value, "s", goal=goal)
                missed += goal is not None and value > goal
    return int(missed > 0)


def made_up(state: Path, turns: int, events: int) -> CaseRecord:
    """Return a case of so many turns and events: an agent that asks a model and calls a tool, again and again."""
    run_id = f"run-{turns}-{events}"
    writer = RunWriter.open(state, run_id)
    ref, store = CaseRef("shop", "shop/many.evalset.json", "many", "one"), Store()
    store.apply(RunStarted(run_id, "/", "2026-11-21T10:30:00Z", (PlannedCase(ref, None, "defaults"),)))
    store.apply(CaseStarted(ref, 0.0, tuple({} for _ in range(turns)), {}))
    for turn in range(turns):
        spans, recorded, pieces = _turn(turn, events)
        user = {"role": "user", "parts": [{"text": f"荷物 {turn} はどこですか。 Where is parcel {turn}?"}]}
        store.apply(TurnStarted(ref, turn, user))
        _, numbers = writer.keep_pieces(pieces) or ("", {})
        kept = json.dumps(numbers)
        store.apply(SpansRecorded(ref, turn, json.dumps(spans), {}, kept, run_id))
        actual = {"user_content": user, "intermediate_data": {"invocation_events": recorded}}
        store.apply(TurnFinished(ref, turn, actual))
    store.apply(CaseFinished(ref, "passed", None, 1.0))
    store.apply(RunFinished(1.0))
    writer.write([as_line(RunFinished(1.0))], sync=False)
    writer.close()
    return read_details(store.records[ref])


def _turn(turn: int, count: int) -> tuple[list[Any], list[Any], dict[str, str]]:
    first = turn * count * 2 + 1
    spans: list[dict[str, Any]] = [{"id": first, "kind": "turn", "name": "", "start": 0.0, "end": float(count)}]
    spans.append({"id": first + 1, "kind": "agent", "name": "shop", "parent": first, "start": 0.0, "end": float(count)})
    recorded: list[Any] = []
    pieces: dict[str, str] = {}
    asked: int | None = None
    for number in range(count - 2):
        span: dict[str, Any] = {"id": first + 2 + number, "parent": first + 1, "start": number + 0.1, "agent": "shop"}
        span |= {"end": number + 0.9, "events": [number]}
        name = f"{turn}-{number}"
        pieces[name] = json.dumps({"role": "model", "parts": [{"text": f"what was said in step {number}"}]})
        if number % 2:
            span |= {"kind": "tool", "name": "find_order", "call": name, "args": name, "response": name}
            part: Any = {"function_response": {"id": name, "name": "find_order", "response": {"found": number}}}
        else:
            base = {"base": asked, "same": number // 2} if asked is not None else {}
            span |= {"kind": "model", "name": "gemini-2.5-flash", "tokens": [1200 + number, 34], "response": name}
            span["request"] = {**base, "more": [name]}
            asked = span["id"]
            part = {"function_call": {"id": f"{turn}-{number + 1}", "name": "find_order", "args": {"id": number}}}
        spans.append(span)
        recorded.append({"author": "shop", "content": {"role": "model", "parts": [part]}})
    return spans, recorded, pieces


def _layout_seconds(case: CaseRecord, state: Path) -> float:
    subject = Subject(case, state=state, prices=prices())
    began = time.perf_counter()
    build(subject, View(75))
    return time.perf_counter() - began


class _Detail(App[None]):
    CSS = "CaseDetail { width: 1fr; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        for file in (Path(__file__).parent.parent / "themes").glob("*.toml"):
            self.register_theme(read_theme(file))
        self.theme = "night"
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield CaseDetail()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults(self.current_theme)


async def _screen_seconds(case: CaseRecord, state: Path) -> tuple[float, ...]:
    """Return the seconds to paint the trace when it is opened, when its first row is unfolded, and one row below."""
    rounds: list[tuple[float, ...]] = []
    for _ in range(ROUNDS):
        app = _Detail()
        async with app.run_test(size=(120, 40)) as pilot:
            detail = app.query_one(CaseDetail)
            detail.show(Subject(case, state=state, prices=prices()))
            detail.show_pane(3)
            await pilot.pause()
            opened = await _painted(app, partial(detail.show_pane, 4))
            app.query_one(Body).move("down")
            await pilot.pause()
            unfolded = await _painted(app, partial(detail.move, "right"))
            rounds.append((opened, unfolded, await _painted(app, partial(detail.move, "down"))))
    return tuple(map(min, zip(*rounds, strict=True)))


async def _painted(app: App[None], do: Any) -> float:
    painted = asyncio.Event()
    began = time.perf_counter()
    do()
    app.call_after_refresh(painted.set)
    await painted.wait()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())

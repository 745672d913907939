"""Runs and screens that look the same each time, on each machine.

The clock stands, and whatever a run measures, or where its folder is, is replaced before it is stored or shown.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from textual.message_pump import MessagePump
from textual.timer import Timer

from docs.pictures.frame import read_frame
from docs.pictures.svg import still
from workbench.events.event_json import from_json, to_json
from workbench.events.events import (
    CaseFinished,
    CaseStarted,
    Event,
    MetricScored,
    RunFinished,
    SpansRecorded,
    TurnFinished,
)
from workbench.run.plan import plan
from workbench.run.recorder import Recorder
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.variants.model import Try

_NOW = datetime(2026, 11, 21, 14, 30, tzinfo=ZoneInfo("UTC"))
_MEASURED = (CaseStarted, TurnFinished, SpansRecorded, MetricScored, CaseFinished, RunFinished)
_SECONDS = 0.25
"""What every step takes."""
_LONG, _AT_ONCE, _NEVER = 1.0, 0.01, 3600.0
"""What waits for less than a second happens at once. What is shown for longer stays."""
_DURATION = {"score": _SECONDS, "reason": f"{_SECONDS} s"}
_FOLDER = re.compile(r"/[^\s\"']*(?=/shop/)")


@contextmanager
def steady(home: Path, minutes_ago: int = 0) -> Iterator[None]:
    """Stop the clock, in UTC and as many minutes before the time of the pictures. Screenshots are small.

    `home` is shown as `~`.
    """
    put, set_timer, export = Recorder.put, MessagePump.set_timer, WorkbenchApp.export_screenshot

    def drawn(app: WorkbenchApp, *, title: str | None = None, simplify: bool = False) -> str:
        return still(read_frame(export(app, simplify=True)), title or app.title, "terminal-")

    def timer(pump: MessagePump, delay: float, *args: Any, **more: Any) -> Timer:
        return set_timer(pump, _AT_ONCE if delay < _LONG else _NEVER, *args, **more)

    now = _NOW - timedelta(minutes=minutes_ago)
    moments = (now + timedelta(milliseconds=each) for each in count())
    with time_machine.travel(now, tick=False), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "put", lambda recorder, event: put(recorder, _unmeasured(event)))
        # Runs that start at the same time need IDs of their own.
        patch.setattr(plan, "datetime", SimpleNamespace(now=lambda zone: next(moments)))
        patch.setattr(Session, "elapsed", lambda session: 0.0 if session.store.activity.running else _SECONDS)
        patch.setattr(Try, "elapsed", lambda tried: 0.0 if tried.going else _SECONDS)
        patch.setattr(WorkbenchApp, "export_screenshot", drawn)
        patch.setenv("HOME", str(home))
        patch.setattr(MessagePump, "set_timer", timer)
        yield


def _unmeasured(event: Event) -> Event:
    return from_json(_replaced(to_json(event))) if isinstance(event, _MEASURED) else event


def _replaced(value: Any, name: str = "") -> Any:
    """Replace durations, times and folders in the JSON of an event."""
    if isinstance(value, Mapping):
        made = {key: _replaced(each, key) for key, each in value.items()}
        return made | _DURATION if value.get("name") == "invocation_duration_v1" else made
    if isinstance(value, list | tuple):
        return [_replaced(each) for each in value]
    if isinstance(value, float) and (name == "at" or "seconds" in name or "duration" in name):
        return 0.0 if name == "at" else _SECONDS
    if not isinstance(value, str):
        return value
    return _spans(value) if name == "spans" else _FOLDER.sub("", value)


def _spans(text: str) -> str:
    """Let each span of a turn begin after the one before it has ended, and inside the one around it."""
    spans = json.loads(text)
    known = {span.get("id") for span in spans}
    inside: dict[Any, list[dict[str, Any]]] = {}
    for span in spans:
        parent = span.get("parent")
        inside.setdefault(parent if parent in known else None, []).append(span)
    step, ticks = _SECONDS / (2 * len(spans) or 1), count()

    def measure(span: dict[str, Any]) -> None:
        began = next(ticks)
        for child in inside.get(span.get("id"), ()):
            measure(child)
        ended = next(ticks)
        span |= {name: tick * step for name, tick in (("start", began), ("end", ended)) if span.get(name) is not None}

    for span in inside.get(None, ()):
        measure(span)
    return json.dumps(spans, separators=(",", ":"))

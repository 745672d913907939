"""Forks of conversations that the worker made, as the workbench makes them."""

from typing import Any

from tests.worker.client import Agent, Outcome, user
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseRef,
    CaseStarted,
    Event,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)
from workbench.run.forking import Change, Fork, Original, read_original

REF = CaseRef("desk", "desk.evalset.json", "desk", "case")
_KINDS = {"AgentActed": AgentActed, "Spans": SpansRecorded, "Calls": CallsRecorded, "TurnFinished": TurnFinished}
_FIELDS = {
    "AgentActed": ("acted",),
    "Spans": ("spans", "pieces"),
    "Calls": ("calls", "pieces"),
    "TurnFinished": ("actual",),
}


def original(outcome: Outcome, *messages: str) -> Original:
    """Return what an outcome recorded."""
    events: list[Event] = [TurnStarted(REF, number, user(text)) for number, text in enumerate(messages)]
    for frame in outcome.events:
        kind = frame["event"]
        if kind in _KINDS:
            events.append(_KINDS[kind](REF, frame["turn"], *(frame[name] for name in _FIELDS[kind])))
    finished = {event.turn for event in events if isinstance(event, TurnFinished)}
    kept = [event for event in events if not (isinstance(event, AgentActed) and event.turn in finished)]
    return read_original(REF, "run", CaseStarted(REF, 0.0, None, {}), kept, None)


def fork(agent: Agent, fork: Fork, *more: str, **options: Any) -> Outcome:
    """Run a fork, with more messages after the turn of its point."""
    rest = fork.rest()
    replay = None if rest is None else rest.settings("tools")
    calls = {"record": True, "replay": replay, "fork": fork.settings()}
    case = agent.start(calls=calls, **options)
    for frame in [*fork.frames(), *(rest.frames("tools") if rest is not None else ())]:
        case.send(frame)
    return case.play([*fork.messages(), *more])


def changed(kind: Any, value: Any, agent: str = "desk", *, whole: bool = False) -> Change:
    return Change(kind, value, agent, whole)

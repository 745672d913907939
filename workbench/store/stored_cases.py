"""Transcripts of this session's cases, which can be scored again."""

from collections.abc import Iterator
from typing import Literal

from workbench.events.events import (
    AgentActed,
    CaseFinished,
    CaseStarted,
    Event,
    OutputCaptured,
    TurnFinished,
    TurnStarted,
)
from workbench.store.execution import CaseRecord
from workbench.store.transcripts import StoredCase

_STREAMS: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")


def stored_case(record: CaseRecord) -> StoredCase:
    """Return the transcript of a case of this session."""
    case = StoredCase(record.planned, inputs=tuple(record.inputs))
    for event in _events(record):
        case.take(event)
    return case


def _events(record: CaseRecord) -> Iterator[Event]:
    ref = record.ref
    if record.started_at is not None:
        yield CaseStarted(
            ref,
            record.started_at,
            record.expected,
            record.criteria,
            record.scenario,
            record.rubrics,
            record.custom_metrics,
            record.simulator,
            record.attempt,
            record.session,
            record.final_session_state,
            record.dataset_case,
            record.lost,
        )
    for stream in _STREAMS:
        if record.output.get(stream):
            yield OutputCaptured(ref, stream, record.output[stream])
    for number, turn in enumerate(record.turns):
        yield from (step for step in record.simulated if step.turn == number)
        yield TurnStarted(ref, number, turn.user)
        if turn.spans is not None:
            yield turn.spans
        yield from turn.calls
        if turn.actual is None:
            yield from (AgentActed(ref, number, acted) for acted in turn.acted)
        else:
            # The last turn has the usage of the whole case.
            yield TurnFinished(ref, number, turn.actual, turn.note, record.usage, turn.state, turn.inner_calls)
    yield from (step for step in record.simulated if step.turn >= len(record.turns))
    if record.state != "queued" and record.state != "running":
        yield CaseFinished(
            ref,
            record.state,
            record.error,
            record.duration_seconds,
            frozen=record.frozen,
            thawed=record.thawed,
            machine=record.machine,
        )

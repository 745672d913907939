"""Capture of conversations and finished cases, to keep them as new cases."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.editing.capture import Captured, of_turns
from workbench.files.evalset import EvalCase
from workbench.files.invocation import content_text
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.chat.conversation import Conversation


def captured_from_conversation(conversation: Conversation, app_name: str, user_id: str) -> Captured:
    """Return the answered turns of a conversation. Its notes name the turns without an answer."""
    notes = [
        f"“{one_line(content_text(item.turn.user), limit=40)}” has no answer and is left out: "
        f"{one_line(item.error.message, limit=200)}. Its changes to the session are not in the case."
        for item in conversation.turns
        if item.error is not None
    ]
    finished = conversation.finished
    turns = tuple(turn.actual for turn in finished if turn.actual is not None)
    states = tuple(turn.state for turn in finished)
    return Captured(app_name, user_id, turns, conversation.initial, tuple(notes), states=states)


def captured_from_try(record: CaseRecord, app_name: str) -> Captured:
    """Return the answered turns of a fork's try, with the session that it began with."""
    session = record.session or {}
    state = session.get("state")
    turns = tuple(turn.actual for turn in record.turns if turn.actual is not None)
    without = len(record.turns) - len(turns)
    return Captured(
        str(session.get("app_name") or app_name),
        str(session.get("user_id") or "user"),
        turns,
        state if isinstance(state, dict) else {},
        (f"{counted(without, 'turn')} without an answer left out",) if without else (),
        states=_states(record),
    )


def captured_from_record(record: CaseRecord, case: EvalCase | None, app_name: str) -> Captured:
    """Return the answered turns of a finished case, with the session input of the case."""
    session: dict[str, Any] = (case.session_input if case is not None else None) or {}
    finished = [turn.actual for turn in record.turns if turn.actual is not None]
    without = len(record.turns) - len(finished)
    notes = []
    if without:
        notes.append(f"{counted(without, 'turn')} without an answer left out")
    state = session.get("state")
    if case is None:
        notes.append("initial state unknown: the case is no longer in its file")
    elif state and record.expected is not None and list(record.expected) != list(case.turns or ()):
        notes.append("the case has changed since that run: this is its current initial state")
    return Captured(
        str(session.get("app_name") or app_name),
        str(session.get("user_id") or "user"),
        tuple(finished),
        state if isinstance(state, dict) else {},
        tuple(notes),
        states=_states(record),
    )


def _states(record: CaseRecord) -> tuple[dict[str, Any] | None, ...]:
    """Return the session's state after each answered turn, as far as it is known."""
    return tuple(turn.state for turn in record.turns if turn.actual is not None)


def with_recording(captured: Captured, record: CaseRecord, root: Path, state: Path) -> Captured:
    """Return what `captured_from_record` captured, with the recorded calls of its turns if the run has them.

    They are kept by default if the case was replayed or has a recording. Reads files, so call it in a thread.
    """
    from workbench.project.freezing import recording_of_run

    recording, has_one = recording_of_run(record, root, state)
    if recording is None:
        return captured
    answered = [number for number, turn in enumerate(record.turns, 1) if turn.actual is not None]
    keeps = has_one or record.frozen is not None
    return replace(captured, recording=of_turns(recording, answered), keeps_recording=keeps)

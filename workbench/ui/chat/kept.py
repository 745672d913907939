"""What took place, as something that can be kept: from a conversation, or from an executed case."""

from typing import Any

from workbench.authoring.capture import Captured
from workbench.model.evalset import EvalCase
from workbench.model.invocation import content_text
from workbench.store import CaseRecord
from workbench.text import one_line
from workbench.ui.chat.talk import Talk


def captured_from_talk(talk: Talk, app_name: str, user_id: str) -> Captured:
    """The answered turns of a conversation; those without an answer are in the notes."""
    notes = [
        f"“{one_line(content_text(item.turn.user), limit=40)}” has no answer and is left out: "
        f"{one_line(item.error.message, limit=200)}. What it changed in the session is not in the case."
        for item in talk.turns
        if item.error is not None
    ]
    turns = tuple(turn.actual for turn in talk.finished if turn.actual is not None)
    return Captured(app_name, user_id, turns, talk.initial, tuple(notes))


def captured_from_record(record: CaseRecord, case: EvalCase | None, app_name: str) -> Captured:
    """What the agent did in an executed case, with the session that the case gives it."""
    session: dict[str, Any] = (case.session_input if case is not None else None) or {}
    finished = [turn.actual for turn in record.turns if turn.actual is not None]
    without = len(record.turns) - len(finished)
    notes = []
    if without:
        notes.append(f"{without} turn{' has' if without == 1 else 's have'} no answer, and will not be in the case")
    state = session.get("state")
    if case is None:
        notes.append("the case is not in its file any more: the state its session began with is not known")
    elif state and record.expected is not None and list(record.expected) != list(case.turns or ()):
        notes.append("the case was changed since: the initial state is the one that it has now")
    return Captured(
        str(session.get("app_name") or app_name),
        str(session.get("user_id") or "user"),
        tuple(finished),
        state if isinstance(state, dict) else {},
        tuple(notes),
    )

"""Forks of stored conversations, and of those of this session."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from workbench.agents.discovery import find_root
from workbench.events.events import CaseRef, CaseStarted, Event, ForkChange, TurnFinished, TurnStarted
from workbench.files.run_options import UsageFaultError
from workbench.files.state_folder import state_dir
from workbench.run.forking import CannotForkError, Change, Fork, Original, read_original
from workbench.run.plan.run_plan import fork_plan as plan_of_fork
from workbench.store.execution import CaseRecord, Turn
from workbench.store.history.reading import open_run
from workbench.store.history.state_dir import is_stored, state_of
from workbench.store.transcripts import StoredCase, stored_case

CHAT = "chat"
"""The name of a live conversation, which has no run."""
__all__ = ["CHAT", "make_fork", "original_of_record", "original_of_turns", "plan_of_fork", "stored_original"]


def original_of_record(record: CaseRecord, state: Path | None) -> Original:
    """Return the conversation of a case of this session or of an opened run.

    `state` is the state folder with the runs. Reads files.

    Raises:
        CannotForkError: its calls were not recorded.
    """
    return _original(stored_case(record), record.run_id, state)


def original_of_turns(agent: str, session: dict[str, Any], turns: Sequence[Turn]) -> Original:
    """Return a live conversation with an agent. `session` is its session input, `turns` are those that finished.

    Raises:
        CannotForkError: its calls were not recorded.
    """
    ref = CaseRef(agent, "", "", "chat")
    finished = list(itertools.takewhile(lambda turn: turn.actual is not None, turns))
    started = CaseStarted(ref, 0.0, tuple({"user_content": turn.user} for turn in finished), {}, session=session)
    return read_original(ref, CHAT, started, _steps(ref, finished), None)


def _steps(ref: CaseRef, turns: Sequence[Turn]) -> Iterator[Event]:
    for number, turn in enumerate(turns):
        yield TurnStarted(ref, number, turn.user)
        if turn.spans is not None:
            yield turn.spans
        yield from turn.calls
        if turn.actual is not None:
            yield TurnFinished(ref, number, turn.actual)


def stored_original(
    word: str, case: str, repeat: int = 1, *, folder: Path, explicit_state: Path | None = None
) -> Original:
    """Return a conversation of a stored run. `word` is an id or the start of one, or `last`. Reads files.

    Raises:
        UsageFaultError: the run or case does not exist, or its calls were not recorded.
    """
    run = open_run(word, state_dir(find_root(folder), explicit_state), folder)
    found = [one for ref, one in run.cases.items() if ref.eval_id == case and ref.repeat == repeat]
    if not found:
        raise UsageFaultError(f"run {run.run_id} has no case {case}, repeat {repeat}", "", "nothing")
    if len(found) > 1:
        files = ", ".join(one.ref.evalset_file for one in found)
        raise UsageFaultError(f"run {run.run_id} has several cases {case}: in {files}", "", "nothing")
    state = state_of(run.file) if run.file is not None and is_stored(run.file) else None
    try:
        return _original(found[0], run.run_id, state)
    except CannotForkError as error:
        raise UsageFaultError(f"cannot fork {case}: {error}") from None


def _original(case: StoredCase, run_id: str, state: Path | None) -> Original:
    return read_original(case.ref, run_id, case.started, case.steps, state)


def make_fork(
    original: Original, turn: int, call: int = 0, *, change: ForkChange, value: object, agent: str, frozen: bool
) -> Fork:
    """Return a fork. Turns count from 1, and calls from 1 in the whole conversation; 0 is the start of the turn.

    Raises:
        UsageFaultError: there is no such point, or the change does not fit it.
    """
    place = call - 1 if call else None
    try:
        return Fork(original, turn - 1, place, Change(change, value, agent), frozen)
    except CannotForkError as error:
        raise UsageFaultError(f"cannot fork: {error}") from None

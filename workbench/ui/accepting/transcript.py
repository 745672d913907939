"""The transcript that is taken over: of this session, else of the last run that is kept."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.plan.transcripts import StoredCase
from workbench.history.run_names import LAST, last_run
from workbench.history.stored_run import open_run
from workbench.project.transcripts import stored_case
from workbench.store import CaseRecord


@dataclass(frozen=True)
class Transcript:
    """`turns` are invocations, None for one without its end; `run_id` the run, `repeat` which execution in it."""

    run_id: str
    repeat: int
    turns: tuple[dict[str, Any] | None, ...]


def of_record(record: CaseRecord) -> Transcript | None:
    """What this session knows of an execution; None if nothing."""
    return _transcript(record.run_id, stored_case(record))


def of_last_run(state: Path, file: str, eval_id: str) -> Transcript | None:
    """What the last run that is kept in the state folder knows of a case (`file` relative to the root); None if
    nothing. Reads the run: for a thread.
    """
    if last_run(state) is None:
        return None
    run = open_run(LAST, state, state)
    cases = (case for ref, case in run.cases.items() if ref.name == (file, eval_id))
    found = [one for case in cases if (one := _transcript(run.run_id, case)) is not None]
    return found[0] if found else None


def _transcript(run_id: str, case: StoredCase) -> Transcript | None:
    turns = {turn.turn: turn.actual for turn in case.turns}
    if not turns:
        return None
    return Transcript(run_id, case.ref.repeat, tuple(turns.get(number) for number in range(max(turns) + 1)))

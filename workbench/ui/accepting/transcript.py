"""The transcript to accept: from this session, else from the last stored run."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.criteria.trajectory import includes_agent_tools, unknown_calls
from workbench.editing.accept import NotComparableError
from workbench.events.events import InnerCalls
from workbench.files.criteria import Criterion
from workbench.files.invocation import with_inner_calls
from workbench.store.execution import CaseRecord
from workbench.store.history.reading import open_run
from workbench.store.history.run_names import LAST, last_run
from workbench.store.transcripts import StoredCase, stored_case


@dataclass(frozen=True)
class Transcript:
    """A transcript of a case in a run.

    `turns` are ADK invocations, or None for a turn that did not end. `state` is the session state after them, or None.
    `inner_calls` are those of each turn inside agents that are used as tools.
    """

    run_id: str
    repeat: int
    turns: tuple[dict[str, Any] | None, ...]
    state: dict[str, Any] | None = None
    inner_calls: tuple[InnerCalls, ...] = ()

    def compared(self, criteria: Iterable[Criterion]) -> "Transcript":
        """Return the transcript as these criteria compare it.

        Raises:
            NotComparableError: They compare calls that are not known.
        """
        if not includes_agent_tools(criteria):
            return self
        known = [turn is not None for turn in self.turns]
        inner = [calls for calls, is_known in zip(self.inner_calls, known, strict=True) if is_known]
        if why := unknown_calls(inner, sum(known)):
            raise NotComparableError(why)
        merged = (
            None if turn is None else with_inner_calls(turn, calls or ())
            for turn, calls in zip(self.turns, self.inner_calls, strict=True)
        )
        return replace(self, turns=tuple(merged), inner_calls=((),) * len(known))


def of_record(record: CaseRecord) -> Transcript | None:
    """Return the transcript of a record in this session, or None if it has none."""
    return _transcript(record.run_id, stored_case(record))


def of_last_run(state: Path, file: str, eval_id: str) -> Transcript | None:
    """Return the transcript of a case in the last stored run, or None if it has none.

    `state` is the state folder, and `file` is relative to the root. Reads the run, so call it in a thread.
    """
    if last_run(state) is None:
        return None
    run = open_run(LAST, state, state)
    cases = (case for ref, case in run.cases.items() if ref.name == (file, eval_id))
    found = [one for case in cases if (one := _transcript(run.run_id, case)) is not None]
    return found[0] if found else None


def _transcript(run_id: str, case: StoredCase) -> Transcript | None:
    turns = {turn.turn: turn for turn in case.turns}
    if not turns:
        return None
    actual = tuple(turns[number].actual if number in turns else None for number in range(max(turns) + 1))
    inner = tuple(turns[number].inner_calls if number in turns else None for number in range(len(actual)))
    return Transcript(run_id, case.ref.repeat, actual, turns[max(turns)].state, inner)

"""The transcript of a running case, and a stored case that is scored again: its events, reference and valid verdicts.

Stored transcripts are in `workbench.store.transcripts`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from workbench.criteria.base import Scored
from workbench.criteria.secrets import not_scored_again
from workbench.events.events import CaseError, CaseStatus, Event, Frozen, InnerCalls, Thawed, Usage
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase
from workbench.run.plan.blocking import scenario_criteria
from workbench.run.plan.source import StoredSource
from workbench.run.processes.agent_process import Reads


class CallCounts(NamedTuple):
    """The calls of a replayed case so far: answered from the recording, made live, and missing in it.

    `reordered` names tools, as in `Frozen`.
    """

    tools: int = 0
    models: int = 0
    live: int = 0
    misses: int = 0
    reordered: tuple[str, ...] = ()


@dataclass
class Transcript:
    """The invocations of an agent in a case, one for each turn.

    The transcript is complete unless `error` says why not. Then `status` is the case's status. `shared_process_died`
    means that a process of several cases died, so that the guilty case is not known. `stalled` means that the parent
    process hung and was replaced.
    """

    turns: list[dict[str, Any]] = field(default_factory=list)
    error: CaseError | None = None
    status: CaseStatus = "error"
    usage: Usage = field(default_factory=Usage)
    shared_process_died: bool = False
    stalled: bool = False
    machine: str = ""
    """The other machine on which the case ran, or "" for this machine."""
    reads: Reads | None = None
    """Files that the case and the import of its agent read; None if the case ended without reporting them."""
    unseen: tuple[str, ...] = ()
    """Inputs of the case that no comparison can see (`CaseFinished.unseen`)."""
    calls: CallCounts = field(default_factory=CallCounts)
    declared: dict[tuple[str, str], tuple[str | None, str]] = field(default_factory=dict)
    """Agent and tool → digests of its declaration and source, for each tool that a replayed case had."""
    differs: str = ""
    """The difference of a request from the recorded one, as in the worker's message `Failed`, or ""."""
    frozen: Frozen | None = None
    """The counts of the replay, or None if all calls were live."""
    thawed: Thawed | None = None
    """The differences of a live case from its recording, or None if they were not compared."""
    state: dict[str, Any] | None = None
    """The session state after the last turn, or None if nobody needs it or it is not known."""
    inner_calls: list[InnerCalls] = field(default_factory=list)
    """The calls inside agents that are used as tools, for each turn."""
    recording: tuple[Path, ...] = ()
    """The frozen file of a case that is replayed if it exists, and the files that it names."""


def stored_events(source: StoredSource, config: CriteriaConfig, at: float) -> Iterator[Event]:
    """Yield the stored events of the case with the current criteria. The case starts `at` these seconds."""
    started, ref = source.case.started, source.case.ref
    if started is not None:
        criteria = {criterion.name: criterion.value for criterion in config.criteria}
        yield replace(started, case=ref, at=at, criteria=criteria, custom_metrics=config.custom_metrics)
        yield from source.case.steps


def complete_case(source: StoredSource) -> EvalCase:
    """Return the eval case of a complete transcript."""
    started = source.case.started
    assert started is not None  # The transcript is complete.
    ref, state, given = source.case.ref, started.final_session_state, started.dataset_case
    return EvalCase(ref.eval_id, started.expected, started.scenario, None, started.rubrics, state, None, given)


def settled_verdicts(source: StoredSource, config: CriteriaConfig) -> tuple[Scored, ...]:
    """Return the verdicts that need no scoring: valid ones, and `not_evaluated` for replaced secrets."""
    valid = {one.result.name for one in source.verdicts}
    impossible = not_scored_again(source.case, config)
    return (*source.verdicts, *(one for one in impossible if one.result.name not in valid))


def unsuited_error(source: StoredSource, scored: Sequence[Scored]) -> CaseError | None:
    """Return the error of a simulated conversation that no criterion judges, or None if one does."""
    started = source.case.started
    judges_nothing = ("not_applicable", "informational")
    if started is None or started.scenario is None or any(one.result.status not in judges_nothing for one in scored):
        return None
    if any(one.result.name in started.custom_metrics for one in scored):
        return None
    return CaseError(
        "config",
        "no criterion of the config can judge a conversation with a simulated user",
        f"Add one of these criteria: {', '.join(scenario_criteria())}",
    )

"""What an agent did about an injected fault. `docs/faults.md` describes the rules for users."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, get_args

from workbench.events import CaseError, CaseStatus, ErrorKind, FaultHandling, FaultOutcome, MetricResult
from workbench.injection.observed import Observed
from workbench.metrics.registry import descriptions
from workbench.model.criteria import CriteriaConfig, Criterion

CRASHES: Final[frozenset[ErrorKind]] = frozenset(
    {"agent_raised", "timeout", "crashed", "too_large", "output_flood", "turn_count"}
)
"""Errors of a conversation for which the agent is responsible."""
_LEFT: Final[frozenset[ErrorKind]] = frozenset({"off_recording", "frozen_miss"})
STATUS: Final[Mapping[FaultOutcome, CaseStatus]] = MappingProxyType(
    {
        "crashed": "error",
        "made_up": "failed",
        "off_recording": "error",
        "silent": "failed",
        "reported": "passed",
        "recovered": "passed",
        "not_evaluated": "not_evaluated",
        "no_result": "error",
        "not_called": "not_evaluated",
    }
)
"""The status of an execution with a fault: whether the agent handled it. The order is that of tables, worst first."""
assert set(STATUS) == set(get_args(FaultOutcome))


def answer_criteria(config: CriteriaConfig) -> tuple[Criterion, ...]:
    """Return the criteria that compare the final answer with the expected one.

    Only these decide whether an agent recovered: the calls of a recovery differ from the expected ones.
    """
    known = descriptions()
    return tuple(
        criterion
        for criterion in config.criteria
        if criterion.name not in config.custom_metrics
        and criterion.name in known
        and known[criterion.name].compares_answers
    )


def decide(
    seen: Observed, error: CaseError | None, results: Sequence[MetricResult], answer: str
) -> FaultHandling | None:
    """Return what the agent did, or None if only a judge can tell.

    Args:
        seen: The observations about the fault.
        error: Why the conversation is incomplete, or None.
        results: The verdicts of `answer_criteria`.
        answer: The final answer of the turn with the fault.
    """
    if error is not None:
        return _incomplete(seen, error)
    if seen.turn is None:
        return FaultHandling("not_called", "the agent did not call the tool")
    decided = [result for result in results if result.status in ("passed", "failed")]
    if decided and all(result.status == "passed" for result in decided):
        return FaultHandling("recovered", f"the answer is as expected ({decided[0].name})")
    if seen.retried:
        return FaultHandling("recovered", "the agent made the call again and got its answer")
    if not answer.strip():
        return FaultHandling("silent", "the agent gave no answer")
    return None


def _incomplete(seen: Observed, error: CaseError) -> FaultHandling:
    if seen.turn is None:
        return FaultHandling("no_result", f"before the fault: {error.message}")
    outcome: FaultOutcome = (
        "crashed" if error.kind in CRASHES else "off_recording" if error.kind in _LEFT else "no_result"
    )
    return FaultHandling(outcome, error.message)

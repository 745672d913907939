"""A stored case in a run that scores it again: its events, its reference, and verdicts that stay valid."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.engine.plan.replaced_secrets import not_scored_again
from workbench.engine.plan.scenario_case import scenario_criteria
from workbench.engine.plan.source import StoredSource
from workbench.events import CaseError, Event
from workbench.metrics.base import Scored
from workbench.model.criteria import CriteriaConfig
from workbench.model.evalset import EvalCase


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
    if started is None or started.scenario is None or any(map(_says_something, scored)):
        return None
    if any(one.result.name in started.custom_metrics for one in scored):
        return None
    return CaseError(
        "config",
        "no criterion of the config can judge a conversation with a simulated user",
        f"Add one of these criteria: {', '.join(scenario_criteria())}",
    )


def _says_something(scored: Scored) -> bool:
    return scored.result.status not in ("not_applicable", "informational")

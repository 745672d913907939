"""A stored case as a run scores it: its events, its reference, and the verdicts that are not asked for again."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.engine.plan.replaced_secrets import not_scored_again
from workbench.engine.plan.scenario_case import scenario_criteria
from workbench.engine.plan.source import StoredSource
from workbench.events import CaseError, Event
from workbench.metrics.base import Scored
from workbench.model.criteria import CriteriaConfig
from workbench.model.evalset import EvalCase


def as_stored(source: StoredSource, config: CriteriaConfig, at: float) -> Iterator[Event]:
    """Yield the events of the case as it was stored, with the criteria of now. It starts `at` these seconds."""
    started, ref = source.case.started, source.case.ref
    if started is not None:
        criteria = {criterion.name: criterion.value for criterion in config.criteria}
        yield replace(started, case=ref, at=at, criteria=criteria, custom_metrics=config.custom_metrics)
        yield from source.case.steps


def complete_case(source: StoredSource) -> EvalCase:
    """Return the case for which a complete transcript was made."""
    started = source.case.started
    assert started is not None  # The transcript is complete.
    return EvalCase(source.case.ref.eval_id, started.expected, started.scenario, None, started.rubrics, None, None)


def settled(source: StoredSource, config: CriteriaConfig) -> tuple[Scored, ...]:
    """Return the verdicts that are not asked for: those that hold, and those that nobody can give any more."""
    held = {one.result.name for one in source.verdicts}
    lost = not_scored_again(source.case, config)
    return (*source.verdicts, *(one for one in lost if one.result.name not in held))


def unsuited(source: StoredSource, scored: Sequence[Scored]) -> CaseError | None:
    """Return the error of a simulated conversation that no criterion can judge; None if one does."""
    started = source.case.started
    if started is None or started.scenario is None or any(map(_says_something, scored)):
        return None
    return CaseError(
        "config",
        "no criterion of the config can judge a conversation with a simulated user",
        f"Add one of these criteria: {', '.join(scenario_criteria())}",
    )


def _says_something(scored: Scored) -> bool:
    return scored.result.status not in ("not_applicable", "informational")

"""Which earlier run is worth comparing with a run."""

from collections.abc import Sequence
from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.kept_runs import KeptRun
from workbench.history.sides import open_summary
from workbench.history.votes import Case, are_enough, case_votes

_LOOKED_AT = 20
"""Earlier runs that are read for it, the newest first."""


def last_comparable(state: Path, run: KeptRun, others: Sequence[KeptRun]) -> KeptRun | None:
    """Return the newest of the earlier runs in which at least half of the cases of `run` are decided, else the newest
    that decided any of them; None if none of them did. Reads summaries: for a thread."""
    wanted = _decided(state, run).keys()
    earlier = [other for other in others if other.path != run.path and other.started <= run.started]
    some: KeptRun | None = None
    for other in earlier[:_LOOKED_AT]:
        shared = wanted & _decided(state, other).keys()
        if are_enough(shared, wanted):
            return other
        if shared and some is None:
            some = other
    return some


def _decided(state: Path, run: KeptRun) -> dict[Case, float]:
    try:
        return case_votes(open_summary(run.word, state, state)[0].rows.values())
    except UsageFaultError:
        return {}

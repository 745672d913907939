"""All that is said of cases at hand before they run, in its order."""

from collections.abc import Iterator, Sequence

from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.preflight.asked import judges, not_evaluated, not_played
from workbench.engine.plan.preflight.calls import calls_to_come
from workbench.engine.plan.preflight.config_faults import idle_criteria, spoken_messages, stop_signals, untyped_rubrics
from workbench.engine.plan.preflight.functions import missing_functions
from workbench.engine.plan.preflight.looked import Looked
from workbench.engine.plan.preflight.sight import EnvironmentOf, Sight
from workbench.events import Noticed


def notices(
    cases: Sequence[Looked],
    environment_of: EnvironmentOf,
    options: RunOptions,
    scale: float = 1.0,
    *,
    played: bool = True,
) -> Iterator[Noticed]:
    """The notices for these cases; the run has `scale` times as many. Not `played`: their transcripts are there."""
    sight = Sight(cases, environment_of, played=played)
    yield from not_evaluated(sight)
    yield from missing_functions(sight)
    yield from not_played(sight)
    yield from judges(sight)
    yield from idle_criteria(cases)
    yield from stop_signals(cases)
    yield from untyped_rubrics(cases)
    yield from spoken_messages(cases if played else ())
    yield from calls_to_come(sight, scale, options)

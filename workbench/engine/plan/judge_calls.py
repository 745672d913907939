"""How many calls judges, the evaluation service and simulated users will be asked for in a run: an estimate, made
before the first one. What is kept from earlier runs, and retries, are not in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.judge.base import DEFAULT_SAMPLES, JudgeOptions
from workbench.judge.options import read_judge_options
from workbench.metrics.description import JUDGE, RUBRICS
from workbench.metrics.registry import known
from workbench.model.criteria import Criterion
from workbench.simulation.config import SimulatorConfig

_LONGEST = 20
"""Turns assumed of a simulated conversation without a limit."""
_TEXTS = 4
"""Texts assumed of a turn where what was said on the way is judged too."""


@dataclass(frozen=True, slots=True)
class CallRange:
    """From so many to so many."""

    low: int = 0
    high: int = 0

    def __add__(self, other: "CallRange") -> "CallRange":
        return CallRange(self.low + other.low, self.high + other.high)

    def times(self, count: "int | CallRange") -> "CallRange":
        factor = CallRange(count, count) if isinstance(count, int) else count
        return CallRange(self.low * factor.low, self.high * factor.high)


def total(spans: Iterable[CallRange]) -> CallRange:
    """All of them together."""
    return sum(spans, CallRange())


def turns_of_scenario(simulator: SimulatorConfig) -> CallRange:
    """How many turns a simulated conversation may have."""
    limit = _LONGEST if simulator.turn_limit is None else simulator.turn_limit
    return CallRange(min(1, limit), limit)


def simulator_calls(simulator: SimulatorConfig) -> CallRange:
    """How often a simulated user is asked in one conversation: for each message but the first, and for the end of one
    that stops by itself."""
    limit = turns_of_scenario(simulator).high
    return CallRange(1, limit - 1) if limit > 1 else CallRange()


def criterion_calls(
    criterion: Criterion, samples: int, turns: CallRange, rubrics: Sequence[dict[str, Any]], *, all_votes: bool
) -> CallRange:
    """How often judges are asked for one criterion of one case with so many `turns`, up to `samples` times a question;
    `rubrics` are all that stand in the case and its turns."""
    asks = known()[criterion.name].asks
    if asks is None or lacks_rubrics(criterion, rubrics):
        return CallRange()
    if asks.once:
        turns = CallRange(min(turns.low, 1), min(turns.high, 1))
    if asks.who == "service":
        return turns
    if asks.votes:
        # The simulated user's first message is compared as text; ending the conversation is a question of its own.
        return _votes(samples, all_votes).times(turns)
    # An answer may be empty, so that a turn may have no more than one text.
    more = _TEXTS if criterion.options.get(asks.more_with) else 1
    return CallRange(asks.questions * turns.low, asks.questions * more * turns.high)


def lacks_rubrics(criterion: Criterion, rubrics: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a criterion judges by rubrics and has none: neither its own nor any of the case's `rubrics`."""
    info = known().get(criterion.name)
    wanted = info.rubric_type if info is not None else ""
    own = criterion.options.get(RUBRICS)
    return bool(wanted) and not own and not any(rubric.get("type") == wanted for rubric in rubrics)


def options_of(criterion: Criterion) -> JudgeOptions:
    """The judge of a criterion; the default one where the options are wrong, which is told elsewhere."""
    try:
        return read_judge_options(criterion.options.get(JUDGE) or {})
    except ValueError:
        return JudgeOptions(samples=DEFAULT_SAMPLES)


def _votes(samples: int, all_votes: bool) -> CallRange:
    """What is asked about one turn: the smallest number that can decide, up to all."""
    return CallRange(samples if all_votes else samples // 2 + 1, samples)

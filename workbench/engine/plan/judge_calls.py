"""How many calls judges, the evaluation service and simulated users will be asked for in a run: an estimate, made
before the first one. What is kept from earlier runs, and retries, are not in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.judge.base import DEFAULT_SAMPLES, JudgeOptions
from workbench.judge.options import read_judge_options
from workbench.metrics.registry import known
from workbench.model.criteria import Criterion
from workbench.simulation.config import SimulatorConfig

RUBRIC_TYPES = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}
_LONGEST = 20
"""Turns assumed of a simulated conversation without a limit."""


@dataclass(frozen=True, slots=True)
class Span:
    """From so many to so many."""

    low: int = 0
    high: int = 0

    def __add__(self, other: "Span") -> "Span":
        return Span(self.low + other.low, self.high + other.high)

    def times(self, count: "int | Span") -> "Span":
        factor = Span(count, count) if isinstance(count, int) else count
        return Span(self.low * factor.low, self.high * factor.high)


def total(spans: Iterable[Span]) -> Span:
    """All of them together."""
    return sum(spans, Span())


def turns_of_scenario(simulator: SimulatorConfig) -> Span:
    """How many turns a simulated conversation may have."""
    limit = _LONGEST if simulator.turn_limit is None else simulator.turn_limit
    return Span(min(1, limit), limit)


def simulator_calls(simulator: SimulatorConfig) -> Span:
    """How often a simulated user is asked in one conversation: for each message but the first, and for the end of one
    that stops by itself."""
    limit = turns_of_scenario(simulator).high
    return Span(1, limit - 1) if limit > 1 else Span()


def criterion_calls(
    criterion: Criterion, samples: int, turns: Span, rubrics: Sequence[dict[str, Any]], *, all_votes: bool
) -> Span:
    """How often judges are asked for one criterion of one case with so many `turns`, up to `samples` times a question;
    `rubrics` are all that stand in the case and its turns."""
    info = known()[criterion.name]
    if info.once:
        turns = Span(min(turns.low, 1), min(turns.high, 1))
    if info.needs_service:
        return turns
    if criterion.name == "hallucinations_v1":
        # Each text is cut into sentences, then they are labelled; an answer may be empty.
        more = 4 if criterion.options.get("evaluate_intermediate_nl_responses") else 1
        return Span(2 * turns.low, 2 * more * turns.high)
    votes = _votes(samples, all_votes)
    if lacks_rubrics(criterion, rubrics):
        return Span()
    # The simulated user's first message is compared as text; ending the conversation is a question of its own.
    return votes.times(turns)


def lacks_rubrics(criterion: Criterion, rubrics: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a criterion judges by rubrics and has none: neither its own nor any of the case's `rubrics`."""
    wanted = RUBRIC_TYPES.get(criterion.name)
    own = criterion.options.get("rubrics")
    return wanted is not None and not own and not any(rubric.get("type") == wanted for rubric in rubrics)


def options_of(criterion: Criterion) -> JudgeOptions:
    """The judge of a criterion; the default one where the options are wrong, which is told elsewhere."""
    try:
        return read_judge_options(criterion.options.get("judge_model_options") or {})
    except ValueError:
        return JudgeOptions(samples=DEFAULT_SAMPLES)


def _votes(samples: int, all_votes: bool) -> Span:
    """What is asked about one turn: the smallest number that can decide, up to all."""
    return Span(samples if all_votes else samples // 2 + 1, samples)

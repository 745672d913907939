"""Counts and sums over cases."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from workbench.events.events import Frozen
from workbench.results.faces import DECIDED, FACES, Status
from workbench.results.overview.criteria import Scores, merged, summed, votes_of
from workbench.store.execution import Execution


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over cases.

    `states` counts the cases by status, without those that never ran. `scores` has the criteria in the order in which
    they appear. `model_calls` are calls of agents, `judge_calls` those of judges, which may be functions, `tokens` all
    that were reported, and `without_tokens` is the number of executions that called a model and have none. `seconds`
    are the durations of all executions, and `executions` is the number of finished ones.

    Frozen verdicts say nothing about live ones: `frozen` has the states and scores of frozen cases, which are not in
    `live` and `scores`. `replays` says how each of their executions was replayed.

    `failed_with_errors` counts the cases with an execution that failed and in which something else broke.
    """

    states: Counter[Status] = field(default_factory=Counter)
    scores: tuple[Scores, ...] = ()
    model_calls: int = 0
    seconds: float = 0.0
    executions: int = 0
    frozen: Counter[Status] = field(default_factory=Counter)
    frozen_scores: tuple[Scores, ...] = ()
    replays: tuple[Frozen, ...] = ()
    failed_with_errors: int = 0
    tokens: int = 0
    without_tokens: int = 0
    judge_calls: int = 0

    @property
    def live(self) -> Counter[Status]:
        """The number of live cases by status."""
        return self.states - self.frozen

    @property
    def judged(self) -> int:
        """The number of cases that passed or failed. Others are outside of the pass rate."""
        return self.states["passed"] + self.states["failed"]

    @property
    def problems(self) -> int:
        """The number of cases that failed or ended in an error."""
        return self.states["failed"] + self.states["error"]

    @property
    def decided(self) -> int:
        """The number of cases with a verdict."""
        return sum(self.states[state] for state in DECIDED)

    @property
    def unfinished(self) -> int:
        """The number of cases that run or wait."""
        return self.states["running"] + self.states["queued"]


def tally(states: Mapping[Status, int], cases: Iterable[Sequence[Execution]]) -> Tally:
    """Return the sums over cases with these counts by status.

    Each case is given by the executions of its newest run. Those that have not finished count nothing.
    """
    cases = list(cases)
    finished = [record for executions in cases for record in executions if record.finished]
    replayed = [executions for executions in cases if any(record.frozen is not None for record in executions)]
    known = set(map(id, replayed))
    live = [executions for executions in cases if id(executions) not in known] if replayed else cases
    # Many cases share one object.
    calls = Counter(map(id, map(attrgetter("usage"), finished)))
    usage = {id(record.usage): record.usage for record in finished}
    return Tally(
        Counter(states),
        _scores(live),
        sum(usage[number].model_calls * times for number, times in calls.items()),
        sum(record.duration_seconds for record in finished),
        len(finished),
        Counter(min((record.state for record in executions), key=_rank) for executions in replayed),
        _scores(replayed),
        tuple(record.frozen for executions in replayed for record in executions if record.frozen is not None),
        sum(any(record.failed_with_errors for record in executions) for executions in cases),
        sum(usage[number].tokens * times for number, times in calls.items()),
        sum(usage[number].lacks_tokens * times for number, times in calls.items()),
        sum(usage[number].judge_calls * times for number, times in calls.items()),
    )


def _scores(cases: Iterable[Sequence[Execution]]) -> tuple[Scores, ...]:
    return tuple(summed(name, votes) for name, votes in votes_of(cases).items())


def _rank(state: Status) -> int:
    return FACES[state].rank


def added(parts: Sequence[Tally]) -> Tally:
    """Return the sums over several sets of cases, of which none share a case."""
    if len(parts) == 1:
        return parts[0]
    states: Counter[Status] = Counter()
    frozen: Counter[Status] = Counter()
    for part in parts:
        states.update(part.states)
        frozen.update(part.frozen)
    return Tally(
        states,
        _merged(part.scores for part in parts),
        sum(part.model_calls for part in parts),
        sum(part.seconds for part in parts),
        sum(part.executions for part in parts),
        frozen,
        _merged(part.frozen_scores for part in parts),
        tuple(replay for part in parts for replay in part.replays),
        sum(part.failed_with_errors for part in parts),
        sum(part.tokens for part in parts),
        sum(part.without_tokens for part in parts),
        sum(part.judge_calls for part in parts),
    )


def _merged(parts: Iterable[Sequence[Scores]]) -> tuple[Scores, ...]:
    found: dict[str, list[Scores]] = {}
    for scores in parts:
        for one in scores:
            found.setdefault(one.name, []).append(one)
    return tuple(map(merged, found.values()))

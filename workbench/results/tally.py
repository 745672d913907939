"""Totals over many cases: counts, sums, scores by criterion, and changed verdicts."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.events.events import CaseName, Frozen, MetricResult
from workbench.files.faults import Fault
from workbench.results.causes import CauseGroup
from workbench.results.faces import FACES, Status
from workbench.results.judged import is_function
from workbench.store.execution import Execution

if TYPE_CHECKING:
    from workbench.store.history.run_list import Trend

STEPS = 20
BINS = STEPS + 1
"""Number of bins for scores from 0 to 1. Each is 0.05 wide. The score 1 has its own, because many thresholds are 1."""
_LEFT_OUT = ("informational", "not_applicable")
LISTED_CHANGES = 8
"""Maximum number of changed cases that are listed."""
Case: TypeAlias = tuple[int, int]
"""The index of an evalset, and the index of a case in it."""


class Vote(NamedTuple):
    """The vote of one case on one criterion, shared by its repeats.

    `scores` has the score of each repeat that passed or failed. `passed` of them passed. `thresholds` are their
    distinct thresholds. `by_function` says whether a function judged any of them.
    """

    scores: tuple[float, ...] = ()
    passed: int = 0
    thresholds: tuple[float | None, ...] = ()
    by_function: bool = False


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a criterion: a count for each bin, their mean, and the numbers of cases.

    Each of the `cases` has one vote, shared by its repeats, so the counts can be fractions. `undecided` counts cases
    without a score. `threshold` is None if cases had different ones. Scores outside 0 to 1 count in the outermost bins.
    """

    name: str
    bins: tuple[float, ...]
    mean: float
    passed: float
    cases: int
    undecided: int
    threshold: float | None
    by_function: bool = False
    """Whether a function judged any of the cases."""

    @property
    def failed(self) -> float:
        """The number of cases that did not pass. Repeated cases count in fractions."""
        return self.cases - self.passed


def scores(records: Iterable[Execution]) -> list[Scores]:
    """Return the scores by criterion, in the order of appearance, without informational and inapplicable results."""
    of_cases: dict[CaseName, list[Execution]] = {}
    for record in records:
        of_cases.setdefault(record.ref.name, []).append(record)
    return list(_scores(of_cases.values()))


def votes_of(cases: Iterable[Sequence[Execution]]) -> dict[str, list[tuple[Vote, int]]]:
    """Return the distinct votes of cases by criterion, each with its number of cases.

    Each case is given by its executions. Equal verdicts of different cases are often one object, so 10,000 cases take
    only a few milliseconds.
    """
    single: list[Execution] = []
    repeated: list[Sequence[Execution]] = []
    for executions in cases:
        if len(executions) == 1:
            single.append(executions[0])
        else:
            repeated.append(executions)
    results = list(chain.from_iterable([record.scores.values() for record in single if record.has_verdict]))
    by_id = dict(zip(map(id, results), results, strict=True))
    found: dict[str, list[tuple[Vote, int]]] = {}
    for number, times in Counter(map(id, results)).items():
        result = by_id[number]
        if result.status not in _LEFT_OUT:
            found.setdefault(result.name, []).append((_vote((result,)), times))
    for executions in repeated:
        by_criterion: dict[str, list[MetricResult]] = {}
        for result in (one for record in executions if record.has_verdict for one in record.scores.values()):
            if result.status not in _LEFT_OUT:
                by_criterion.setdefault(result.name, []).append(result)
        for name, of_case in by_criterion.items():
            found.setdefault(name, []).append((_vote(of_case), 1))
    return found


def summed(name: str, votes: Iterable[tuple[Vote, int]]) -> Scores:
    """Return the scores of a criterion from its votes, each with its number of cases."""
    counts = [0.0] * BINS
    thresholds: set[float | None] = set()
    means: list[float] = []
    passed, cases, undecided, by_function = 0.0, 0, 0, False
    for vote, times in votes:
        by_function = by_function or vote.by_function
        share = len(vote.scores)
        if not share:
            undecided += times
            continue
        cases += times
        passed += vote.passed * times / share
        thresholds.update(vote.thresholds)
        for score in vote.scores:
            means.append(min(max(score, -1e12), 1e12) * times / share)
            # 0.15 * 20 is a little less than 3, but 0.15 belongs to the bin that begins there.
            counts[int(min(max(score, 0.0), 1.0) * STEPS + 1e-9)] += times / share
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return Scores(
        name, tuple(counts), math.fsum(means) / max(cases, 1), passed, cases, undecided, threshold, by_function
    )


def merged(parts: Sequence[Scores]) -> Scores:
    """Return the scores of a criterion, merged from several sets of cases."""
    if len(parts) == 1:
        return parts[0]
    cases = sum(part.cases for part in parts)
    thresholds = {part.threshold for part in parts if part.cases}
    return Scores(
        parts[0].name,
        tuple(map(sum, zip(*(part.bins for part in parts), strict=True))),
        math.fsum(part.mean * part.cases for part in parts) / max(cases, 1),
        math.fsum(part.passed for part in parts),
        cases,
        sum(part.undecided for part in parts),
        thresholds.pop() if len(thresholds) == 1 else None,
        any(part.by_function for part in parts),
    )


def _vote(results: Collection[MetricResult]) -> Vote:
    counted = [result for result in results if result.status in ("passed", "failed")]
    scored = [(one.score, one) for one in counted if one.score is not None and not math.isnan(one.score)]
    passed = sum(result.status == "passed" for _, result in scored)
    thresholds = tuple(dict.fromkeys(result.threshold for _, result in scored))
    return Vote(tuple(score for score, _ in scored), passed, thresholds, any(map(is_function, results)))


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over cases.

    `states` counts the cases by status, without those that never ran. `scores` has the criteria in the order in which
    they appear. `model_calls` are calls of agents, and `judge_calls` are calls of judges, including functions. `tokens`
    are all reported tokens, and `without_tokens` is the number of executions that called a model but reported none.
    `seconds` is the total duration of all finished executions, and `executions` is their number.

    Frozen cases are separate, because they say nothing about live ones. `frozen` has their states and `frozen_scores`
    their scores, which are not in `live` and `scores`. `replays` says how each of their executions was replayed.

    `failed_with_errors` counts the cases with an execution that failed and also had an error.
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
        """The number of cases that passed or failed. Only these count for the pass rate."""
        return self.states["passed"] + self.states["failed"]

    @property
    def problems(self) -> int:
        """The number of cases that failed or ended in an error."""
        return self.states["failed"] + self.states["error"]

    @property
    def unfinished(self) -> int:
        """The number of running and queued cases."""
        return self.states["running"] + self.states["queued"]


def tally(states: Mapping[Status, int], cases: Iterable[Sequence[Execution]]) -> Tally:
    """Return the sums over cases. `states` are their counts by status.

    Each case is given by the executions of its newest run. Unfinished executions are ignored.
    """
    cases = list(cases)
    finished = [record for executions in cases for record in executions if record.finished]
    replayed = [executions for executions in cases if any(record.frozen is not None for record in executions)]
    known = set(map(id, replayed))
    live = [executions for executions in cases if id(executions) not in known] if replayed else cases
    # Many cases share one usage object.
    calls = Counter(map(id, map(attrgetter("usage"), finished)))
    usage = {id(record.usage): record.usage for record in finished}
    return Tally(
        Counter(states),
        _scores(live),
        sum(usage[number].model_calls * times for number, times in calls.items()),
        sum(record.duration_seconds for record in finished),
        len(finished),
        Counter(
            min((record.state for record in executions), key=lambda state: FACES[state].rank) for executions in replayed
        ),
        _scores(replayed),
        tuple(record.frozen for executions in replayed for record in executions if record.frozen is not None),
        sum(any(record.failed_with_errors for record in executions) for executions in cases),
        sum(usage[number].tokens * times for number, times in calls.items()),
        sum(usage[number].lacks_tokens * times for number, times in calls.items()),
        sum(usage[number].judge_calls * times for number, times in calls.items()),
    )


def _scores(cases: Iterable[Sequence[Execution]]) -> tuple[Scores, ...]:
    return tuple(summed(name, votes) for name, votes in votes_of(cases).items())


def added(parts: Sequence[Tally]) -> Tally:
    """Return the sums over several disjoint sets of cases."""
    if len(parts) == 1:
        return parts[0]
    states: Counter[Status] = Counter()
    frozen: Counter[Status] = Counter()
    for part in parts:
        states.update(part.states)
        frozen.update(part.frozen)
    numbers = ["model_calls", "seconds", "executions", "failed_with_errors", "tokens", "without_tokens", "judge_calls"]
    return Tally(
        states,
        _merged(part.scores for part in parts),
        frozen=frozen,
        frozen_scores=_merged(part.frozen_scores for part in parts),
        replays=tuple(replay for part in parts for replay in part.replays),
        **{name: sum(getattr(part, name) for part in parts) for name in numbers},
    )


def _merged(parts: Iterable[Sequence[Scores]]) -> tuple[Scores, ...]:
    found: dict[str, list[Scores]] = {}
    for scores in parts:
        for one in scores:
            found.setdefault(one.name, []).append(one)
    return tuple(map(merged, found.values()))


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A case with another verdict than in an earlier run.

    `name`, `before` and `after` are safe texts. `worse` says whether it is a regression.
    """

    case: Case
    name: str
    before: str
    after: str
    worse: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """The verdicts that changed since an earlier run. `since` is the time at which it began, such as `13:40`.

    `worse` and `better` are numbers of cases. `cases` has the first of them, the worse ones first, at least
    `LISTED_CHANGES` if there are that many.
    """

    since: str
    cases: Sequence[ChangedVerdict] = ()
    worse: int = 0
    better: int = 0

    @property
    def total(self) -> int:
        """The number of changed verdicts."""
        return self.worse + self.better


@dataclass(frozen=True, slots=True)
class Spent:
    """The time and the money (or tokens) that the cases took, as safe texts. An empty text is not shown."""

    time: str = ""
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """The data of an overview of cases.

    `cases` is the number of cases. `groups` has the failing ones by cause. `changes` and `trend` are None while they
    are read, or if there is nothing to compare with. `foot` has the problems of an agent.
    """

    tally: Tally = field(default_factory=Tally)
    cases: int = 0
    groups: Sequence[CauseGroup[Case]] = ()
    spent: Spent = Spent()
    changes: Changes | None = None
    trend: "Trend | None" = None
    foot: Sequence[tuple[str, str]] = ()
    """Labels and texts, both safe. A label without a text is a heading."""
    file: EvalsetEntry | None = None
    """The evalset that the overview is about, if it is one."""
    found: tuple[Fault, ...] = ()
    """The problems that `check` found in the evalset."""

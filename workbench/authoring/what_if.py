"""What the last verdicts would be under other criteria, from scores that are there: nobody is asked and no agent runs.

A threshold is compared with the stored score. Whether tool calls match in another way is worked out again from the
transcript, for that needs no judge. For the others a changed option means that the score would have to be made again,
as any change does for a custom metric, which decides by itself: said, not guessed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.engine.scoring.verdict import case_status
from workbench.events import CaseRef, CaseStatus, MetricResult, MetricStatus
from workbench.metrics.base import NotScorableError, ScoreRequest
from workbench.metrics.options import MATCH_TYPES
from workbench.metrics.trajectory import NAMES_ONLY, Rule, rule_of, score
from workbench.model.criteria import CriteriaConfig, Criterion, stored_config
from workbench.store import CaseRecord

TRAJECTORY = "tool_trajectory_avg_score"
Outcome: TypeAlias = CaseStatus | Literal["unknown"]
"""`unknown`: it hangs on a criterion that was not scored."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A case whose verdict would be another. `name` is raw; `score` that of the criterion it is listed under, None in
    the list over all criteria."""

    ref: CaseRef
    name: str
    before: str
    after: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class CriterionOutlook:
    """One criterion over the last verdicts: of `scored` cases `before` passed and `after` would. `redo` counts cases
    whose score was made with other options, so that it would have to be made again."""

    scored: int = 0
    before: int = 0
    after: int = 0
    flips: tuple[Flip, ...] = ()
    redo: int = 0
    ways: Mapping[str, int] = field(default_factory=dict)
    """Of the cases scored, how many would pass if tool calls were compared in each way; {} for other criteria."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """All of the criteria over the last verdicts. `cases` had one; `unknown` of them hang on what was not scored."""

    cases: int
    flips: tuple[Flip, ...]
    unknown: int
    criteria: Mapping[str, CriterionOutlook]


class WhatIf:
    """Holds on to the verdicts of a run and to what was worked out again, so that a moving threshold costs a look."""

    def __init__(self, records: Iterable[CaseRecord]) -> None:
        self._records = [record for record in records if record.has_verdict]
        self._scores: dict[tuple[CaseRef, Rule], float | None] = {}
        self._options: dict[CaseRef, dict[str, dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def under(self, config: CriteriaConfig) -> Outlook:
        """How it would be under these criteria. Trajectories are compared again where that is needed: a few
        milliseconds a case, so for a thread."""
        criteria = {criterion.name: self._criterion(criterion) for criterion in config.criteria}
        flips, unknown = [], 0
        for record in self._records:
            after = self._outcome(record, config.criteria)
            unknown += after == "unknown"
            if after not in ("unknown", record.state):
                flips.append(Flip(record.ref, _name(record), record.state, after))
        return Outlook(len(self._records), tuple(flips), unknown, criteria)

    def _criterion(self, criterion: Criterion) -> CriterionOutlook:
        scored = before = after = redo = 0
        flips = []
        for record in self._records:
            was = record.metrics.get(criterion.name)
            now = self._result(record, criterion)
            if was is None or now is None or now.score is None or was.status not in ("passed", "failed"):
                continue
            scored += 1
            before += was.status == "passed"
            after += now.status == "passed"
            redo += self._made_otherwise(record, criterion)
            if was.status != now.status:
                flips.append(Flip(record.ref, _name(record), was.status, now.status, now.score))
        return CriterionOutlook(scored, before, after, tuple(flips), redo, self._ways(criterion))

    def _ways(self, criterion: Criterion) -> dict[str, int]:
        rule = _rule(criterion)
        if rule is None:
            return {}
        ways = {name: Rule(name, rule.ignore_args) for name in MATCH_TYPES}
        if not rule.ignore_args:
            ways[f"{rule.match_type} by {NAMES_ONLY}"] = Rule(rule.match_type, True)
        counted = dict.fromkeys(ways, 0)
        for name, way in ways.items():
            for record in self._records:
                value = self._trajectory(record, way)
                counted[name] += value is not None and value >= criterion.threshold
        return counted

    def _outcome(self, record: CaseRecord, criteria: Sequence[Criterion]) -> Outcome:
        results = [self._result(record, criterion) for criterion in criteria]
        found = [result for result in results if result is not None]
        if record.state == "error" and not any(result.status == "error" for result in record.metrics.values()):
            return "error"
        status = case_status(found)
        # What fails already fails whatever the missing verdicts are; all else hangs on them.
        return status if status in ("failed", "error") or len(found) == len(results) else "unknown"

    def _result(self, record: CaseRecord, criterion: Criterion) -> MetricResult | None:
        """The verdict that the case would have; None where that would have to be asked."""
        was = record.metrics.get(criterion.name)
        if was is None or was.score is None or was.status not in ("passed", "failed"):
            return was
        if criterion.name in record.custom_metrics:
            # It is given its threshold and decides by itself.
            return was if was.threshold == criterion.threshold else None
        rule = _rule(criterion)
        value = was.score if rule is None else self._trajectory(record, rule)
        if value is None:
            return was
        status: MetricStatus = "passed" if value >= criterion.threshold else "failed"
        return MetricResult(criterion.name, status, value, criterion.threshold)

    def _trajectory(self, record: CaseRecord, rule: Rule) -> float | None:
        key = (record.ref, rule)
        if key not in self._scores:
            self._scores[key] = _trajectory_score(record, rule)
        return self._scores[key]

    def _made_otherwise(self, record: CaseRecord, criterion: Criterion) -> bool:
        if criterion.name == TRAJECTORY:
            return False
        if record.ref not in self._options:
            then = stored_config(record.criteria, {}, None).criteria
            self._options[record.ref] = {one.name: one.options for one in then}
        options = self._options[record.ref].get(criterion.name)
        return options is not None and options != criterion.options


def _trajectory_score(record: CaseRecord, rule: Rule) -> float | None:
    """From what the metric kept, or from the transcript; None where there is nothing to compare."""
    result = record.metrics.get(TRAJECTORY)
    if result is None or result.score is None or record.expected is None:
        return None
    details = result.details
    kept = details.get("other_match_types")
    then = (details.get("match_type"), details.get("ignore_args"))
    if isinstance(kept, dict):
        if then[1] == rule.ignore_args and rule.match_type in kept:
            return float(kept[rule.match_type])
        if then == (rule.match_type, False) and rule.ignore_args and NAMES_ONLY in kept:
            return float(kept[NAMES_ONLY])
    options = {"match_type": rule.match_type, "ignore_args": rule.ignore_args}
    criterion = Criterion(TRAJECTORY, result.threshold or 0.0, None, options)
    actual = tuple(turn.actual or {} for turn in record.turns)
    try:
        return score(ScoreRequest(criterion, record.expected, actual)).result.score
    except NotScorableError:
        return None


def _rule(criterion: Criterion) -> Rule | None:
    if criterion.name != TRAJECTORY:
        return None
    try:
        return rule_of(criterion)
    except NotScorableError:
        return None


def _name(record: CaseRecord) -> str:
    return record.ref.eval_id + (f"#{record.ref.repeat}" if record.ref.repeat > 1 else "")

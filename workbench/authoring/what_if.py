"""The last verdicts under other criteria, computed from stored scores without agents or judges.

A new threshold is compared with the stored score. If an option changes that only affects the decision, the score is
computed again from stored data. Other changed options need a new score, and so does any change of a custom metric,
which decides by itself. Such cases are reported as unknown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.engine.scoring.verdict import case_status
from workbench.events import CaseRef, CaseStatus, MetricResult, MetricStatus
from workbench.metrics.base import NotScorableError, ScoreRequest
from workbench.metrics.description import CriterionDescription, Options, choices_of, field_extra, read_options
from workbench.metrics.registry import CRITERIA, descriptions, score
from workbench.model.criteria import CriteriaConfig, Criterion, stored_config
from workbench.plugins import resolve
from workbench.store import CaseRecord

Outcome: TypeAlias = CaseStatus | Literal["unknown"]
"""Status of a case; `unknown` if it depends on a criterion without a stored score."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A case with a changed verdict.

    `name` is raw text. `score` is the score of the criterion it is listed under, or None in the list over all criteria.
    """

    ref: CaseRef
    name: str
    before: str
    after: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class CriterionOutlook:
    """One criterion over the last verdicts.

    Out of `scored` cases, `before` passed and `after` would pass. `redo` counts cases that need a new score, because
    other options were used for theirs.
    """

    scored: int = 0
    before: int = 0
    after: int = 0
    flips: tuple[Flip, ...] = ()
    redo: int = 0
    ways: Mapping[str, int] = field(default_factory=dict)
    """Number of scored cases that would pass, by choice of the deciding options; {} without such options."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """All criteria over the last verdicts.

    `cases` had a verdict. Of these, `unknown` depend on missing scores.
    """

    cases: int
    flips: tuple[Flip, ...]
    unknown: int
    criteria: Mapping[str, CriterionOutlook]


class WhatIf:
    """Computes outcomes under other criteria, and caches scores so that moving a threshold is fast."""

    def __init__(self, records: Iterable[CaseRecord]) -> None:
        self._records = [record for record in records if record.has_verdict]
        self._scores: dict[tuple[CaseRef, str, tuple[object, ...]], float | None] = {}
        self._options: dict[CaseRef, dict[str, dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def under(self, config: CriteriaConfig) -> Outlook:
        """Return the outlook under these criteria.

        Scoring transcripts again takes a few milliseconds per case, so call it in a thread.
        """
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
            redo += self._options_changed(record, criterion)
            if was.status != now.status:
                flips.append(Flip(record.ref, _name(record), was.status, now.status, now.score))
        return CriterionOutlook(scored, before, after, tuple(flips), redo, self._ways(criterion))

    def _ways(self, criterion: Criterion) -> dict[str, int]:
        deciding = _deciding(criterion)
        if deciding is None:
            return {}
        counted = {}
        for name, options in _ways(*deciding):
            scores = (self._score(record, criterion.name, options) for record in self._records)
            counted[name] = sum(value is not None and value >= criterion.threshold for value in scores)
        return counted

    def _outcome(self, record: CaseRecord, criteria: Sequence[Criterion]) -> Outcome:
        results = [self._result(record, criterion) for criterion in criteria]
        found = [result for result in results if result is not None]
        if record.state == "error" and not any(result.status == "error" for result in record.metrics.values()):
            return "error"
        status = case_status(found)
        # A case that fails already does not depend on missing verdicts. All others do.
        return status if status in ("failed", "error") or len(found) == len(results) else "unknown"

    def _result(self, record: CaseRecord, criterion: Criterion) -> MetricResult | None:
        """Return the verdict that the case would have, or None if that needs a new score."""
        was = record.metrics.get(criterion.name)
        if was is None or was.score is None or was.status not in ("passed", "failed"):
            return was
        if criterion.name in record.custom_metrics:
            # A custom metric receives its threshold and decides by itself.
            return was if was.threshold == criterion.threshold else None
        deciding = _deciding(criterion)
        value = was.score if deciding is None else self._score(record, criterion.name, deciding[1])
        if value is None:
            return was
        status: MetricStatus = "passed" if value >= criterion.threshold else "failed"
        return MetricResult(criterion.name, status, value, criterion.threshold)

    def _score(self, record: CaseRecord, name: str, options: Options) -> float | None:
        values = tuple(getattr(options, option) for option in descriptions()[name].deciding)
        key = (record.ref, name, values)
        if key not in self._scores:
            self._scores[key] = _score_again(record, descriptions()[name], options)
        return self._scores[key]

    def _options_changed(self, record: CaseRecord, criterion: Criterion) -> bool:
        info = descriptions().get(criterion.name)
        if record.ref not in self._options:
            then = stored_config(record.criteria, {}, None).criteria
            self._options[record.ref] = {one.name: one.options for one in then}
        options = self._options[record.ref].get(criterion.name)
        if options is None:
            return False
        changed = (
            name for name in {**options, **criterion.options} if options.get(name) != criterion.options.get(name)
        )
        return any(info is None or info.effect_of(name) == "score" for name in changed)


def _score_again(record: CaseRecord, info: CriterionDescription, options: Options) -> float | None:
    """Return the score from the criterion's stored details or the transcript, or None if neither has one."""
    result = record.metrics.get(info.name)
    # Code of other packages only runs in the scorer process.
    if result is None or result.score is None or not CRITERIA.extension(info.name).is_own:
        return None
    kept: float | None = resolve(info.rescore)(result.details, options) if info.rescore else None
    if kept is not None or info.asks is not None:
        return kept
    criterion = Criterion(info.name, result.threshold or 0.0, None, options.model_dump())
    actual = tuple(turn.actual or {} for turn in record.turns)
    try:
        return score(ScoreRequest(criterion, record.expected, actual)).result.score
    except NotScorableError:
        return None


def _deciding(criterion: Criterion) -> tuple[CriterionDescription, Options] | None:
    """Return the criterion and its options, if it has valid deciding options."""
    info = descriptions().get(criterion.name)
    if info is None or not info.deciding:
        return None
    try:
        return info, read_options(info.options, criterion)
    except NotScorableError:
        return None


def _ways(info: CriterionDescription, options: Options) -> Iterator[tuple[str, Options]]:
    """Yield each choice of the deciding options, with the options: `IN_ORDER`; `EXACT by names only`."""
    chosen = ""
    for name, option in info.deciding.items():
        way, now = field_extra(option, "way"), getattr(options, name)
        if not way:
            chosen = str(now)
            yield from ((str(value), options.model_copy(update={name: value})) for value in choices_of(option))
        elif not now:
            yield f"{chosen} {way}".strip(), options.model_copy(update={name: True})


def _name(record: CaseRecord) -> str:
    return record.ref.eval_id + (f"#{record.ref.repeat}" if record.ref.repeat > 1 else "")

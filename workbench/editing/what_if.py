"""Verdicts that the last executions would get with other criteria, computed without agents or judges.

A new threshold is compared with the stored score. A criterion without a judge, even a newly added one, is scored again
with its new options, from stored details or the transcript. Changed options of other criteria need a new score, and so
does any change of ADK's custom metrics, which set their status themselves. Such cases are reported as unknown.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from workbench.criteria.base import NotScorableError, ScoreRequest, status_of
from workbench.criteria.description import CriterionDescription, Options, choices_of, field_extra, read_options
from workbench.criteria.registry import CRITERIA, descriptions, score
from workbench.events.events import CaseRef, CaseStatus, MetricResult
from workbench.files.criteria import CriteriaConfig, Criterion, stored_config
from workbench.files.metrics_config import own_entry
from workbench.files.plugins import resolve
from workbench.files.prices import Prices
from workbench.run.scoring.verdict import case_status
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution

Outcome: TypeAlias = CaseStatus | Literal["unknown"]
"""Status of a case; `unknown` if it depends on a criterion without a stored score."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A case with a changed verdict.

    `name` is raw text. `before` is "" if there was no verdict. `score` is the score of the criterion that the case is
    listed under, or None in the list over all criteria.
    """

    ref: CaseRef
    name: str
    before: str
    after: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class CriterionOutlook:
    """Results that the last executions would get from one criterion.

    Out of `scored` executions, `before` passed and `after` would pass. `new` of them had no verdict of the criterion.
    `redo` counts the `scored` ones that need a new score, because theirs was made with other options.
    """

    scored: int = 0
    new: int = 0
    before: int = 0
    after: int = 0
    flips: tuple[Flip, ...] = ()
    redo: int = 0
    ways: Mapping[str, int] = field(default_factory=dict)
    """Number of executions that would pass, by choice of the deciding options; {} without such options."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Verdicts that the last executions would get with other criteria.

    `cases` executions had a verdict. The new verdicts of `unknown` of them depend on missing scores. `flips` are the
    changed verdicts.
    """

    cases: int
    flips: tuple[Flip, ...]
    unknown: int
    criteria: Mapping[str, CriterionOutlook]


class WhatIf:
    """Calculator of the verdicts that executions would get with other criteria. Scores are cached."""

    def __init__(self, records: Iterable[Execution], prices: Prices | None = None) -> None:
        self._records = [record for record in records if record.has_verdict]
        self._prices = prices or Prices()
        self._again: dict[tuple[CaseRef, str, str], MetricResult | None] = {}
        self._options: dict[CaseRef, dict[str, dict[str, Any]]] = {}
        self._custom: dict[CaseRef, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def with_criteria(self, config: CriteriaConfig) -> Outlook:
        """Return the verdicts that the executions would get with the criteria of `config`.

        Scoring transcripts again takes a few milliseconds per execution, so call it in a thread.
        """
        for execution in self._records:
            self._prepare(execution, config.criteria)
        criteria = {criterion.name: self._criterion(criterion) for criterion in config.criteria}
        flips, unknown = [], 0
        for record in self._records:
            after = self._outcome(record, config.criteria)
            unknown += after == "unknown"
            if after not in ("unknown", record.state):
                flips.append(Flip(record.ref, _name(record), record.state, after))
        return Outlook(len(self._records), tuple(flips), unknown, criteria)

    def _prepare(self, execution: Execution, criteria: Sequence[Criterion]) -> None:
        """Read the details of an execution that these criteria need, each at most once."""
        wanted = [
            (name, options)
            for name, options in itertools.chain.from_iterable(map(_all_options, criteria))
            if (execution.ref, name, options.model_dump_json()) not in self._again
        ]
        if wanted or execution.ref not in self._options:
            record = read_details(execution)
            then = stored_config(record.criteria, {}, None).criteria
            self._options[record.ref] = {one.name: one.options for one in then}
            self._custom[record.ref] = record.custom_metrics
            for name, options in wanted:
                again = _score_again(record, descriptions()[name], options, self._prices)
                self._again[record.ref, name, options.model_dump_json()] = again

    def _criterion(self, criterion: Criterion) -> CriterionOutlook:
        scored = new = before = after = redo = 0
        flips = []
        for record in self._records:
            was, now = record.scores.get(criterion.name), self._result(record, criterion)
            if now is None or now.status not in ("passed", "failed"):
                continue
            then = was.status if was is not None and was.status in ("passed", "failed") else ""
            scored += 1
            new += not then
            before += then == "passed"
            after += now.status == "passed"
            redo += self._options_changed(record, criterion) and self._scored_again(record, criterion) is None
            if then != now.status and (then or now.status == "failed"):
                flips.append(Flip(record.ref, _name(record), then, now.status, now.score))
        return CriterionOutlook(scored, new, before, after, tuple(flips), redo, self._ways(criterion))

    def _ways(self, criterion: Criterion) -> dict[str, int]:
        found = _free(criterion)
        if found is None or not found[0].deciding:
            return {}
        counted = {}
        for name, options in _ways(*found):
            written = options.model_dump_json()
            again = (self._again[record.ref, criterion.name, written] for record in self._records)
            scores = [result.score for result in again if result is not None]
            counted[name] = sum(value is not None and value >= criterion.threshold for value in scores)
        return counted

    def _outcome(self, record: Execution, criteria: Sequence[Criterion]) -> Outcome:
        results = [self._result(record, criterion) for criterion in criteria]
        found = [result for result in results if result is not None]
        if record.state == "error" and not any(result.status == "error" for result in record.scores.values()):
            return "error"
        status = case_status(found)
        # A case that fails already does not depend on missing verdicts. All others do.
        return status if status == "failed" or len(found) == len(results) else "unknown"

    def _result(self, record: Execution, criterion: Criterion) -> MetricResult | None:
        """Return the result that an execution would get from a criterion, or None if that needs a new score."""
        was = record.scores.get(criterion.name)
        custom = self._custom[record.ref]
        if own_entry(custom.get(criterion.name)):
            return was if was is None or was.score is None else _decided(was, criterion)
        if criterion.name in custom:
            # A custom metric receives its threshold and decides by itself.
            return was if was is None or was.score is None or was.threshold == criterion.threshold else None
        now = self._scored_again(record, criterion) or was
        if now is None or now.score is None or now.status not in ("passed", "failed"):
            return now
        return replace(now, status=status_of(now.score, criterion.threshold), threshold=criterion.threshold)

    def _scored_again(self, record: Execution, criterion: Criterion) -> MetricResult | None:
        """Return the result under the options of a criterion without a judge, or None if it cannot be known."""
        found = _free(criterion)
        return None if found is None else self._again[record.ref, criterion.name, found[1].model_dump_json()]

    def _options_changed(self, record: Execution, criterion: Criterion) -> bool:
        info = descriptions().get(criterion.name)
        options = self._options[record.ref].get(criterion.name)
        if options is None:
            return False
        both = {**options, **criterion.options}
        changed = [name for name in both if options.get(name) != criterion.options.get(name)]
        return any(info is None or info.effect_of(name) == "score" for name in changed)


def _decided(was: MetricResult, criterion: Criterion) -> MetricResult:
    """Return the result of an agents-cli metric with another threshold, or without one. Only its score decides."""
    if criterion.is_informational:
        return replace(was, status="informational", threshold=None)
    return replace(was, status=status_of(was.score, criterion.threshold), threshold=criterion.threshold)


def _score_again(
    record: CaseRecord, info: CriterionDescription, options: Options, prices: Prices
) -> MetricResult | None:
    """Return the result from the criterion's stored details or the transcript, or None if neither has one."""
    result = record.metrics.get(info.name)
    if result is not None and info.rescore:
        value: float | None = resolve(info.rescore)(result.details, options)
        if value is not None:
            return replace(result, score=value)
    actual = tuple(turn.actual for turn in record.turns if turn.actual is not None)
    if record.error is not None or not actual or len(actual) < len(record.turns):
        return None
    criterion = Criterion(info.name, 1.0, None, options.model_dump(mode="json"))
    request = ScoreRequest(
        criterion,
        record.expected,
        actual,
        record.scenario,
        final_session_state=record.final_session_state,
        end_state=record.turns[-1].state,
        prices=prices,
        inner_calls=tuple(turn.inner_calls for turn in record.turns),
        usage=record.usage,
    )
    try:
        return score(request).result
    except NotScorableError:
        return None


def is_free(name: str) -> bool:
    """Return whether a criterion can be scored with other options without an agent, a judge or another package."""
    info = descriptions().get(name)
    # Code of other packages only runs in the scorer process.
    return info is not None and info.asks is None and bool(info.option_names) and CRITERIA.extension(name).is_own


def _free(criterion: Criterion) -> tuple[CriterionDescription, Options] | None:
    """Return the description and options of a criterion, or None if it is not free or its options are invalid."""
    if not is_free(criterion.name):
        return None
    info = descriptions()[criterion.name]
    try:
        return info, read_options(info.options, criterion)
    except NotScorableError:
        return None


def _all_options(criterion: Criterion) -> Iterator[tuple[str, Options]]:
    """Yield the options of a criterion that is free, and each choice of its deciding options."""
    if (found := _free(criterion)) is not None:
        yield criterion.name, found[1]
        if found[0].deciding:
            yield from ((criterion.name, options) for _, options in _ways(*found))


def _ways(info: CriterionDescription, options: Options) -> Iterator[tuple[str, Options]]:
    """Yield each choice of the deciding options as text (`EXACT by names only`), and the options with it."""
    chosen = ""
    for name, option in info.deciding.items():
        way, now = field_extra(option, "way"), getattr(options, name)
        if not way:
            chosen = str(now)
            yield from ((str(value), options.model_copy(update={name: value})) for value in choices_of(option))
        elif not now:
            yield f"{chosen} {way}".strip(), options.model_copy(update={name: True})


def _name(record: Execution) -> str:
    return record.ref.eval_id + (f"#{record.ref.repeat}" if record.ref.repeat > 1 else "")

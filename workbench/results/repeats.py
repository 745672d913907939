"""Summary of the repeats of a case: how often it passes, and whether the agent or the judge varies.

A repeat counts if it passed, failed, or ended in an error of the agent, because an agent that raises may pass next
time. Other repeats without a verdict say nothing about the pass rate and are counted separately. Their cause can be a
judge, a simulated user, a limit or a cancellation.

A case is *flaky* if some of the repeats that count passed and others did not. For each criterion that passed in some
and failed in others:

- the **judge** varies if it judged the same evidence (`_evidence`) both ways, or if a verdict depended on one vote
  (`Firmness.near`);
- the **agent** varies if the firm verdicts include passes and failures. There, the judge agreed with itself, so the
  evidence must have differed;
- the cause is unknown otherwise. The usual reason is that each question got only one vote.

Rules and plain computations always give the same result for the same input, so all their verdicts are firm.
docs/repeats.md has the reasons and the limits.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.events.events import CaseRef
from workbench.files.invocation import content_text, intermediate_texts, tool_calls, tool_responses
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.rates import PassRate, Sure, broke_off, pass_hat_k, rate_of, sure
from workbench.store.reasons import judged_by
from workbench.text.json_values import mapping


class Firmness(NamedTuple):
    """Firmness of a verdict.

    `firm`: rules or no judge gave the verdict, or each question got at least two votes and no single vote decided it.
    `split`: the votes on a question disagree. `near`: one vote decided such a question.
    """

    firm: bool
    split: bool
    near: bool


def firmness(record: CaseRecord, criterion: str) -> Firmness:
    """Return the firmness of the verdict of `criterion` in this repeat."""
    of_case = [record.metrics[criterion]] if criterion in record.metrics else []
    results = [*of_case, *record.in_turns(criterion)]
    judges = [judged_by({"judge": result.details.get("judge")}) for result in results]
    judged = any(judges) or any(result.details.get("questions") or "attempts" in result.details for result in results)
    counts = [votes for result in results for votes in _votes(result.details)]
    near = any(map(one_vote_decides, counts))
    least = min((yes + no for yes, no in counts), default=0)
    firm = "rules" in judges or not judged or (least >= 2 and not near)  # Rules always give the same result.
    return Firmness(firm, any(yes and no for yes, no in counts), near)


def one_vote_decides(votes: tuple[int, int]) -> bool:
    """Return whether the votes (for, against) disagree and one vote decided. A tie counts as against, as in ADK."""
    yes, no = votes
    if not yes or not no:
        return False
    return yes - 1 <= no + 1 if yes > no else yes + 1 > no - 1


def _votes(details: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield the votes for and against on each question of a result. Unreadable replies do not count."""
    rubrics = details.get("rubrics")
    items = [details, mapping(details.get("stop")), *(rubrics if isinstance(rubrics, list) else [])]
    for item in items:
        votes = mapping(item).get("votes")
        if isinstance(votes, dict):
            yes, no = _sum(votes, ("valid", "yes")), _sum(votes, ("invalid", "no"))
            if yes or no:
                yield yes, no


def _sum(votes: Mapping[str, Any], names: tuple[str, ...]) -> int:
    found = (votes.get(name) for name in names)
    return sum(count for count in found if isinstance(count, int) and not isinstance(count, bool) and count > 0)


Cause: TypeAlias = Literal["agent", "judge", "both", "unknown"]
Kind: TypeAlias = Cause | Literal["stable"]
"""The cause of a flaky case, or `stable`."""
Call: TypeAlias = tuple[str, str]
"""Name of a tool and its arguments as JSON. Both are foreign text."""


@dataclass(frozen=True, slots=True)
class CriterionRepeats:
    """One criterion over the repeats.

    `passed` and `failed` count the verdicts of the criterion. `cause` says what varies, or is None if nothing does.
    `split` counts repeats in which the judge's votes disagreed. `rejudged` counts repeats whose evidence got another
    score in another repeat. Both counts show a judge that disagrees with itself, even if all verdicts are passes.
    """

    name: str
    passed: int
    failed: int
    cause: Cause | None
    split: int = 0
    rejudged: int = 0

    @property
    def spread(self) -> bool:
        """Whether the judge disagrees with itself."""
        return self.split > 0 or self.rejudged > 0


@dataclass(frozen=True, slots=True)
class Path:
    """The tool calls of some complete repeats, turn by turn. `passed` of these `times` repeats passed."""

    calls: tuple[tuple[Call, ...], ...]
    times: int
    passed: int


@dataclass(frozen=True, slots=True)
class CaseRepeats:
    """All repeats of one case in one run.

    `records` are in the order of their numbers. `rate` covers the repeats that count, of which `broke` ended in an
    error of the agent. `until` is the pass rate to prove, or None.
    """

    records: tuple[Execution, ...] = field(repr=False)
    rate: PassRate
    broke: int
    kind: Kind
    criteria: tuple[CriterionRepeats, ...]
    paths: tuple[Path, ...]
    answers: int
    """Number of distinct answers among the complete repeats."""
    until: float | None = None

    @property
    def ref(self) -> CaseRef:
        """The reference of the first repeat."""
        return self.records[0].ref

    @property
    def flaky(self) -> bool:
        """Whether some repeats passed and others did not."""
        return self.rate.flaky

    @property
    def unfinished(self) -> int:
        """Number of repeats that have not finished."""
        return sum(not record.finished for record in self.records)

    @property
    def without_verdict(self) -> int:
        """Number of finished repeats that do not count, except cancelled ones."""
        return len(self.records) - self.unfinished - self.cancelled - self.rate.total

    @property
    def cancelled(self) -> int:
        """Number of cancelled repeats."""
        return sum(record.state == "cancelled" for record in self.records)

    @property
    def sure(self) -> Sure:
        """The proven side of the rate: "above" (at least `until`), "below", or None if unproven or without `until`."""
        return None if self.until is None else sure(self.rate, self.until)

    def pass_hat(self, k: int) -> float | None:
        """Return pass^k of the repeats that count, or None if there are fewer than k."""
        return pass_hat_k(self.rate.passed, self.rate.total, k)


def summarize(executions: Iterable[Execution], until: float | None = None) -> CaseRepeats:
    """Return the summary of the repeats of a case (at least one). This reads their details."""
    listed = tuple(sorted(executions, key=lambda execution: execution.ref.repeat))
    ordered = list(map(read_details, listed))
    rate, broke = rate_of(ordered), sum(broke_off(record.state, record.error) for record in ordered)
    names = dict.fromkeys(
        name for record in ordered for name, result in record.metrics.items() if result.status != "informational"
    )
    criteria = tuple(criterion_repeats(ordered, name) for name in names)
    ended = [record for record in ordered if record.finished and not broke_off(record.state, record.error)]
    complete = [one for one in ended if one.turns and all(turn.actual is not None for turn in one.turns)]
    answers = {tuple(content_text(turn.get("final_response")) for turn in _actual(record)) for record in complete}
    kind = _kind(rate, broke, criteria)
    return CaseRepeats(listed, rate, broke, kind, criteria, _paths(complete), len(answers), until)


def summarize_all(records: Iterable[Execution], until: float | None = None) -> Iterator[CaseRepeats]:
    """Yield a summary of each repeated case, in the order of the records. With `until`, every case has one.

    Executions with injected faults and tries of forks are not repeats.
    """
    cases: dict[tuple[str, ...], list[Execution]] = {}
    for record in records:
        if record.planned.is_apart:
            continue
        ref = record.ref
        cases.setdefault((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id), []).append(record)
    return (summarize(found, until) for found in cases.values() if len(found) > 1 or until is not None)


def criterion_repeats(records: Sequence[CaseRecord], name: str) -> CriterionRepeats:
    """Return the summary of one criterion over the repeats of a case."""
    judged = [record for record in records if name in record.metrics]
    decided = [record for record in judged if record.metrics[name].status in ("passed", "failed")]
    passes = [record.metrics[name].status == "passed" for record in decided]
    firm = [firmness(record, name) for record in decided]
    seen = [_evidence(record, name) for record in decided]
    verdicts: dict[str, set[bool]] = {}
    scores: dict[str, set[float | None]] = {}
    for record, shown, passed in zip(decided, seen, passes, strict=True):
        verdicts.setdefault(shown, set()).add(passed)
        scores.setdefault(shown, set()).add(record.metrics[name].score)
    # A repeat without anything to judge neither passes nor fails. A case may lack its subject in some repeats only.
    open_side = any(record.metrics[name].status == "not_applicable" for record in judged)
    cause: Cause | None = None
    if len(set(passes)) > 1:
        both_ways = any(len(found) > 1 for found in verdicts.values())
        judge = both_ways or any(each.near for each in firm)
        decisions = zip(passes, firm, seen, strict=True)
        sure_of = {passed for passed, each, shown in decisions if each.firm and len(verdicts[shown]) == 1}
        cause = _cause(agent=len(sure_of) > 1, judge=judge)
    elif open_side and passes and not passes[0]:
        cause = "agent"
    split, rejudged = sum(each.split for each in firm), sum(len(scores[shown]) > 1 for shown in seen)
    return CriterionRepeats(name, sum(passes), len(passes) - sum(passes), cause, split, rejudged)


def _cause(*, agent: bool, judge: bool) -> Cause:
    if agent:
        return "both" if judge else "agent"
    return "judge" if judge else "unknown"


def _kind(rate: PassRate, broke: int, criteria: Sequence[CriterionRepeats]) -> Kind:
    if not rate.flaky:
        return "stable"
    causes = {criterion.cause for criterion in criteria} - {None}
    agent = broke > 0 or not causes.isdisjoint({"agent", "both"})
    return _cause(agent=agent, judge=not causes.isdisjoint({"judge", "both"}))


def _paths(records: Sequence[CaseRecord]) -> tuple[Path, ...]:
    """Return the sequences of tool calls, the most frequent first."""
    times: Counter[tuple[tuple[Call, ...], ...]] = Counter()
    passed: Counter[tuple[tuple[Call, ...], ...]] = Counter()
    for record in records:
        taken = tuple(map(_calls, _actual(record)))
        times[taken] += 1
        passed[taken] += record.state == "passed"
    return tuple(Path(taken, count, passed[taken]) for taken, count in times.most_common())


def _evidence(record: CaseRecord, criterion: str) -> str:
    """Return the part of the transcript that `criterion` examines: tool calls, messages and answers, or everything."""
    # Loading this module, for instance for a usage error, must not load all descriptions.
    from workbench.criteria.registry import descriptions

    info, result = descriptions().get(criterion), record.metrics[criterion]
    if info is not None and info.asks is None:
        # Computed. It may examine the state, times or inner calls, and no judge can explain another result.
        return _json([result.status, result.score])
    if record.read_error:
        return f"lost {record.ref.repeat}"  # Two conversations that are lost were not the same.
    if info is not None and info.compares_calls:
        # Unchanged: for this criterion missing arguments differ from {}.
        return _json([[(call.name, call.args) for call in tool_calls(turn)] for turn in _actual(record)])
    if info is not None and info.compares_answers:
        names = ("user_content", "final_response")
        return _json([[content_text(turn.get(name)) for name in names] for turn in _actual(record)])
    return _json([_whole(turn) for turn in _actual(record)])


def _calls(invocation: dict[str, Any]) -> tuple[Call, ...]:
    return tuple((call.name, _json(call.args or {})) for call in tool_calls(invocation))


def _whole(invocation: dict[str, Any]) -> list[Any]:
    returned = [(result.get("name"), result.get("response")) for result in tool_responses(invocation)]
    user, answer = (content_text(invocation.get(name)) for name in ("user_content", "final_response"))
    return [user, intermediate_texts(invocation), answer, _calls(invocation), returned]


def _actual(record: CaseRecord) -> list[dict[str, Any]]:
    return [turn.actual for turn in record.turns if isinstance(turn.actual, dict)]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)

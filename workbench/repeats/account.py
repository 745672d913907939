"""The repeats of a case taken together: how often it passes, and who makes the difference, the agent or the judge.

A repeat counts if it passed, failed, or the agent itself broke off: an agent that raises has not passed, and may pass
the next time. What a judge, a simulated user, a limit or a cancellation left without a verdict says nothing of how
often the case passes, and is counted apart.

A case is *flaky* if some of the repeats that count passed and some did not. For each criterion that passed in some and
failed in others:

- the **judge** varies if it judged the same evidence (`_evidence`) both ways, or if a verdict hung on
  one vote (`workbench.repeats.votes`);
- the **agent** varies if, of the verdicts that are firm, some are passes and some are failures: there the judge agreed
  with itself, so that what it was shown must have differed;
- neither is known if there is no firm pass beside a firm failure and nothing was judged both ways: mostly because each
  question got only one vote.

Rules and plain computations say the same of the same, so all of their verdicts are firm. docs/repeats.md has the
reasons and the limits.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.events import CaseRef
from workbench.model.invocation import content_text, intermediate_texts, tool_calls, tool_responses
from workbench.rates import PassRate, Sure, broke_off, pass_hat_k, sure
from workbench.repeats.change import rate_of
from workbench.repeats.votes import firmness
from workbench.store import CaseRecord

Cause: TypeAlias = Literal["agent", "judge", "both", "unknown"]
Kind: TypeAlias = Literal["stable", "agent", "judge", "both", "unknown"]
"""`stable`, or who makes a flaky case flaky."""


Call: TypeAlias = tuple[str, str]
"""The name of a tool and its arguments as JSON; both are foreign text."""


@dataclass(frozen=True, slots=True)
class CriterionRepeats:
    """One criterion over the repeats. `passed` and `failed` count its own verdicts; `cause` says who varies where both
    are there. `split` counts executions in which the judge's votes disagreed, `rejudged` the executions whose evidence
    got another score in another repeat: both are the judge's spread, also where every verdict is a pass."""

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
    """One way through the tools (calls turn by turn) that the agent took in `times` of the repeats that have a
    transcript, of which `passed` passed."""

    calls: tuple[tuple[Call, ...], ...]
    times: int
    passed: int


@dataclass(frozen=True, slots=True)
class CaseRepeats:
    """All executions of one case in one run. `records` in the order of their numbers; `rate` over those that count,
    `broke` of them ended in an error of the agent's; `until` is the pass rate that the run was to make sure of, None if
    it was to make sure of none."""

    records: tuple[CaseRecord, ...] = field(repr=False)
    rate: PassRate
    broke: int
    kind: Kind
    criteria: tuple[CriterionRepeats, ...]
    paths: tuple[Path, ...]
    answers: int
    """How many different answers there were, of those that came to the end."""
    until: float | None = None

    @property
    def ref(self) -> CaseRef:
        """The first execution's."""
        return self.records[0].ref

    @property
    def flaky(self) -> bool:
        """Whether some passed and some did not."""
        return self.rate.flaky

    @property
    def unfinished(self) -> int:
        """How many executions are still to come to their end."""
        return sum(not record.finished for record in self.records)

    @property
    def without_verdict(self) -> int:
        """How many executions ended without a verdict that counts, cancelled ones left out."""
        return len(self.records) - self.unfinished - self.cancelled - self.rate.total

    @property
    def cancelled(self) -> int:
        """How many executions were cancelled."""
        return sum(record.state == "cancelled" for record in self.records)

    @property
    def sure(self) -> Sure:
        """Whether the rate is surely at or over `until`, or under it; None while it is not sure, or was not asked."""
        return None if self.until is None else sure(self.rate, self.until)

    def pass_hat(self, k: int) -> float | None:
        """pass^k of the repeats that count; None where there are fewer."""
        return pass_hat_k(self.rate.passed, self.rate.total, k)


def account(records: Sequence[CaseRecord], until: float | None = None) -> CaseRepeats:
    """The executions of one case taken together; there is at least one."""
    ordered = tuple(sorted(records, key=lambda record: record.ref.repeat))
    rate, broke = rate_of(ordered), sum(broke_off(record.state, record.brief_error) for record in ordered)
    names = dict.fromkeys(
        name for record in ordered for name, result in record.metrics.items() if result.status != "informational"
    )
    criteria = tuple(criterion_repeats(ordered, name) for name in names)
    complete = [record for record in ordered if _has_transcript(record)]
    return CaseRepeats(
        ordered,
        rate,
        broke,
        _kind(rate, broke, criteria),
        criteria,
        _paths(complete),
        len(Counter(map(answers, complete))),
        until,
    )


def accounts(records: Iterable[CaseRecord], until: float | None = None) -> Iterator[CaseRepeats]:
    """Yield one for each case that was executed more than once, in the order in which they come."""
    cases: dict[tuple[str, ...], list[CaseRecord]] = {}
    for record in records:
        ref = record.ref
        cases.setdefault((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id), []).append(record)
    return (account(found, until) for found in cases.values() if len(found) > 1 or until is not None)


def _has_transcript(record: CaseRecord) -> bool:
    whole = bool(record.turns) and all(turn.actual is not None for turn in record.turns)
    return record.finished and whole and not broke_off(record.state, record.brief_error)


def criterion_repeats(records: Sequence[CaseRecord], name: str) -> CriterionRepeats:
    """One criterion over the executions of a case."""
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
    # Of what need not be judged there are neither passes nor failures: a case may lack something in some repeats.
    open_side = any(record.metrics[name].status == "not_applicable" for record in judged)
    cause: Cause | None = None
    if len(set(passes)) > 1:
        both_ways = any(len(found) > 1 for found in verdicts.values())
        judge = both_ways or any(each.near for each in firm)
        sure_of = {
            passed
            for passed, each, shown in zip(passes, firm, seen, strict=True)
            if each.firm and len(verdicts[shown]) == 1
        }
        cause = _cause(agent=len(sure_of) > 1, judge=judge)
    elif open_side and passes and not passes[0]:
        cause = "agent"
    return CriterionRepeats(
        name,
        sum(passes),
        len(passes) - sum(passes),
        cause,
        sum(each.split for each in firm),
        sum(len(scores[shown]) > 1 for shown in seen),
    )


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
    """The ways through the tools, the most frequent first."""
    times: Counter[tuple[tuple[Call, ...], ...]] = Counter()
    passed: Counter[tuple[tuple[Call, ...], ...]] = Counter()
    for record in records:
        taken = trajectories(record)
        times[taken] += 1
        passed[taken] += record.state == "passed"
    return tuple(Path(taken, count, passed[taken]) for taken, count in times.most_common())


Evidence: TypeAlias = str


def _evidence(record: CaseRecord, criterion: str) -> Evidence:
    """What `criterion` looks at: the calls of tools, the answers, or for all others the whole conversation with what
    tools returned. The user's words are in it, because a simulated user says others each time."""
    # A usage error that loads this module does not wait for the descriptions.
    from workbench.metrics.registry import known

    info = known().get(criterion)
    if info is not None and info.compares_calls:
        # As they were written: for this criterion no arguments are not the same as {}.
        return _json([[(call.name, call.args) for call in tool_calls(turn)] for turn in _actual(record)])
    if info is not None and info.compares_answers:
        return _json([[_said(turn), content_text(turn.get("final_response"))] for turn in _actual(record)])
    return _json([_whole(turn) for turn in _actual(record)])


def trajectories(record: CaseRecord) -> tuple[tuple[Call, ...], ...]:
    """The calls of an execution, turn by turn."""
    return tuple(trajectory(turn) for turn in _actual(record))


def answers(record: CaseRecord) -> tuple[str, ...]:
    """The final answer of each turn."""
    return tuple(content_text(turn.get("final_response")) for turn in _actual(record))


def trajectory(invocation: dict[str, Any]) -> tuple[Call, ...]:
    """The calls of one turn in order."""
    return tuple((call.name, _json(call.args or {})) for call in tool_calls(invocation))


def _whole(invocation: dict[str, Any]) -> list[Any]:
    returned = [(result.get("name"), result.get("response")) for result in tool_responses(invocation)]
    said = [_said(invocation), intermediate_texts(invocation), content_text(invocation.get("final_response"))]
    return [*said, trajectory(invocation), returned]


def _said(invocation: dict[str, Any]) -> str:
    return content_text(invocation.get("user_content"))


def _actual(record: CaseRecord) -> list[dict[str, Any]]:
    """The invocations that came to their end."""
    return [turn.actual for turn in record.turns if isinstance(turn.actual, dict)]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)

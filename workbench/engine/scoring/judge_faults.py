"""Why a criterion that asks somebody got no verdict, by what its details say of the replies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.events import MetricResult, MetricStatus
from workbench.metrics.base import Scored


@dataclass(frozen=True, slots=True)
class Fault:
    """One reply that brought no verdict: `kind` is a `workbench.judge.base.FaultKind`. A reply that came, but could
    not be read, is "unreadable" too; one that passed over a rubric or a sentence is
    "skipped", a rating of Google's service without a score is "unrated"."""

    kind: str
    message: str


def faults_behind(scored: Scored) -> list[Fault]:
    """The faults in what kept the criterion from a verdict: in its turns without one, or where no turn is to blame, in
    the verdict over the case."""
    turns = [turn for turn in scored.turns if turn.status == "error"]
    found = [fault for turn in turns for fault in _faults(turn.details)] or list(_faults(scored.result.details))
    if not found and "judge" in scored.result.details:
        return [Fault("skipped", scored.result.reason)]
    if not found and "service" in scored.result.details:
        return [Fault("unrated", scored.result.reason)]
    return found


def something_answered(scored: Scored) -> bool:
    """Return whether a judge or service answered anything of this criterion, so that an answer may be kept."""
    return any(_answered(result.details) for result in (scored.result, *scored.turns))


def only_limited(scored: Scored) -> Scored:
    """The verdict; where it is an error only because no more calls could be made, it is `not_evaluated`: the user has
    set that limit. What was judged keeps its score."""
    if scored.result.status != "error":
        return scored
    faults = faults_behind(scored)
    if not faults or any(fault.kind != "limit" for fault in faults):
        return scored
    judged = sum(turn.score is not None for turn in scored.turns)
    count = f" ({judged} of {len(scored.turns)} turns judged)" if scored.turns else ""
    result = replace(scored.result, status="not_evaluated", reason=f"{faults[0].message}{count}")
    return Scored(result, tuple(_with_status(turn, "not_evaluated") for turn in scored.turns))


def _answered(details: Any) -> bool:
    """Return whether a reply that was read, or a rating, stands in the details at any depth."""
    if isinstance(details, dict):
        reply = "sample" in details and details.get("text") is not None and not details.get("unread")
        rating = "attempts" in details and "explanation" in details and not details.get("error")
        return reply or rating or any(map(_answered, details.values()))
    return isinstance(details, list | tuple) and any(map(_answered, details))


def _with_status(turn: MetricResult, status: MetricStatus) -> MetricResult:
    return replace(turn, status=status) if turn.status == "error" else turn


def _faults(details: Any) -> Iterator[Fault]:
    """What reply records (`workbench.judge.base.reply_record`) and ratings of the service say, at any depth."""
    if isinstance(details, dict):
        fault = details.get("fault", details.get("error"))
        if isinstance(fault, dict) and "kind" in fault:
            yield Fault(str(fault["kind"]), str(fault.get("message") or ""))
        elif "fault" in details and details.get("unread"):
            yield Fault("unreadable", str(details["unread"]))
        for value in details.values():
            yield from _faults(value)
    elif isinstance(details, Sequence) and not isinstance(details, str):
        for value in details:
            yield from _faults(value)

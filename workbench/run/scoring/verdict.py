"""The status, the error and the judges' usage of a case, from the verdicts of its criteria."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.criteria.base import Scored
from workbench.events.events import CaseError, CaseStatus, ErrorKind, MetricResult, Usage
from workbench.text.json_values import mapping

_KEPT = "The answers so far are stored, so the next run asks only for the rest"
_UNANSWERED: Mapping[str, str] = {
    "quota": "Run again when the quota is renewed, or use another judge_model",
    "timeout": "Run again, or use another judge_model",
    "http": "Fix the cause and run again, or use another judge_model",
    "connection": "Check the connection and the address, then run again",
}
_HINTS: Mapping[str, str] = {
    "skipped": "The next run asks again. Another judge_model may answer everything",
    "unrated": "The next run asks the service again",
    "cut": "Raise max_output_tokens in judge_model_config, or use another judge_model",
    "blocked": "Another judge_model may answer what this one refuses",
    "unreadable": "The report has each reply in full. The next run asks again, and another judge_model may do better",
    "raised": "Fix the judge, which is a function of the project",
    "limit": "Raise --max-judge-calls",
}
"""Kind of fault → hint beside the message."""
_TALLY = {
    "calls": "judge_calls",
    "cached": "judge_calls_cached",
    "input_tokens": "judge_input_tokens",
    "output_tokens": "judge_output_tokens",
}


def case_status(results: Iterable[MetricResult], *, allow_not_evaluated: bool = False) -> CaseStatus:
    """Return the status of a case with a complete transcript.

    The first of these that a metric has wins: `failed`, `error`, `not_evaluated` (ignored with `allow_not_evaluated`),
    `passed`. So a metric that broke hides no failure. A case without a passed metric is `not_evaluated`. Metrics that
    are `informational` or `not_applicable` never count.
    """
    seen = {result.status for result in results}
    if "failed" in seen:
        return "failed"
    if "error" in seen:
        return "error"
    if "not_evaluated" in seen and not allow_not_evaluated:
        return "not_evaluated"
    return "passed" if "passed" in seen else "not_evaluated"


def metric_error(scored: Iterable[Scored]) -> CaseError | None:
    """Return the error of a case from its first metric with status `error`, or None.

    The kind is `quota` if a used-up quota was the only cause, `judge` if replies were missing or unreadable for another
    cause, and otherwise `metric_crashed`.
    """
    for one in scored:
        result = one.result
        if result.status == "error":
            message = f"{result.name}: {result.reason}"
            traceback = str(result.details.get("traceback", ""))
            faults = [] if traceback else faults_behind(one)
            if not faults:
                return CaseError("metric_crashed", message, traceback=traceback)
            first = faults[0].kind  # The fault in the message.
            hint = _UNANSWERED.get(first) or _HINTS.get(first, "")
            if first in _UNANSWERED and any(_answered(part.details) for part in (result, *one.turns)):
                hint = _KEPT
            kind: ErrorKind = "quota" if all(fault.kind == "quota" for fault in faults) else "judge"
            return CaseError(kind, message, hint)
    return None


@dataclass(frozen=True, slots=True)
class Fault:
    """A reply without a usable verdict.

    `kind` is a `workbench.judges.base.FaultKind`, "unreadable", "skipped" for a reply that left out a rubric or a
    sentence, or "unrated" for a rating of Google's service without a score.
    """

    kind: str
    message: str


def faults_behind(scored: Scored) -> list[Fault]:
    """Return the faults that kept a criterion from a verdict: those of its turns, or else those of the case.

    A turn whose replies have no fault, or a case without any fault, has one fault, "skipped" or "unrated", with its
    reason. Return [] for a criterion without a judge.
    """
    details = scored.result.details
    other = "skipped" if "judge" in details else "unrated" if "service" in details else ""
    found: list[Fault] = []
    for turn in scored.turns:
        if turn.status == "error":
            found += list(_faults(turn.details)) or ([Fault(other, turn.reason)] if other else [])
    stop = mapping(details.get("stop"))
    if stop.get("verdict") == "unread":  # A simulated user's stop, which is a verdict beside those of the turns.
        found += _faults(stop)
    return found or list(_faults(details)) or ([Fault(other, scored.result.reason)] if other else [])


def only_limited(scored: Scored) -> Scored:
    """Return the verdict, as `not_evaluated` if only the user's call limit caused its error. Judged turns stay."""
    if scored.result.status != "error":
        return scored
    faults = faults_behind(scored)
    if not faults or any(fault.kind != "limit" for fault in faults):
        return scored
    judged = sum(turn.score is not None for turn in scored.turns)
    count = f" ({judged} of {len(scored.turns)} turns judged)" if scored.turns else ""
    result = replace(scored.result, status="not_evaluated", reason=f"{faults[0].message}{count}")
    turns = (replace(turn, status="not_evaluated") if turn.status == "error" else turn for turn in scored.turns)
    return Scored(result, tuple(turns))


def _answered(details: Any) -> bool:
    """Return whether the details have a readable reply or a rating at any depth. If so, an answer may be stored."""
    if isinstance(details, dict):
        reply = "sample" in details and details.get("text") is not None and not details.get("unread")
        rating = "attempts" in details and "explanation" in details and not details.get("error")
        return reply or rating or any(map(_answered, details.values()))
    return isinstance(details, list | tuple) and any(map(_answered, details))


def _faults(details: Any) -> Iterator[Fault]:
    """Yield the faults in reply records (`workbench.judges.base.reply_record`) and ratings, at any depth."""
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


def judge_usage(scored: Sequence[Scored]) -> Usage:
    """Return the usage of judges and services for these verdicts, from the tally in their details."""
    tallies = [tally for one in scored if (tally := one.result.details.get("tally")) and not tally.get("kept")]
    return Usage(**{name: sum(tally.get(key) or 0 for tally in tallies) for key, name in _TALLY.items()})


def with_judges(usage: Usage, judges: Usage) -> Usage:
    """Return `usage` plus the judge calls and tokens of `judges`."""
    if judges == Usage():
        return usage
    return replace(usage, **{name: getattr(usage, name) + getattr(judges, name) for name in _TALLY.values()})

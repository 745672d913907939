"""Cases as plain lines: one for each event of `--plain`, and the reasons why a case did not pass.

All text is safe for a terminal: foreign text has gone through `workbench.text.safe_text`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from workbench.criteria.description import JUDGE, RUBRICS
from workbench.events.events import CaseError, CaseRef, JudgeWaits, MetricResult, Noticed
from workbench.files.faults import snake
from workbench.results.error import user_frames
from workbench.results.faces import COUNTED, FACES
from workbench.results.judged import case_is_split, is_cached, is_function, judge_questions
from workbench.results.texts import compact
from workbench.store.execution import CaseRecord, Execution
from workbench.text.counting import amount, compared, sign
from workbench.text.safe_text import one_line

VERDICTS = {state: FACES[state].word.upper().replace(" ", "_") for state in COUNTED}
"""`PASS`, `FAIL`, `ERROR`, `NOT_EVALUATED` and `CANCELLED`."""


def case_line(record: CaseRecord) -> str:
    """Return the line of a case that ended, with the cause of an error.

    The form is `PASS|FAIL|ERROR|NOT_EVALUATED|CANCELLED agent/eval_set_id/eval_id[#repeat]
    metric=score<threshold[(mark,…)] …`. Scores are not rounded. Informational metrics are only in the reports. An
    execution with an injected fault names it after the case, followed by what the agent did instead of metrics. A
    replayed one is marked `FROZEN (…)`.
    """
    frozen = _frozen(record)
    if record.handling is not None:
        from workbench.results.faults import handling_text  # Few runs inject faults.

        return " ".join((VERDICTS[record.state], case_label(record), handling_text(record.handling), *frozen))
    parts = [VERDICTS[record.state], case_label(record), *(_metric_word(record, result) for result in _judged(record))]
    if record.planned.criteria_changed:
        parts.append("(other criteria)")
    parts += frozen
    if record.thawed is not None:
        from workbench.results.frozen import thawed_mark  # Few runs are compared with recordings.

        parts.append(thawed_mark(record.thawed))
    if record.state == "error":
        parts.append(_cause(record))
    return " ".join(parts)


def brief_marks(record: CaseRecord) -> list[str]:
    """Return everything that must accompany the case's verdict, in few words: `frozen`, `split`, `other criteria`."""
    found = ["frozen"] if record.frozen is not None else []
    found += dict.fromkeys(mark for result in _judged(record) for mark in marks(record, result))
    if record.planned.criteria_changed:
        found.append("other criteria")
    if record.thawed is not None:
        from workbench.results.frozen import thawed_mark  # Few runs are compared with recordings.

        found.append(thawed_mark(record.thawed))
    return found


def _judged(record: CaseRecord) -> list[MetricResult]:
    """Return the results of the config's criteria, also of those without a threshold."""
    own = record.custom_metrics
    return [result for result in record.metrics.values() if result.status != "informational" or result.name in own]


def _frozen(record: Execution) -> list[str]:
    if record.frozen is None:
        return []
    from workbench.results.frozen import frozen_mark  # Most runs are live.

    return [frozen_mark(record.frozen)]


def case_label(record: Execution) -> str:
    """Return the name of an execution, with its repeat from the second on, or its fault: `… [search · timeout]`."""
    if record.planned.fault is None:
        return label(record.ref)
    from workbench.results.faults import fault_title  # Few runs inject faults.

    return f"{label(replace(record.ref, repeat=1))} [{fault_title(record.planned)}]"


def label(ref: CaseRef) -> str:
    """Return the case's name on a line. An entry for a whole file has that file's name."""
    return one_line(ref.label if ref.eval_id else ref.evalset_file)


def _metric_word(record: CaseRecord, result: MetricResult) -> str:
    name = one_line(result.name, limit=100)
    tags = marks(record, result)
    behind = f"({','.join(tags)})" if tags else ""
    if result.status in ("passed", "failed") and result.score is not None and result.threshold is not None:
        score, threshold = compared(result.score, result.threshold)
        return f"{name}={score}{'>=' if result.score >= result.threshold else '<'}{threshold}{behind}"
    if result.status == "informational" and result.score is not None:
        return f"{name}={amount(result.score)}{behind}"
    return f"{name}={result.status}{behind}"


def marks(record: CaseRecord, result: MetricResult) -> list[str]:
    """Return the tags that must accompany a judged verdict: `function`, `split` votes, `cached` replies."""
    if not result.details or _is_computed(record, result.name):
        return []
    found = {
        "function": is_function(result),
        "split": case_is_split(record, result.name),
        "cached": is_cached(asked.question for asked in judge_questions(record, result.name)),
    }
    return [word for word, holds in found.items() if holds]


def _is_computed(record: CaseRecord, criterion: str) -> bool:
    # Imported late, so that a usage error need not wait for the criteria.
    from workbench.criteria.registry import descriptions, needs_bench

    return criterion in descriptions() and not needs_bench(criterion, custom=criterion in record.custom_metrics)


def _cause(record: CaseRecord) -> str:
    """Return why a case has no verdict: its own error, or else the errors of its criteria."""
    if record.error is not None:
        return error_text(record.error)
    faults = (result for result in record.metrics.values() if result.status == "error")
    return "; ".join(f"{one_line(result.name, limit=100)}: {one_line(result.reason)}" for result in faults)


def error_text(error: CaseError) -> str:
    """Return `kind: message` on one line, without the kind if the message begins with it."""
    message = one_line(error.message, limit=1000)
    return message if message.startswith(error.kind) else f"{error.kind}: {message}"


def notice_line(notice: Noticed) -> str:
    """Return `warning: message. Hint`, or `message: hint` if the hint starts in lower case.

    The level `info` has no word before the message.
    """
    prefix = "" if notice.level == "info" else f"{notice.level}: "
    message, hint = one_line(notice.message, limit=1000), one_line(notice.hint, limit=1000)
    stop = "" if message.endswith((".", "!", "?")) else ":" if hint[:1].islower() else "."
    return f"{prefix}{message}{stop} {hint}" if hint else f"{prefix}{message}"


def wait_line(event: JudgeWaits) -> str:
    """Return `gemini-2.5-flash: waiting 12 s: quota`, or a text that the wait is over."""
    model, reason = one_line(event.model, limit=100), one_line(event.reason, limit=300)
    if event.seconds <= 0:
        return f"{model} answers again"
    return f"{model}: waiting {event.seconds:.0f} s{f': {reason}' if reason else ''}"


def commit_words(commit: object, dirty: object) -> str:
    """Return a commit as `ab12cd34+`, or "" without one. The plus means that files differed from it."""
    return f"{one_line(str(commit)[:8])}{'+' * bool(dirty)}" if commit else ""


_OF_METRICS = ("judge", "quota", "metric_crashed")
_LONGEST_SETTING = 80


def reasons(record: CaseRecord) -> list[str]:
    """Return one line for each reason why the case did not pass: first its failures or its error, then the rest.

    An execution with an injected fault has one reason: what the agent did about it.
    """
    if record.handling is not None:
        from workbench.results.faults import handling_text  # Few runs inject faults.

        return [handling_text(record.handling)]
    broke = [error_text(record.error)] if record.error else []
    found = [] if record.state == "failed" else broke
    for result in record.metrics.values():
        # An error of the case that came from a metric already says so.
        if result.status == "error" and record.error is not None and _is_about(record.error, result):
            continue
        if result.status in ("failed", "error", "not_evaluated"):
            found.append(verdict(result, marks(record, result)))
    if record.state == "failed" and all(result.status != "failed" for result in record.metrics.values()):
        found.append("the failing verdict was not stored with the run")
    if record.state == "failed":
        found += broke
    found += _notes(record)
    return found


def _is_about(error: CaseError, result: MetricResult) -> bool:
    return error.kind in _OF_METRICS and error.message.startswith(f"{result.name}: ")


def _notes(record: CaseRecord) -> Iterator[str]:
    """Yield notes on the turns of a case that did not pass, such as a blocked model."""
    if record.state == "passed":
        return
    for number, turn in enumerate(record.turns, 1):
        if turn.note:
            yield one_line(turn.note if len(record.turns) == 1 else f"turn {number}: {turn.note}")


def verdict(result: MetricResult, tags: Sequence[str] = ()) -> str:
    """Return `name 0.5 < 1.0 (function): reason`, or `name error: reason` if there is no score to compare.

    `tags` are the result of `workbench.results.plain_lines.marks`.
    """
    text = f"{one_line(result.name, limit=100)} {score_text(result)}"
    if tags:
        text += f" ({', '.join(tags)})"
    return f"{text}: {one_line(result.reason)}" if result.reason else text


def score_text(result: MetricResult) -> str:
    """Return `0.5 < 1.0`, `0.93 ≥ 0.8`, `3.0` (informational) or the status."""
    score, threshold = result.score, result.threshold
    if result.status == "informational" and score is not None:
        return amount(score)
    if result.status not in ("passed", "failed") or score is None or threshold is None:
        return result.status.replace("_", " ")
    shown, limit = compared(score, threshold)
    return f"{shown} {sign(score, threshold)} {limit}"


def way_out(error: CaseError, root: str) -> Iterator[str]:
    """Yield the user's place that raised the error, relative to `root`, and a hint, if they are known."""
    if frames := user_frames(error, root):
        yield f"at {frames[-1].text(root)}"
    if error.hint:
        yield one_line(error.hint, limit=1000)


def other_criteria(record: Execution) -> str:
    """Return the criteria of a verdict that differ from those in the file, or ""."""
    return "; ".join(one_line(sentence, limit=300) for sentence in record.planned.criteria_changed)


def criteria_and_source(record: CaseRecord) -> str:
    """Return the criteria of a case and their source."""
    text, source = criteria_text(record), one_line(record.planned.criteria_source, limit=1000)
    return f"{text} ({source})" if text else source


def matched_by_location(records: Iterable[Execution]) -> list[str]:
    """Return a sentence for each agent that was matched by location, with its evalsets."""
    files: dict[str, dict[str, None]] = {}
    for record in records:
        if record.planned.matched_by == "location":
            files.setdefault(record.ref.agent, {})[record.ref.evalset_file] = None
    return [
        f"{one_line(agent, limit=100)} was matched by location: {one_line(', '.join(found), limit=1000)}"
        for agent, found in files.items()
    ]


def criteria_text(record: CaseRecord) -> str:
    """Return the criteria of a case with their settings: `tool_trajectory_avg_score 1.0 (match_type IN_ORDER)`.

    Empty if the case was never judged.
    """
    return ", ".join(_criterion(name, value) for name, value in record.criteria.items())


def _criterion(name: str, value: Any) -> str:
    settings = dict(value) if isinstance(value, dict) else {"threshold": value}
    threshold = settings.pop("threshold", None)
    parts = [one_line(name, limit=100)]
    if threshold is not None:
        parts.append(one_line(str(threshold), limit=40))
    shown = [f"{key} {_setting(setting)}" for key, setting in settings.items() if _is_shown(key, setting)]
    if shown:
        parts.append(f"({one_line(', '.join(shown))})")
    return " ".join(parts)


def _is_shown(key: str, value: Any) -> bool:
    """Return whether a setting fits on a line. Models and rubrics do not."""
    return value is not None and snake(key) not in (JUDGE, RUBRICS)


def _setting(value: Any) -> str:
    return one_line(compact(value) if isinstance(value, dict | list) else str(value), limit=_LONGEST_SETTING)

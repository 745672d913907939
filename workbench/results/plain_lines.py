"""One-line texts for events, as printed by `--plain` and in CI logs.

All text is safe for a terminal: foreign text has gone through `workbench.text.safe_text`.
"""

from dataclasses import replace

from workbench.events.events import CaseError, CaseRef, JudgeWaits, MetricResult, Noticed
from workbench.results.faces import COUNTED, FACES
from workbench.results.frozen import frozen_mark, thawed_mark
from workbench.results.judged import case_is_split, is_cached, is_function, judge_questions
from workbench.store.execution import CaseRecord, Execution
from workbench.text.counting import amount, compared
from workbench.text.safe_text import one_line

VERDICTS = {state: FACES[state].word.upper().replace(" ", "_") for state in COUNTED}
"""`PASS`, `FAIL`, `ERROR`, `NOT_EVALUATED` and `CANCELLED`."""


def case_line(record: CaseRecord) -> str:
    """Return the line of a case that ended, with the cause of an error.

    The form is `PASS|FAIL|ERROR|NOT_EVALUATED|CANCELLED agent/eval_set_id/eval_id[#repeat]
    metric=score<threshold[(mark,…)] …`. Scores are not rounded. Informational metrics that no
    config names are only in the reports. If a fault was injected, its name follows the case, and the agent's reaction
    replaces the metrics. A replayed execution has the mark `FROZEN (…)`, and a thawed one `THAWED (…)`.
    """
    frozen = [frozen_mark(record.frozen)] if record.frozen is not None else []
    if record.handling is not None:
        from workbench.results.faults import handling_text  # Few runs inject faults.

        return " ".join((VERDICTS[record.state], case_label(record), handling_text(record.handling), *frozen))
    parts = [VERDICTS[record.state], case_label(record), *(_metric_word(record, result) for result in _judged(record))]
    if record.planned.criteria_changed:
        parts.append("(other criteria)")
    parts += frozen
    if record.thawed is not None:
        parts.append(thawed_mark(record.thawed))
    if record.state == "error":
        # Without an error of its own, those of its criteria.
        broken = [one for one in record.metrics.values() if one.status == "error"] if record.error is None else []
        of_criteria = (f"{one_line(one.name, limit=100)}: {one_line(one.reason)}" for one in broken)
        parts.append("; ".join(of_criteria) if record.error is None else error_text(record.error))
    return " ".join(parts)


def brief_marks(record: CaseRecord) -> list[str]:
    """Return marks that must accompany a verdict: `frozen`, `marks` of its criteria, `other criteria`, `THAWED (…)`."""
    found = ["frozen"] if record.frozen is not None else []
    found += dict.fromkeys(mark for result in _judged(record) for mark in marks(record, result))
    if record.planned.criteria_changed:
        found.append("other criteria")
    if record.thawed is not None:
        found.append(thawed_mark(record.thawed))
    return found


def _judged(record: CaseRecord) -> list[MetricResult]:
    """Return the results of the configured criteria, including those without a threshold."""
    own = record.custom_metrics
    return [result for result in record.metrics.values() if result.status != "informational" or result.name in own]


def case_label(record: Execution) -> str:
    """Return the name of an execution with its repeat, if it is not the first, or its fault: `… [search · timeout]`."""
    if record.planned.fault is None:
        return label(record.ref)
    from workbench.results.faults import fault_title  # Few runs inject faults.

    return f"{label(replace(record.ref, repeat=1))} [{fault_title(record.planned)}]"


def label(ref: CaseRef) -> str:
    """Return the name of a case on one line. An entry for a whole file has the name of the file."""
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
    """Return the tags that apply to a judged verdict: `function`, `split` and `cached`. Other verdicts have none."""
    # Imported late, because a list of runs must not wait for the criteria.
    from workbench.criteria.registry import descriptions, needs_bench

    name = result.name
    asks = name not in descriptions() or needs_bench(name, custom=name in record.custom_metrics)
    if not result.details or not asks:
        return []
    found = {
        "function": is_function(result),
        "split": case_is_split(record, result.name),
        "cached": is_cached(asked.question for asked in judge_questions(record, result.name)),
    }
    return [word for word, holds in found.items() if holds]


def error_text(error: CaseError) -> str:
    """Return an error as `kind: message` on one line. A message that begins with the kind is not prefixed."""
    message = one_line(error.message, limit=1000)
    return message if message.startswith(error.kind) else f"{error.kind}: {message}"


def notice_line(notice: Noticed) -> str:
    """Return a notice as `warning: message. Hint`, without a prefix if its level is `info`."""
    prefix = "" if notice.level == "info" else f"{notice.level}: "
    message, hint = one_line(notice.message, limit=1000), one_line(notice.hint, limit=1000)
    stop = "" if message.endswith((".", "!", "?")) else ":" if hint[:1].islower() else "."
    return f"{prefix}{message}{stop} {hint}" if hint else f"{prefix}{message}"


def wait_line(event: JudgeWaits) -> str:
    """Return `gemini-2.5-flash: waiting 12 s: quota`, or `gemini-2.5-flash answers again`."""
    model, reason = one_line(event.model, limit=100), one_line(event.reason, limit=300)
    if event.seconds <= 0:
        return f"{model} answers again"
    return f"{model}: waiting {event.seconds:.0f} s{f': {reason}' if reason else ''}"


def commit_words(commit: object, dirty: object) -> str:
    """Return a short commit hash: `ab12cd34+`, or "" without a commit. The plus means that files were modified."""
    return f"{one_line(str(commit)[:8])}{'+' * bool(dirty)}" if commit else ""

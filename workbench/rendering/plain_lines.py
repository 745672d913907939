"""One line for each thing that happened: what `--plain` prints and what CI logs hold.

Everything here is safe for a terminal: foreign text has gone through `workbench.text`.
"""

from workbench.events import CaseError, CaseRef, JudgeWaits, MetricResult, Noticed
from workbench.rendering.faces import COUNTED, FACES
from workbench.rendering.judged import all_asked, case_is_split, is_cached, is_heuristic
from workbench.scores import compared
from workbench.store import CaseRecord
from workbench.text import one_line

VERDICTS = {state: FACES[state].word.upper().replace(" ", "_") for state in COUNTED}
"""`PASS`, `FAIL`, `ERROR`, `NOT_EVALUATED` and `CANCELLED`."""


def case_line(record: CaseRecord) -> str:
    """`PASS|FAIL|ERROR|NOT_EVALUATED|CANCELLED agent/eval_set_id/eval_id[#repeat] metric=score<threshold[(mark,…)] …`
    of a case that ended, and for ERROR the cause behind it. Scores are not rounded. What is only informational is left
    to the reports."""
    judged = (result for result in record.metrics.values() if result.status != "informational")
    parts = [VERDICTS[record.state], label(record.ref), *(_metric_word(record, result) for result in judged)]
    if record.planned.criteria_changed:
        parts.append("(other criteria)")
    if record.state == "error":
        parts.append(_cause(record))
    return " ".join(parts)


def label(ref: CaseRef) -> str:
    """The case's name on a line; an entry that stands for a whole file is named by that file."""
    return one_line(ref.label if ref.eval_id else ref.evalset_file)


def _metric_word(record: CaseRecord, result: MetricResult) -> str:
    name = one_line(result.name, limit=100)
    said = marks(record, result)
    behind = f"({','.join(said)})" if said else ""
    if result.status in ("passed", "failed") and result.score is not None and result.threshold is not None:
        score, threshold = compared(result.score, result.threshold)
        return f"{name}={score}{'>=' if result.score >= result.threshold else '<'}{threshold}{behind}"
    return f"{name}={result.status}{behind}"


def marks(record: CaseRecord, result: MetricResult) -> list[str]:
    """What must be said beside a judged verdict wherever it stands: that rules judged and no model, that votes
    disagree, that nobody was asked this time."""
    if not result.details or _is_computed(record, result.name):
        return []
    found = {
        "heuristic": is_heuristic(result),
        "split": case_is_split(record, result.name),
        "cached": is_cached(asked.question for asked in all_asked(record, result.name)),
    }
    return [word for word, holds in found.items() if holds]


def _is_computed(record: CaseRecord, criterion: str) -> bool:
    # A usage error that loads this module does not wait for the criteria.
    from workbench.metrics.registry import descriptions, needs_bench

    return criterion in descriptions() and not needs_bench(criterion, custom=criterion in record.custom_metrics)


def _cause(record: CaseRecord) -> str:
    """Why a case has no verdict; a criterion's error speaks for the case where the case has none of its own."""
    if record.error is not None:
        return error_text(record.error)
    faults = (result for result in record.metrics.values() if result.status == "error")
    return "; ".join(f"{one_line(result.name, limit=100)}: {one_line(result.reason)}" for result in faults)


def error_text(error: CaseError) -> str:
    """`kind: message` on one line; the kind only where the message does not begin with it."""
    message = one_line(error.message, limit=1000)
    return message if message.startswith(error.kind) else f"{error.kind}: {message}"


def notice_line(notice: Noticed) -> str:
    """`warning: message. Hint`, or `message: hint` where that goes on in small letters or is a command; what is only
    information has no word before it."""
    prefix = "" if notice.level == "info" else f"{notice.level}: "
    message, hint = one_line(notice.message, limit=1000), one_line(notice.hint, limit=1000)
    stop = "" if message.endswith((".", "!", "?")) else ":" if hint[:1].islower() else "."
    return f"{prefix}{message}{stop} {hint}" if hint else f"{prefix}{message}"


def wait_line(event: JudgeWaits) -> str:
    """`gemini-2.5-flash: waiting 12 s: quota`; when it is over, that it goes on."""
    model, reason = one_line(event.model, limit=100), one_line(event.reason, limit=300)
    if event.seconds <= 0:
        return f"{model} answers again"
    return f"{model}: waiting {event.seconds:.0f} s{f': {reason}' if reason else ''}"


def commit_words(commit: object, dirty: object) -> str:
    """Return a commit as `ab12cd34+`, "" without one. The plus says that files differed from it."""
    return f"{one_line(str(commit)[:8])}{'+' * bool(dirty)}" if commit else ""

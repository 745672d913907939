"""The pane "History": the user's triage of a case, its repeats, its earlier runs, and why its verdict changed."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from workbench.results.calls import call_text
from workbench.results.document import Document, Subject
from workbench.results.faces import FACES, FLAKY, Status, badge, glyph
from workbench.results.lines import (
    Line,
    View,
    cut_line,
    flow,
    fold,
    hang,
    hang_text,
    heading,
    label,
    part,
    remark,
    under,
    wrap,
)
from workbench.results.repeat_texts import CAUSES, interval, share, spread, sureness
from workbench.results.repeats import CaseRepeats, CriterionRepeats, Path
from workbench.results.sections import add_plugin_sections
from workbench.results.side_by_side import add_causes, add_compared
from workbench.results.triage import triage_lines
from workbench.store.history.latest import PastRun
from workbench.text.counting import counted, percent
from workbench.text.safe_text import one_line

_ARGUMENTS = 80
_EXECUTIONS = 200
_WHY = {
    "agent": "The agent varies between repeats, and each verdict on it is clear.",
    "judge": "The judge varies: it judged equal answers differently, or decided by a single vote.",
    "both": "Both vary: the agent differs between repeats, and some verdicts of the judge are unclear.",
    "unknown": "Agent or judge: answers and verdicts differ, and single votes do not show why. Ask for all votes.",
}


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane: the user's triage, the repeats, the earlier runs, and the changes."""
    document = Document()
    document.add(triage_lines(subject, view))
    if subject.repeats is not None:
        _add_repeats(document, subject.repeats, view)
    _add_past_runs(document, subject, view)
    _add_change(document, subject, view)
    if not document.lines:
        document.add(remark(_nothing(subject), view))
    add_plugin_sections(document, "History", subject, view)
    return document


def _nothing(subject: Subject) -> str:
    if subject.record is None or subject.record.state == "queued":
        return "The case has not run yet."
    if subject.loading:
        return "Earlier verdicts are still being read."
    if subject.earlier[1:]:
        return "Its earlier runs have no scores to show."
    return "There is no earlier verdict of this case."


def _add_repeats(document: Document, case: CaseRepeats, view: View) -> None:
    document.add(_repeats_verdict(case, view))
    document.gap()
    document.add(_rate(case, view))
    document.add(_executions(case, view))
    if case.criteria:
        document.gap()
        document.add([_titled("criteria", "", view)])
        for criterion in sorted(case.criteria, key=lambda each: (each.cause is None, not each.spread, not each.failed)):
            document.add(_criterion(criterion, view))
    if case.paths:
        document.gap()
        answers = counted(case.answers, "distinct answer")
        document.add([_titled("trajectories", f"{len(case.paths)} distinct, {answers}", view)])
        shown = case.paths if view.full else case.paths[:5]
        document.add(line for path in shown for line in _path(path, view))
        if len(shown) < len(case.paths):
            document.add([fold(f" ▸ {len(case.paths) - len(shown)} more", view.width)])


def _add_past_runs(document: Document, subject: Subject, view: View) -> None:
    """Add the scores of each criterion in the newest runs. Informational metrics are folded if there are others."""
    results = subject.record.metrics.values() if subject.record is not None else ()
    deciding = [result.name for result in results if result.status != "informational"]
    names = [result.name for result in results] if view.full or not deciding else deciding
    lines = [line for name in names for line in past_run_lines(name, subject.earlier, view)]
    if lines and len(names) < len(results):
        lines.append(fold(f" ▸ {counted(len(results) - len(names), 'informational metric')}", view.width))
    if lines:
        document.gap()
        document.add([heading("runs, the newest on the right", view.width), *lines])


def _add_change(document: Document, subject: Subject, view: View) -> None:
    """Add the causes of a changed verdict, and both executions side by side."""
    change, record, before = subject.change, subject.record, subject.before
    if change is None or record is None or before is None:
        return
    document.gap()
    if change.flaky:
        known = f"Known flaky: {change.flaky} when repeated. One more verdict proves little. Press X to repeat it."
        document.add(remark(known, view, "status-flaky"))
        document.gap()
    then, now = change.rates
    if then:
        rates = Text.assemble((" all repeats  ", "label"), then if then == now else f"{then} → {now}")
        document.add(hang_text(Text(), rates, view.width, 1))
        document.gap()
    document.add([heading("why it changed", view.width)])
    if subject.compared is None:
        document.add(remark("comparing the two runs", view))
    else:
        add_causes(document, subject.compared, view)
    document.gap()
    document.add([heading("before and after", view.width)])
    add_compared(document, before, record, view)


def _repeats_verdict(case: CaseRepeats, view: View) -> Iterator[Line]:
    if case.unfinished:
        words = f"{case.unfinished} of {len(case.records)} repeats not finished yet."
        yield from remark(words, view, "status-running")
        return
    if not case.rate.total:
        yield from remark("No repeat has a verdict that counts.", view)
        return
    if case.kind == "stable":
        times = "every time" if case.rate.total > 1 else "only once: too few runs to tell"
        face = badge("passed" if case.rate.passed else "failed")
        yield cut_line(Text.assemble(" ", face, f"  {times}"), view.width)
        return
    mark = Text.styled(f" {FLAKY.glyph} {FLAKY.word.upper()}", FLAKY.variable)
    yield cut_line(Text.assemble(mark, (f"  {CAUSES[case.kind]}", "strong")), view.width)
    yield from remark(_WHY[case.kind], view)


def _rate(case: CaseRepeats, view: View) -> Iterator[Line]:
    rate = case.rate
    text = f"{rate.passed} of {rate.total}"
    if case.without_verdict:
        text += f"; {case.without_verdict} more without a verdict"
    if case.cancelled:
        text += f"; {case.cancelled} cancelled"
    if case.broke:
        text += f"; {case.broke} with an agent error"
    yield from part("passed", Text(text), view)
    if not rate.total:
        return
    of_all = Text.styled(percent(rate.rate or 0.0), "strong")
    yield from part("rate", Text.assemble(of_all, (f"  {interval(rate)}", "muted")), view)
    if case.until is not None:
        style = {"above": "status-passed", "below": "status-failed"}.get(case.sure or "", "status-not-evaluated")
        yield from part("target", Text.styled(sureness(case), style), view)
    # Small values of k, some larger ones, and the number of repeats.
    ks = [*range(1, min(rate.total, 5) + 1), *(k for k in (8, 10, 20, 50, 100) if k < rate.total), rate.total]
    hats = [(k, value) for k in dict.fromkeys(ks) if (value := case.pass_hat(k)) is not None]
    shown = (Text.assemble((f"{k} ", "muted"), share(value)) for k, value in hats)
    yield from hang(label("pass^k"), flow(shown, view.room), 15)


def _executions(case: CaseRepeats, view: View) -> Iterator[Line]:
    begun = [record for record in case.records if record.state != "queued"]
    shown: list[Line] = [
        Text.assemble(glyph(record.state), (f"{record.ref.repeat}", "muted")) for record in begun[:_EXECUTIONS]
    ]
    if len(begun) < len(case.records):
        shown.append(Text.styled(f"{len(case.records) - len(begun)} queued", "muted"))
    yield from hang(label("repeats"), flow(shown, view.room, "  "), 15)
    if len(begun) > _EXECUTIONS:
        yield from under(Text(), [fold(f"and {len(begun) - _EXECUTIONS} more", view.room)])


def _criterion(criterion: CriterionRepeats, view: View) -> Iterator[Line]:
    total = criterion.passed + criterion.failed
    face = FLAKY if criterion.cause is not None else FACES["failed" if criterion.failed else "passed"]
    if not total:
        face = FACES["not_evaluated"]
    words = Text.assemble(
        (f"{face.glyph} ", face.variable),
        (one_line(criterion.name, limit=80), "strong"),
        (f"  {criterion.passed} of {total} passed" if total else "  no verdict", "muted"),
    )
    if criterion.cause is not None:
        words.append(f"  {CAUSES[criterion.cause]}", FLAKY.variable)
    yield from hang_text(Text(" "), words, view.width, 1)
    if criterion.spread:
        why = f"the judge disagrees with itself: {spread(criterion.split, criterion.rejudged)}"
        yield from hang_text(Text("   "), Text.styled(why, "status-not-evaluated"), view.width, 3)


def _path(path: Path, view: View) -> Iterator[Line]:
    mixed = 0 < path.passed < path.times
    face = FLAKY if mixed else FACES["passed" if path.passed else "failed"]
    lead: Line = Text.assemble(f" {path.times:>3}× ", (f"{face.glyph} ", face.variable))
    if mixed:
        lead = Text.assemble(lead, (f"{path.passed}/{path.times} ", "muted"))
    yield from hang(lead, _path_calls(path, view), 15)


def _path_calls(path: Path, view: View) -> Iterator[Line]:
    for number, calls in enumerate(path.calls, 1):
        if len(path.calls) > 1:
            yield Text.styled(f"turn {number}", "label")
        for name, arguments in calls:
            text = call_text(name, _json(arguments), 1_000 if view.full else _ARGUMENTS)
            yield from wrap(Text(one_line(text, limit=2_000 if view.full else 2 * _ARGUMENTS)), view.room)
        if not calls:
            yield Text.styled("no tool call", "muted")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _titled(name: str, words: str, view: View) -> Line:
    return cut_line(Text.assemble((f" {name}", "heading"), (f"  {words}", "muted")), view.width)


def past_run_lines(name: str, earlier: Sequence[PastRun], view: View) -> Iterator[Line]:
    """Yield a criterion and its scores, the oldest run on the left, if at least two runs judged it."""
    judged = [found for run in reversed(earlier) if (found := _score_and_status(name, run)) is not None]
    if len(judged) < 2:  # A single run would only repeat the verdict.
        return
    scores = [score for score, _ in judged if score is not None]
    low, high = min([0.0, *scores]), max([1.0, *scores])
    bars = Text.assemble(*((_bar(score, low, high), FACES[status].variable) for score, status in judged))
    marks = Text.assemble(*((FACES[status].glyph, FACES[status].variable) for _, status in judged))
    decided = [status for _, status in judged if status not in ("informational", "not_applicable")]
    words = f"passed {decided.count('passed')} of {len(decided)}" if decided else "never decided"
    summary = Text.styled(words, "muted")
    yield cut_line(Text.styled(f" {one_line(name, limit=100)}", "label"), view.width)
    yield from hang(Text(), flow([bars, marks, summary], max(view.width - 3, 10), "  "), 3)


def _score_and_status(name: str, run: PastRun) -> tuple[float | None, Status] | None:
    """Return the mean score and the worst status of a criterion over a run's repeats, or None without a result."""
    results = [one.scores[name] for one in run.executions if name in one.scores]
    if not results:
        return None
    # Stored runs can hold any number. Such scores have no place between others.
    known = (result.score for result in results if result.score is not None and not math.isnan(result.score))
    scores = [min(max(score, -1e12), 1e12) for score in known]
    worst = min((result.status for result in results), key=lambda status: FACES[status].rank)
    return (sum(scores) / len(scores) if scores else None), worst


def _bar(score: float | None, low: float, high: float) -> str:
    if score is None:
        return "·"
    return "▁▂▃▄▅▆▇█"[round((score - low) / (high - low) * 7)]

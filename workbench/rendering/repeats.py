"""The pane "Repeats": how often a case passes, the confidence interval, and differences between its repeats."""

import math
from collections.abc import Iterator

from workbench.counting import counted
from workbench.execution import Execution
from workbench.rendering.document import Document, Subject
from workbench.rendering.faces import FACES, FLAKY
from workbench.rendering.lines import Line, Segment, cut_line, flow, fold, hang, hang_text, wrap
from workbench.rendering.rows import View, label, part, remark, under
from workbench.rendering.status import badge, glyph
from workbench.repeats.repeat_texts import CAUSES, interval, percent, share, spread, sureness
from workbench.repeats.summary import CaseRepeats, CriterionRepeats, Path
from workbench.text import one_line

BAR = 40
"""The maximum width of the bar, in cells."""
_PATHS = 5
_ARGUMENTS = 80
_EXECUTIONS = 200
_WHY = {
    "agent": "The agent varies between repeats, and each verdict on it is clear.",
    "judge": "The judge varies: it judged equal answers differently, or decided by a single vote.",
    "both": "Both vary: the agent differs between repeats, and some verdicts of the judge are unclear.",
    "unknown": "Agent or judge: answers and verdicts differ, and single votes do not show why. Ask for all votes.",
}


def applies(subject: Subject, criteria: frozenset[str]) -> bool:
    """Return whether the subject is a case that ran more than once, and not one of its repeats."""
    return subject.repeats is not None


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane."""
    document = Document()
    case = subject.repeats
    if case is None:
        return document
    document.add(_verdict(case, view))
    document.gap()
    document.add(_rate(case, view))
    document.add(_executions(case, view))
    if case.criteria:
        document.gap()
        document.add([_heading("criteria", "", view)])
        for criterion in sorted(case.criteria, key=lambda each: (each.cause is None, not each.spread, not each.failed)):
            document.add(_criterion(criterion, view))
    if case.paths:
        document.gap()
        document.add(_paths(case, view))
    return document


def _verdict(case: CaseRepeats, view: View) -> Iterator[Line]:
    if case.unfinished:
        words = f"{case.unfinished} of {len(case.records)} repeats have not finished."
        yield from remark(words, view, "status-running")
        return
    if not case.rate.total:
        yield from remark("No repeat has a verdict that counts.", view)
        return
    if case.kind == "stable":
        times = "every time" if case.rate.total > 1 else "only once: too few runs to tell"
        face = badge("passed" if case.rate.passed else "failed")
        yield cut_line((Segment(" "), *face, Segment(f"  {times}")), view.width)
        return
    mark = Segment(f" {FLAKY.glyph} {FLAKY.word.upper()}", FLAKY.variable)
    yield cut_line((mark, Segment(f"  {CAUSES[case.kind]}", "strong")), view.width)
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
    yield from part("passed", [Segment(text)], view)
    if not rate.total:
        return
    of_all = Segment(percent(rate.rate or 0.0), "strong")
    yield from part("rate", [of_all, Segment(f"  {interval(rate)}", "muted")], view)
    yield from under((), [bar(case, min(BAR, view.room - 1))])
    if case.until is not None:
        style = {"above": "status-passed", "below": "status-failed"}.get(case.sure or "", "status-not-evaluated")
        yield from part("target", [Segment(sureness(case), style)], view)
    yield from hang(label("pass^k"), flow(_pass_hats(case), view.room), 15)


def bar(case: CaseRepeats, width: int) -> Line:
    """Return the interval from 0 to 100 % with the rate and the target rate, if any: `·····━━━━●━━━│·`."""
    rate, last = case.rate, max(width - 1, 1)
    low, high, here = math.floor(rate.low * last), math.ceil(rate.high * last), round((rate.rate or 0.0) * last)
    wanted = None if case.until is None else round(case.until * last)
    cells = []
    for cell in range(last + 1):
        if cell == here:
            cells.append(Segment("●", "strong"))
        elif cell == wanted:
            cells.append(Segment("│", "hint"))
        elif low <= cell <= high:
            cells.append(Segment("━", FLAKY.variable if case.flaky else ""))
        else:
            cells.append(Segment("·", "muted"))
    return tuple(cells)


def _pass_hats(case: CaseRepeats) -> Iterator[Line]:
    """Yield pass^k for some values of k, because it falls fast."""
    total = case.rate.total
    for k in dict.fromkeys([*range(1, min(total, 5) + 1), *(k for k in (8, 10, 20, 50, 100) if k < total), total]):
        value = case.pass_hat(k)
        if value is not None:
            yield (Segment(f"{k} ", "muted"), Segment(share(value)))


def _executions(case: CaseRepeats, view: View) -> Iterator[Line]:
    begun = [record for record in case.records if record.state != "queued"]
    shown: list[Line] = [_execution(record) for record in begun[:_EXECUTIONS]]
    if len(begun) < len(case.records):
        shown.append((Segment(f"{len(case.records) - len(begun)} queued", "muted"),))
    yield from hang(label("repeats"), flow(shown, view.room, "  "), 15)
    if len(begun) > _EXECUTIONS:
        yield from under((), [fold(f"and {len(begun) - _EXECUTIONS} more", view.room)])


def _execution(record: Execution) -> Line:
    return (glyph(record.state), Segment(f"{record.ref.repeat}", "muted"))


def _criterion(criterion: CriterionRepeats, view: View) -> Iterator[Line]:
    total = criterion.passed + criterion.failed
    face = FLAKY if criterion.cause is not None else FACES["failed" if criterion.failed else "passed"]
    if not total:
        face = FACES["not_evaluated"]
    segments = [
        Segment(f"{face.glyph} ", face.variable),
        Segment(one_line(criterion.name, limit=80), "strong"),
        Segment(f"  {criterion.passed} of {total} passed" if total else "  no verdict", "muted"),
    ]
    if criterion.cause is not None:
        segments.append(Segment(f"  {CAUSES[criterion.cause]}", FLAKY.variable))
    yield from hang_text([Segment(" ")], segments, view.width, 1)
    if criterion.spread:
        words = f"the judge disagrees with itself: {spread(criterion.split, criterion.rejudged)}"
        yield from hang_text([Segment("   ")], [Segment(words, "status-not-evaluated")], view.width, 3)


def _paths(case: CaseRepeats, view: View) -> Iterator[Line]:
    answers = counted(case.answers, "distinct answer")
    yield _heading("trajectories", f"{len(case.paths)} distinct, {answers}", view)
    shown = case.paths if view.full else case.paths[:_PATHS]
    for path in shown:
        yield from _path(path, view)
    if len(shown) < len(case.paths):
        yield fold(f" ▸ {len(case.paths) - len(shown)} more", view.width)


def _path(path: Path, view: View) -> Iterator[Line]:
    mixed = 0 < path.passed < path.times
    face = FLAKY if mixed else FACES["passed" if path.passed else "failed"]
    lead: Line = (Segment(f" {path.times:>3}× "), Segment(f"{face.glyph} ", face.variable))
    if mixed:
        lead = (*lead, Segment(f"{path.passed}/{path.times} ", "muted"))
    yield from hang(lead, _calls(path, view), 15)


def _calls(path: Path, view: View) -> Iterator[Line]:
    for number, calls in enumerate(path.calls, 1):
        if len(path.calls) > 1:
            yield (Segment(f"turn {number}", "label"),)
        for name, arguments in calls:
            segments = [Segment(one_line(name, limit=60), "name")]
            if arguments != "{}":
                limit = 2000 if view.full else _ARGUMENTS
                segments.append(Segment(f" {one_line(arguments, limit=limit)}", "muted"))
            yield from wrap(segments, view.room)
        if not calls:
            yield (Segment("no tool call", "muted"),)


def _heading(name: str, words: str, view: View) -> Line:
    return cut_line((Segment(f" {name}", "heading"), Segment(f"  {words}", "muted")), view.width)

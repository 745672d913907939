"""Agreement between judges and the user, as lines: a confusion matrix, the share and kappa for each criterion."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from workbench.editing.triage.agreement import JudgeAgreement, left_out_text
from workbench.results.cells import cut
from workbench.results.faces import JUDGED
from workbench.results.lines import Line, cut_line, pad, rule, wrap
from workbench.results.repeats.repeat_texts import interval
from workbench.text.counting import counted, percent
from workbench.text.safe_text import one_line

_PARTS = {"": "verdicts", "sentence": "sentences", "rubric": "rubrics", "verdict": "verdicts over turns"}
_SIDE = 16
_CELL = 14
_NARROW_CELL = 7
_EMPTY = (
    "No verdicts triaged yet.",
    "Press t to triage the verdicts of failed and passed cases. Labels of sentences and rubrics that you confirm or "
    "override count too.",
)


def agreement_lines(found: Iterable[JudgeAgreement], width: int, left_out: int = 0) -> Iterator[Line]:
    """Yield the whole page in `width` cells. `left_out` verdicts were given by cause and do not count."""
    found = list(found)
    if left_out:
        yield from wrap(Text.styled(left_out_text(left_out), "muted"), width)
        yield Text()
    if not found:
        for sentence in _EMPTY:
            yield from wrap(Text.styled(sentence, "muted"), width)
        return
    for number, one in enumerate(found):
        if number:
            yield Text()
        yield from _one(one, width)


def _one(one: JudgeAgreement, width: int) -> Iterator[Line]:
    name = one_line(one.criterion, limit=80) or "the case's verdict"
    judge = one_line(one.judge, limit=60)
    right: Line = Text.styled(judge, "muted") if judge and len(judge) + len(name) + 8 < width else Text()
    yield rule(Text.assemble((name, "heading"), (f"  {_PARTS[one.part]}", "label")), right, width)
    yield from wrap(Text.assemble(*_figures(one)), width)
    if one.false_passes:
        words = counted(one.false_passes, "false pass", "false passes")
        yield from wrap(Text.styled(f"{words}: passed, but you say it should fail", "status-failed"), width)
    yield Text()
    yield from _matrix(one, width)


def _figures(one: JudgeAgreement) -> Iterator[Text]:
    share = one.share
    yield Text.styled(f"agrees with you in {share.passed} of {share.total}", "strong")
    yield Text(f"  {percent(share.rate or 0.0)} (95%: {interval(share)})  ")
    if one.pairs.kappa is None:
        yield Text.styled("no kappa: only one label was used", "muted")
    else:
        yield Text.styled(f"kappa {one.pairs.kappa:.2f}", "strong")
        if one.few:
            yield Text.styled("  too few to rely on", "status-not-evaluated")


def _matrix(one: JudgeAgreement, width: int) -> Iterator[Line]:
    """Yield the confusion matrix. Rows are the user's labels, columns the judge's; agreement is on the diagonal."""
    labels = one.labels
    cell = _CELL if _SIDE + _CELL * len(labels) <= width else _NARROW_CELL
    columns = "".join(_word(label, cell).rjust(cell) for label in labels)
    yield cut_line(Text.styled(" you ↓  judge → ".ljust(_SIDE) + columns, "label"), width)
    for user in labels:
        face = JUDGED.get(user)
        row: Line = pad(Text.styled(f" {_word(user, _SIDE - 2)}", face.variable if face else ""), _SIDE)
        for judge in labels:
            count = one.pairs.counts.get((user, judge), 0)
            style = "muted" if not count else "strong" if user == judge else "status-failed"
            row.append((str(count) if count else "·").rjust(cell), style)
        yield cut_line(row, width)


def _word(label: str, width: int) -> str:
    face = JUDGED.get(label)
    word = f"{face.glyph} {face.word}" if face else one_line(label, limit=20)
    return cut(word, width - 1)

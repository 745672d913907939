"""The user's triage as lines beside the verdicts, and the agreement of judges with it."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from workbench.editing.triage.entry import Entry, JudgeAgreement, Standing, choice_label, left_out_text, standing
from workbench.results.cells import cut
from workbench.results.document import Subject
from workbench.results.faces import JUDGED, TRIAGED, TRIAGED_EARLIER
from workbench.results.lines import Line, View, cut_line, pad, part, rule, wrap
from workbench.results.repeat_texts import interval
from workbench.text.counting import counted, cut_score, percent
from workbench.text.safe_text import one_line, plain

_STYLE = TRIAGED.variable
_PARTS = {"": "verdicts", "sentence": "sentences", "rubric": "rubrics", "verdict": "verdicts over turns"}
_SIDE = 16
_CELL = 14


def triage_chip(subject: Subject) -> Line:
    """Return the newest triage of the current verdict, else of an earlier one, else an empty line: `⚑ judge wrong`."""
    entries = [entry for entry in subject.triage if entry.triage]
    found = [entry for entry in entries if _standing(entry, subject) == "now"] or entries
    if not found:
        return Text()
    entry = max(found, key=lambda entry: entry.at)
    face = TRIAGED if _standing(entry, subject) == "now" else TRIAGED_EARLIER
    return Text.styled(f"{face.glyph} {_label(entry)}", _STYLE)


def triage_lines(subject: Subject, view: View) -> Iterator[Line]:
    """Yield all triage of the case and its criteria, the newest first."""
    entries = sorted((entry for entry in subject.triage if entry.triage), key=lambda entry: entry.at, reverse=True)
    for entry in entries:
        standing = _standing(entry, subject)
        face = TRIAGED if standing == "now" else TRIAGED_EARLIER
        words = Text.styled(f"{face.glyph} {_label(entry)}", _STYLE)
        about = one_line(entry.about.criterion, limit=80) or "the case"
        words.append(f"  {about}: ", "label")
        judged = entry.judged
        score = "" if judged.score is None else f" {cut_score(judged.score)}"
        who = f" by {one_line(judged.judge, limit=40)}" if judged.judge else ""
        mine = f", you say {_word(entry.says)}" if entry.says else ""
        words.append(f"judged {_word(judged.says)}{score}{who}{mine}")
        if standing != "now":
            words.append(f"  triaged for an {standing}", "status-not-evaluated")
        words.append(f"  {one_line(entry.at, limit=30)}", "muted")
        if entry.note:
            words.append(f"\n{plain(entry.note)}")
        yield from part("triage", words, view)
    if entries:
        yield Text()


def overridden(subject: Subject, criterion: str, turn: int | None, kind: str, name: str) -> Line:
    """Return the user's label for a judge's answer: `⚑ you: supported`, or an empty line."""
    for entry in subject.triage:
        about = entry.about
        place = about.criterion, about.turn, about.part, about.name
        if place == (criterion, turn, kind, name) and _standing(entry, subject) == "now":
            note = f": {one_line(entry.note, limit=120)}" if entry.note else ""
            return Text.styled(f"  {TRIAGED.glyph} you: {_word(entry.says)}{note}", _STYLE)
    return Text()


def _word(label: str) -> str:
    face = JUDGED.get(label)
    return face.word if face else one_line(label, limit=40) or "nothing"


def _standing(entry: Entry, subject: Subject) -> Standing:
    """Return "now" if the entry is about the current answer and verdict, or nothing was answered, else its subject."""
    if subject.record is None or not subject.record.answer:
        return "now"
    return standing(entry, subject.record)


def _label(entry: Entry) -> str:
    return one_line(choice_label(entry.triage), limit=40)


def agreement_lines(found: Iterable[JudgeAgreement], width: int, left_out: int = 0) -> Iterator[Line]:
    """Yield the page of judge agreement. `left_out` is the number of verdicts given by cause, which do not count."""
    found = list(found)
    if left_out:
        yield from wrap(Text.styled(left_out_text(left_out), "muted"), width)
        yield Text()
    if not found:
        how = "Press t to triage the verdicts of failed and passed cases."
        more = "Labels of sentences and rubrics that you confirm or override count too."
        for words in ("No verdicts triaged yet.", f"{how} {more}"):
            yield from wrap(Text.styled(words, "muted"), width)
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
    if one.kappa is None:
        yield Text.styled("no kappa: only one label was used", "muted")
    else:
        yield Text.styled(f"kappa {cut_score(one.kappa, 2, 2)}", "strong")
        if one.few:
            yield Text.styled("  too few to rely on", "status-not-evaluated")


def _matrix(one: JudgeAgreement, width: int) -> Iterator[Line]:
    """Yield the confusion matrix. Rows are the user's labels, and columns the judge's. Agreement is on the diagonal."""
    labels = one.labels
    cell = _CELL if _SIDE + _CELL * len(labels) <= width else 7
    columns = "".join(_label_word(label, cell).rjust(cell) for label in labels)
    yield cut_line(Text.styled(" you ↓  judge → ".ljust(_SIDE) + columns, "label"), width)
    for user in labels:
        face = JUDGED.get(user)
        row: Line = pad(Text.styled(f" {_label_word(user, _SIDE - 2)}", face.variable if face else ""), _SIDE)
        for judge in labels:
            count = one.counts.get((user, judge), 0)
            style = "muted" if not count else "strong" if user == judge else "status-failed"
            row.append((str(count) if count else "·").rjust(cell), style)
        yield cut_line(row, width)


def _label_word(label: str, width: int) -> str:
    face = JUDGED.get(label)
    word = f"{face.glyph} {face.word}" if face else one_line(label, limit=20)
    return cut(word, width - 1)

"""The user's triage, as lines beside the verdicts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from workbench.results.document import Subject
from workbench.results.faces import JUDGED, TRIAGED, TRIAGED_EARLIER
from workbench.results.lines import Line
from workbench.results.rows import View, part
from workbench.text.counting import cut_score
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from workbench.editing.triage.entry import Entry, Standing

_STYLE = TRIAGED.variable


def triage_chip(subject: Subject) -> Line:
    """Return `⚑ judge wrong`, the last triage of the case, or an empty line without any."""
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
        words.append(_beside(entry))
        if standing != "now":
            words.append(f"  triaged for an {standing}", "status-not-evaluated")
        words.append(f"  {one_line(entry.at, limit=30)}", "muted")
        if entry.note:
            words.append(f"\n{plain(entry.note)}")
        yield from part("triage", words, view)
    if entries:
        yield Text()


def overridden(subject: Subject, criterion: str, turn: int | None, kind: str, name: str) -> Line:
    """Return the user's label for this answer, such as `⚑ you: supported`, or an empty line."""
    for entry in subject.triage:
        about = entry.about
        place = about.criterion, about.turn, about.part, about.name
        if place == (criterion, turn, kind, name) and _standing(entry, subject) == "now":
            note = f": {one_line(entry.note, limit=120)}" if entry.note else ""
            return Text.styled(f"  {TRIAGED.glyph} you: {_word(entry.says)}{note}", _STYLE)
    return Text()


def _beside(entry: "Entry") -> str:
    """Return the judge's verdict and the user's."""
    judged = entry.judged
    score = "" if judged.score is None else f" {cut_score(judged.score)}"
    who = f" by {one_line(judged.judge, limit=40)}" if judged.judge else ""
    mine = f", you say {_word(entry.says)}" if entry.says else ""
    return f"judged {_word(judged.says)}{score}{who}{mine}"


def _word(label: str) -> str:
    face = JUDGED.get(label)
    return face.word if face else one_line(label, limit=40) or "nothing"


def _standing(entry: "Entry", subject: Subject) -> "Standing":
    """Return whether the entry is about the answer and verdict shown, or about earlier ones.

    Without an answer, it is always about those shown.
    """
    if subject.record is None or not subject.record.answer:
        return "now"
    from workbench.editing.triage.entry import standing

    return standing(entry, subject.record)


def _label(entry: "Entry") -> str:
    from workbench.editing.triage.entry import choice_label

    return one_line(choice_label(entry.triage), limit=40)

"""Sections that other packages add to the panes of a case."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rich.text import Text

from workbench.files.plugins import ExtensionPoint, Guarded, Trouble
from workbench.results.document import Document, Subject
from workbench.results.lines import View, hang, hang_text, heading, safe, shortened, wrap
from workbench.store.execution import CaseRecord
from workbench.text.safe_text import one_line

PaneName: TypeAlias = Literal["Evidence", "Judges", "Trace", "History"]
_SECONDS = 1.0
"""Time limit of a section, in seconds. A section that takes longer is not called again."""
_LONGEST = 20_000
"""Maximum number of characters of a section."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section at the end of a pane.

    `text` gets a case that runs or has run, and returns the text of the section or its lines. They need not be safe. A
    section without text is left out.
    """

    name: str
    pane: PaneName
    title: str
    text: Callable[[CaseRecord], str | Iterable[str]]


SECTIONS: Final = ExtensionPoint("sections", Section)
_made: dict[str, tuple[CaseRecord, object, str, str]] = {}
"""The last text of each section: the case, its stage, the text, and the reason of a failure."""
_too_slow: dict[str, str] = {}


def add_plugin_sections(document: Document, pane: PaneName, subject: Subject, view: View) -> None:
    """Add the sections of other packages to the end of a pane. A failing section is shown as an error."""
    record = subject.record
    if record is None or record.state == "queued":
        return
    for name in SECTIONS.others():
        section = SECTIONS.get(name)
        if section is None or section.pane != pane:
            continue
        text, failure = _text(section, record, subject.stage)
        if text.strip() or failure:
            document.gap()
            document.add([heading(one_line(section.title, limit=60), view.width)])
            if failure:
                trouble = one_line(str(Trouble(SECTIONS.extension(section.name), failure)), limit=400)
                document.add(hang_text(safe(" ! ", "status-error"), safe(trouble), view.width, 3))
                continue
            lines = wrap(safe(text.strip("\n")), max(view.width - 2, 10))
            document.add(hang(Text(), lines if view.full else shortened(lines, 12, view.width - 2), 1))


def _text(section: Section, record: CaseRecord, stage: object) -> tuple[str, str]:
    """Return the text of a section for a case, and the reason if it failed."""
    if failure := _too_slow.get(section.name):
        return "", failure
    known = _made.get(section.name)
    if known is None or known[0] is not record or known[1] != stage:
        call = Guarded(f"section {section.name}", lambda: _read(section.text(record)), _SECONDS, "it")
        call.wait()
        if call.is_alive():
            _too_slow[section.name] = call.failure
        known = _made[section.name] = (record, stage, call.found or "", call.failure)
    return known[2], known[3]


def _read(text: str | Iterable[str]) -> str:
    """Return the text of a section as one string, cut after `_LONGEST` characters. Its lines may be endless.

    Raises:
        TypeError: a line is not a string.
    """
    found: list[str] = []
    left = _LONGEST
    for line in [text] if isinstance(text, str) else text:
        if not isinstance(line, str):
            raise TypeError(f"its text is of type {type(line).__name__}, not str")
        found.append(line[:left])
        left -= len(line) + 1
        if left <= 0:
            break
    return "\n".join(found)

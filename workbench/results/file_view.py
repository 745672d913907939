"""An evalset file in the detail pane: its agent, its criteria and all its problems."""

import re
from collections.abc import Iterable, Iterator

from rich.text import Text

from workbench.agents.workspace import EvalsetEntry
from workbench.files.faults import Fault
from workbench.results.document import Document, Subject
from workbench.results.lines import Line, hang_text, safe
from workbench.results.reference import criteria_part
from workbench.results.rows import View, part

_IN_CASE = re.compile(r"eval_cases\[([0-9]+)\]")


def file_document(entry: EvalsetEntry | None, view: View, found: Iterable[Fault] = ()) -> Document:
    """Return an evalset as a document, its faults first, with the problems that `check` found."""
    document = Document()
    if entry is None:
        return document
    document.add(fault_lines(file_faults(entry, found), entry, view))
    document.gap()
    document.add(file_lines(entry, view))
    return document


def file_faults(entry: EvalsetEntry, found: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults of an evalset and of its criteria, with the problems that `check` found."""
    return list(dict.fromkeys([*entry.document.faults, *entry.criteria.config.faults, *found]))


def file_lines(entry: EvalsetEntry, view: View) -> Iterator[Line]:
    """Yield the name, the file, the agent and the criteria of an evalset."""
    evalset = entry.document
    yield from part("evalset", safe(evalset.name or evalset.eval_set_id, "strong"), view)
    if evalset.description:
        yield from part("", safe(evalset.description), view)
    yield from part("file", safe(entry.relative), view)
    yield from part("cases", Text(f"{len(evalset.cases):,}"), view)
    if entry.agent is not None:
        because = safe(f", because {entry.agent_reason}", "muted")
        yield from part("agent", Text.assemble(safe(entry.agent.name, "strong"), because), view)
    else:
        yield from part("agent", Text.assemble(("none: ", "status-error"), safe(entry.agent_reason)), view)
    yield from criteria_part(entry, view)


def case_faults(subject: Subject, view: View) -> Iterator[Line]:
    """Yield the faults of the file that concern one case, and the problems that `check` found."""
    entry, case = subject.entry, subject.case
    if entry is None or case is None:
        return
    mine = [fault for fault in entry.document.faults if _case_of(fault, entry) == case.eval_id]
    yield from fault_lines(dict.fromkeys([*mine, *subject.found]), entry, view)


def _case_of(fault: Fault, entry: EvalsetEntry) -> str | None:
    """Return the id of the case with this fault.

    The search starts from the faults, because a file may have 50,000 cases but few faults.
    """
    place = _IN_CASE.match(fault.json_path)
    cases = entry.document.cases
    return cases[int(place[1])].eval_id if place is not None and int(place[1]) < len(cases) else None


def fault_lines(faults: Iterable[Fault], entry: EvalsetEntry, view: View) -> Iterator[Line]:
    """Yield every fault, errors first: its message, place and hint."""
    width = view.width - 1
    listed = [fault for fault in faults if fault.severity != "note"]  # The page names the evalset's agent already.
    for fault in sorted(listed, key=lambda fault: (fault.severity != "error", fault.line, fault.column)):
        error = fault.severity == "error"
        style = "status-error" if error else "status-not-evaluated"
        file = entry.relative if fault.file == entry.file else fault.file.name
        sign = Text.styled(" ! " if error else " ~ ", style)
        kind = Text() if error else Text.styled("warning: ", style)
        yield from hang_text(sign, Text.assemble(kind, safe(fault.message, "strong" if error else "")), width, 3)
        yield from hang_text(Text(), safe(fault.where(file), "muted"), width, 3)
        if fault.hint:
            yield from hang_text(Text.styled(" → ", "hint"), safe(fault.hint), width, 3)

"""The title of a case: its names, its verdict, and notes that qualify the verdict."""

from collections.abc import Iterable
from dataclasses import replace

from rich.text import Text

from workbench.events.events import FaultHandling
from workbench.results.cells import cell_len, cut_name
from workbench.results.document import Subject
from workbench.results.faces import FACES, FLAKY, FROZEN, OTHER_CRITERIA, STALE, badge, score_text, stale_mark
from workbench.results.frozen import frozen_brief
from workbench.results.judged import mark
from workbench.results.lines import Line, cut_line, joined, pieces
from workbench.results.triage import triage_chip
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

_ARROW = " › "
_GAP = "  "


def title_parts(subject: Subject) -> list[str]:
    """Return the names of agent, evalset and case as far as known, safe and uncut. `#2` is the second repeat."""
    record, entry, case = subject.record, subject.entry, subject.case
    if record is not None:
        ref = record.ref
        repeat = f" #{ref.repeat}" if ref.repeat > 1 and subject.repeats is None else ""
        if record.planned.fault is not None:
            from workbench.results.faults import fault_title  # Few runs inject faults.

            repeat = f" [{fault_title(record.planned)}]"
        names = [ref.agent, ref.eval_set_id, f"{ref.eval_id}{repeat}" if ref.eval_id else ref.evalset_file]
    else:
        names = [] if entry is None else [entry.agent.name if entry.agent else "", entry.document.eval_set_id]
        names += [] if case is None else [case.eval_id]
    return [one_line(name) for name in names if name]


def title(subject: Subject, width: int, others: Iterable[str] = ()) -> str:
    """Return `agent › evalset › case` in at most `width` cells, or "" if no name is known. The case is cut last.

    Names that would become too short are left out, the agent first. A cut case stays different from `others`, by
    default the cases of its evalset.
    """
    parts = title_parts(subject)
    if not parts:
        return ""
    while len(parts) > 1 and sum(map(cell_len, parts)) + len(_ARROW) * (len(parts) - 1) > width:
        room = width - cell_len(parts[-1]) - len(_ARROW) * (len(parts) - 1)
        share = room // (len(parts) - 1)
        if share >= 10:
            return _ARROW.join([*(cut_name(part, share) for part in parts[:-1]), parts[-1]])
        parts = parts[1:]
    return _ARROW.join(parts) if len(parts) > 1 else _cut_case(subject, parts[0], width, others)


def _cut_case(subject: Subject, name: str, width: int, others: Iterable[str]) -> str:
    """Cut the name of a case. A repeat or fault behind its ID is cut only if it takes more than half of the width."""
    entry, record = subject.entry, subject.record
    after = name.removeprefix(one_line(record.ref.eval_id)) if record is not None and record.ref.eval_id else ""
    if cell_len(after) * 2 > width:
        return cut_name(name, width)
    if not others and entry is not None:
        others = (one_line(case.eval_id) for case in entry.document.cases[:5_000])
    return cut_name(name.removesuffix(after), width - cell_len(after), others) + after


def ending(subject: Subject, room: int) -> Line:
    """Return the end of the title: `stale: prompt.txt  ❅ FROZEN ✗ FAIL`, or `❅✗` if there is little room."""
    badges = verdict(subject)
    parts = title_parts(subject)
    if badges and parts and cell_len(parts[-1]) + len(_GAP) + badges.cell_len > room:
        badges = short_verdict(badges)
    if not subject.stale or subject.record is None:
        return badges
    left = room - badges.cell_len - cell_len(parts[-1]) - (16 if len(parts) > 1 else 0) - len(_GAP)
    mark = stale_mark(subject.stale, max(left, cell_len(f"{STALE.glyph}{STALE.word}")))
    return Text.assemble((mark, STALE.variable), _GAP, badges)


def short_verdict(badges: Line) -> Line:
    """Return only the glyphs of a verdict: `❅✗`."""
    return Text.assemble(*((text.strip()[:1], style) for text, style in pieces(badges)))


def verdict(subject: Subject) -> Line:
    """Return the verdict of a subject, if any: `✗ FAIL`, `❅ FROZEN ✗ FAIL`, or `❅ FROZEN ≠ DRIFTED ✗ FAIL`."""
    found, record = _verdict(subject), subject.record
    if record is None or record.frozen is None or not found:
        return found
    drifted = Text.styled(" ≠ DRIFTED", "diff-differs") if record.frozen.drifted else Text()
    return Text.assemble((f"{FROZEN.glyph} {FROZEN.word.upper()}", FROZEN.variable), drifted, " ", found)


def _verdict(subject: Subject) -> Line:
    if subject.repeats is not None and subject.repeats.flaky and not subject.repeats.unfinished:
        return Text.styled(f"{FLAKY.glyph} {FLAKY.word.upper()}", FLAKY.variable)
    if subject.record is not None:
        handling = subject.record.handling
        if handling is None:
            return badge(subject.record.state)
        # An execution with a fault has no verdict.
        from workbench.results.faults import WORDS
        from workbench.run.fault_outcome import STATUS  # Few runs inject faults.

        face = FACES[STATUS[handling.outcome]]
        return Text.styled(f"{face.glyph} {WORDS[handling.outcome].upper()}", face.variable)
    if subject.case is not None:
        return Text() if subject.loading else badge("not_run")
    if subject.entry is not None and subject.entry.document.broken:
        return badge("error")
    return Text()


def notes(subject: Subject, width: int, *, replayed: bool = True) -> Line:
    """Return a line, perhaps empty, of notes on the verdicts of a case, or why there are none."""
    record = subject.record
    if record is None:
        return cut_line(_not_run(subject), width)
    if record.handling is not None:
        return _handled(record, record.handling, width)
    if record.read_error:
        return cut_line(Text.styled(f"! {one_line(record.read_error)}", "status-error"), width)
    # The other panes show one of several repeats.
    parts: list[Line] = [] if subject.repeats is None else [Text.styled(f"repeat {record.ref.repeat}", "muted")]
    parts += [chip] if (chip := triage_chip(subject)) else []
    if record.frozen is not None and replayed:
        missed = record.error is not None and record.error.kind == "frozen_miss"  # Then the error says it.
        frozen = replace(record.frozen, misses=0) if missed else record.frozen
        parts.append(Text.styled(f"{FROZEN.glyph} {frozen_brief(frozen)}", FROZEN.variable))
    if record.planned.criteria_changed:
        parts.append(mark(OTHER_CRITERIA))
    if words := _undecided(record):
        parts.append(Text.styled(words, "muted"))
    return cut_line(joined(parts, "   ", ""), width)


def _undecided(record: CaseRecord) -> str:
    """Return why a case without an error has no verdict, or ""."""
    if any(result.status not in ("informational", "not_applicable") for result in record.metrics.values()):
        return ""
    shown = [result for result in record.metrics.values() if result.name in record.criteria and score_text(result)]
    if shown:
        scores = ", ".join(f"{one_line(result.name, limit=60)} {score_text(result)}" for result in shown)
        return f"{scores}: no threshold, so no verdict"
    words = {"queued": "waiting to run; expected:", "running": "running, no scores yet"}
    return words.get(record.state, "" if record.error is not None else "nothing was scored")


def _handled(record: CaseRecord, handling: FaultHandling, width: int) -> Line:
    """Return the agent's reaction to an injected fault, with the reason, or with the fault if an error follows."""
    from workbench.results.faults import fault_words, handling_text
    from workbench.run.fault_outcome import STATUS  # Few runs inject faults.

    outcome, _, reason = handling_text(handling).partition(": ")
    if record.error is not None and record.planned.fault is not None:
        reason = fault_words(record.planned.fault)
    style = FACES[STATUS[handling.outcome]].variable
    return cut_line(Text.assemble((outcome, style), f": {reason}" if reason else ""), width)


def _not_run(subject: Subject) -> Line:
    if subject.case is not None:
        return Text.styled("results are still loading" if subject.loading else "not run yet; expected:", "muted")
    faults = subject.entry.document.faults if subject.entry is not None else ()
    if errors := sum(fault.severity == "error" for fault in faults):
        return Text.styled(f"{counted(errors, 'error')} in the file: its cases cannot run", "status-error")
    return Text.styled(f"{counted(len(faults), 'warning')} in the file", "status-not-evaluated") if faults else Text()

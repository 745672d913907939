"""Documents that compare two runs: an overview, and a single case with the causes of its change."""

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from workbench.freshness.changed_files import ChangedFile
from workbench.results.document import Document
from workbench.results.gate import Gate, change_text, drop_text, notes, p_text, rate_text
from workbench.results.lines import Line, View, flow, hang, hang_text, heading, remark, safe
from workbench.results.plain_lines import commit_words
from workbench.results.run_comparison import ChangedCase, ChangeKind, ComparedCase, Comparison
from workbench.results.side_by_side import add_causes, add_compared, diff_lines, file_lines
from workbench.store.execution import CaseRecord
from workbench.text import counting
from workbench.text.safe_text import one_line

CHANGES: dict[ChangeKind, tuple[str, str, str]] = {
    "regression": ("regression", "regressions", "status-failed"),
    "fix": ("fix", "fixes", "status-passed"),
    "other": ("other verdict", "other verdicts", "status-not-evaluated"),
    "unfinished": ("without a verdict", "without a verdict", "status-not-evaluated"),
    "score": ("score change", "score changes", "label"),
}
"""Singular, plural and style of each kind of change."""
_NAMED = 50
"""Maximum number of cases that are named."""


def overview(found: Comparison, gate: Gate, names: tuple[str, str], view: View) -> Document:
    """Return the overview of two runs: counts, pass rates and differences. `names` are safe names of both runs."""
    document = Document()
    for sign, name, run in (("− ", names[0], found.before), ("+ ", names[1], found.after)):
        style = "diff-missing" if sign == "− " else "diff-extra"
        counts = [counting.counted_status(status, count) for status, count in run.counts().items() if count]
        commit = commit_words(run.git.get("commit"), run.git.get("dirty"))
        at = (f"  commit {commit}" if commit else "", "muted")
        about = Text.assemble((f"{name}  ", "strong"), ", ".join(counts) or "no cases", at)
        document.add(hang_text(Text.styled(f" {sign}", style), about, view.width - 1, 3))
    document.gap()
    document.add(hang(Text(" "), flow(_counts(found), max(view.width - 1, 10), "   "), 1))
    _add_rates(document, gate, view)
    document.gap()
    document.add([heading("differences between the runs", view.width)])
    for words in found.differences:
        document.add(hang_text(Text(" "), safe(words), view.width, 1))
    if not found.differences and not found.files:
        document.add(remark("No recorded file, version, model or commit differs.", view))
    document.add(file_lines(found.files, view))
    for word, alone in (("only in the earlier run", found.only_before), ("only in the later run", found.only_after)):
        if alone:
            document.gap()
            document.add([heading(f"{len(alone):,} {word}", view.width)])
            # Each case once, with its number of executions.
            times = Counter(replace(one.ref, repeat=1) for one in alone)
            cases = [f"{ref.eval_id} × {many}" if many > 1 else ref.eval_id for ref, many in times.items()]
            listed = ", ".join(cases[:_NAMED]) + (" …" if len(cases) > _NAMED else "")
            document.add(hang_text(Text(" "), safe(listed), view.width, 1))
    return document


def _add_rates(document: Document, gate: Gate, view: View) -> None:
    """Add the change of the pass rate and its p-value. Add nothing if every case passed as often as before."""
    rates = gate.rates
    if not rates.better and not rates.worse:
        return
    style = {"better": "status-passed", "worse": "status-failed", "unclear": "label"}[rates.result]
    parts = (
        safe(f"pass rate {rate_text(rates.before)} → {rate_text(rates.after)}"),
        safe(change_text(rates)),
        Text.styled(f"{rates.result} ({p_text(rates.p)})", style),
    )
    document.add(hang(Text(" "), flow(parts, max(view.width - 1, 10), "   "), 1))
    for note in notes(gate):
        document.add(remark(note, view))
    if gate.left_out:
        names = counting.few((one_line(ref.label) for ref in gate.left_out), 5)
        document.add(remark(f"not compared: {names}", view))


def one_case(
    case: ChangedCase,
    gate: Gate,
    files: Sequence[ChangedFile],
    records: tuple[CaseRecord, CaseRecord] | str | None,
    view: View,
) -> Document:
    """Return the page of a case: the chance of its drop, the causes with changed lines, then both executions.

    `records` is None while both executions are loading, or the raw reason why they cannot be read.
    """
    document = Document()
    word, _, style = CHANGES[case.change]
    ref = case.ref
    name = " › ".join(part for part in (ref.agent, ref.eval_set_id, ref.eval_id) if part)
    label = safe(f"  {name}{f' #{ref.repeat}' if ref.repeat != 1 else ''}".replace("\n", " "), "strong")
    document.add(hang_text(Text(), Text.assemble((word, style), label), view.width, 1))
    drop = next((drop for drop in gate.drops if drop.ref == replace(ref, repeat=1)), None)
    if drop is not None and case.change == "regression":
        document.add(remark(drop_text(drop, "→"), view))
    own = tuple(file for file in files if file.agent == ref.agent)
    kinds = add_causes(document, ComparedCase(case, own), view)
    if records is None or isinstance(records, str):
        document.gap()
        document.add(remark("loading transcripts" if records is None else one_line(records), view))
        return document
    if "expected" in kinds:
        document.add(_texts("expected", [record.expected for record in records], view))
    if kinds & {"criteria", "judge"}:
        document.add(_texts("criteria", [record.criteria for record in records], view))
    document.gap()
    document.add([heading("before and after", view.width)])
    add_compared(document, *records, view)
    return document


def counted(change: ChangeKind, number: int) -> str:
    """Return `1 regression` or `2 regressions`."""
    word, plural, _ = CHANGES[change]
    return counting.counted(number, word, plural)


def _counts(found: Comparison) -> Iterator[Line]:
    for change, (_, _, style) in CHANGES.items():
        number = found.count(change)
        if number or change in ("regression", "fix"):
            yield Text.styled(counted(change, number), style if number else "muted")
    yield Text.styled(f"{found.unchanged:,} unchanged", "muted")
    if found.unlike:
        yield Text.styled(f"{len(found.unlike):,} not frozen in the same way, not compared", "muted")


def _texts(name: str, values: Sequence[Any], view: View) -> Iterator[Line]:
    """Yield `name`, then the differing lines of two values as JSON."""
    before, after = (json.dumps(value, indent=1, ensure_ascii=False, default=str).splitlines() for value in values)
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    yield Text()
    yield Text.styled(f" {name}", "label")
    if lines:
        yield from diff_lines((line for line in lines if not line.startswith("@")), view, 3)
    else:
        yield from hang_text(Text(), Text.styled("unchanged", "muted"), view.width, 3)

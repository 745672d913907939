"""The printed output of a run for people: cases with their reasons, and the summary at the end."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from workbench.events.events import Thawed
from workbench.files.prices import Prices, case_cost, money, total
from workbench.results.causes import CauseGroup, cause_text, failing_groups, is_shared
from workbench.results.cells import cell_len, cut, cut_name
from workbench.results.explain import criteria_text, error_hints, matched_by_location, reasons
from workbench.results.faces import COUNTED
from workbench.results.frozen import change_texts, frozen_total, thawed_total
from workbench.results.plain_lines import VERDICTS, brief_marks, case_label, label
from workbench.results.repeat_texts import sentence
from workbench.results.repeats import CaseRepeats, summarize_all
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, CaseState, Execution
from workbench.store.reasons import judge_in
from workbench.store.store import Store
from workbench.text.counting import counted, counted_status, few
from workbench.text.json_values import string
from workbench.text.safe_text import one_line

_SECTIONS: tuple[tuple[CaseState, str, str], ...] = (
    ("error", "Errors:", "bold magenta"),
    ("failed", "Failures:", "bold red"),
    ("not_evaluated", "Not evaluated:", "bold yellow"),
    ("cancelled", "Cancelled:", "bold"),
)
STYLES: dict[CaseState, str] = {
    "passed": "green",
    "failed": "red",
    "error": "magenta",
    "not_evaluated": "yellow",
    "cancelled": "dim",
}
"""Styles of statuses on a terminal."""
_NO_PRICES = Prices()
_CASES_NAMED = 20
_CAUSES_NAMED = 12


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A line of safe text.

    `indent` is the number of blanks before the line and its wrapped continuation. `style` is the style on a terminal.
    `spans` are styles of parts of the text: start, end, style.
    """

    text: str
    indent: int = 0
    style: str = ""
    spans: tuple[tuple[int, int, str], ...] = ()

    def __str__(self) -> str:
        return " " * self.indent + self.text


def brief_lines(
    record: CaseRecord, root: str, width: int, before: dict[tuple[str, ...], str], others: Iterable[str] = ()
) -> Iterator[SummaryLine]:
    """Yield a finished case for a terminal of this width: one line, then reasons if it did not pass or had a fault.

    `before` maps reasons that were already shown to their first case. These reasons are not repeated. New reasons are
    added to `before`. `others` are the IDs of other cases, from which a cut name stays different.
    """
    word = f"{VERDICTS[record.state]:5} "
    behind = "".join(f"  {mark}" for mark in brief_marks(record))
    room = width - len(word)
    name = _short(record, max(room - cell_len(behind), room // 2), others)
    text = cut(word + name + behind, width)
    styles = ((0, len(word), f"bold {STYLES.get(record.state, '')}"), (len(word + name), len(text), "dim"))
    yield SummaryLine(text, spans=styles)
    if record.state == "passed" and record.handling is None:
        return
    lines = tuple(_reasons(record, root))
    key = tuple(map(str, lines))
    if key in before:
        yield SummaryLine(cut(f"same as {before[key]}", width - 4), 4, "dim")
        return
    before[key] = _short(record, width - 12, others)
    yield from lines


def _short(record: Execution, width: int, others: Iterable[str]) -> str:
    """Return the name of a case in at most `width` cells. The names of agent and evalset are cut first."""
    name = case_label(record)
    if cell_len(name) <= width:
        return name
    own = name.removeprefix(one_line(f"{record.ref.agent}/{record.ref.eval_set_id}/"))
    return f"…/{cut_name(own, width - 2, others)}"


def summary_lines(
    store: Store, prices: Prices = _NO_PRICES, *, detailed: bool = False, listed: bool = False
) -> Iterator[SummaryLine]:
    """Yield the whole summary, line by line.

    `detailed` adds criteria, their sources and judges. `listed` means that the reasons were printed before. Then
    only cancelled cases have them.
    """
    records = list(store.current_records())
    for state, title, style in _SECTIONS:
        found = [record for record in records if record.state == state]
        if found and (state == "cancelled" or not listed):
            yield SummaryLine("")
            yield SummaryLine(title, style=style)
            yield from _problems(found, store.run.root)
    if detailed:
        yield SummaryLine("")
        yield from _criteria(records)
        yield from _judges(records)
    yield from _agents(records)
    yield from _repeats(store)
    yield from _causes(records)
    yield from _faults(store, records)
    # Most runs compare nothing.
    thawed = [(record, read_details(record).thawed) for record in records if record.drifted is not None]
    yield from _drift(thawed)
    yield SummaryLine("")
    if store.run.scored_from:
        yield SummaryLine(f"Transcripts from run {one_line(store.run.scored_from)}.")
    if frozen := frozen_total(record.frozen for record in records):
        yield SummaryLine(frozen)
    if drift := thawed_total(found for _, found in thawed):
        yield SummaryLine(drift)
    if judged := judged_text(records, prices, rescored=bool(store.run.scored_from)):
        yield SummaryLine(judged)
    if store.run.cut_short_by is not None:
        yield SummaryLine(f"-x: no case started after {label(store.run.cut_short_by)}.")
    yield SummaryLine(count_text(store), style="bold")


def _drift(thawed: Iterable[tuple[Execution, Thawed | None]]) -> Iterator[SummaryLine]:
    """Yield the differences between the calls of each case and its recording."""
    changed = [(record, found) for record, found in thawed if found is not None and found.changes]
    if changed:
        yield SummaryLine("")
        yield SummaryLine("Drift from recordings:", style="bold")
    for record, found in changed:
        yield SummaryLine(case_label(record), 2)
        for text in change_texts(found):
            yield SummaryLine(text, 4)


def judged_text(records: Sequence[Execution], prices: Prices, *, rescored: bool) -> str:
    """Return the use of judges and simulated users, or "" if there was none.

    Examples are `Judged with 15 calls, 12,345 tokens in, 678 out, $0.01` and `Judged with 0 calls, 6 simulator calls`.
    `rescored` says that stored transcripts were scored again, so their simulated users cost nothing.
    """
    calls = sum(record.usage.judge_calls for record in records)
    kept = sum(record.usage.judge_calls_cached for record in records)
    if not calls and not kept:
        return ""
    # Imported here, because most runs need no judge.
    from workbench.judges.base import question_usage

    asking = [] if rescored else [one for one in records if one.usage.judge_calls or one.usage.judge_calls_cached]
    users = [question_usage(step.question) for record in asking for step in read_details(record).simulated]
    asked, again = sum(one.judge_calls for one in users), sum(one.judge_calls_cached for one in users)
    calls, kept = max(calls - asked, 0), max(kept - again, 0)
    more = f" ({counted(kept, 'more answer' if calls else 'answer')} cached)" if kept else ""
    parts = [f"Judged with {counted(calls, 'call')}{more}"]
    if asked or again:
        parts.append(counted(asked, "simulator call") + (f" ({again:,} cached)" if again else ""))
    read = sum(record.usage.judge_input_tokens for record in records)
    written = sum(record.usage.judge_output_tokens for record in records)
    if read or written:
        parts.append(f"{counted(read, 'token')} in, {written:,} out")
    if prices:
        details = map(read_details, records)
        cost = total(
            case_cost(record.metrics.values(), () if rescored else record.simulated, record.handling, prices)
            for record in details
        )
        unknown = "cost unknown: a judge has no price or reports no tokens"
        parts.append(unknown if cost is None else money(cost, prices.currency))
    return ", ".join(parts)


def count_text(store: Store) -> str:
    """Return the cases, or injected faults, by outcome: `12 cases in 4.2 s: 9 passed, 2 failed, 1 error`."""
    counts = store.counts()
    total = counts.total()
    parts = [counted_status(state, counts[state], store.failed_with_errors()) for state in COUNTED if counts[state]]
    interrupted = "interrupted, " if store.run.interrupted else ""
    if store.run.has_faults:
        from workbench.results.faults import counts_text

        found = counts_text(store.current_records())
        return f"{interrupted}{counted(total, 'fault')} in {store.run.duration_seconds:.1f} s: {found or 'nothing ran'}"
    cases = counted(total, "case")
    return f"{interrupted}{cases} in {store.run.duration_seconds:.1f} s: {', '.join(parts) or 'nothing ran'}"


def _faults(store: Store, records: Sequence[Execution]) -> Iterator[SummaryLine]:
    """Yield the table of tool faults if the run injected any."""
    if not store.run.has_faults:
        return
    from workbench.results.faults import table_lines

    yield SummaryLine("")
    yield SummaryLine("Tool faults:", style="bold")
    styles = {state: style for state, _, style in _SECTIONS}
    for text, cells in table_lines(records):
        spans = tuple((start, end, styles.get(status, "green")) for start, end, status in cells)
        yield SummaryLine(text, 2, "" if spans else "bold", spans)


def _repeats(store: Store) -> Iterator[SummaryLine]:
    """Yield the pass rate of each case if any case ran more than once."""
    cases = repeats_of(store)
    if cases:
        flaky = sum(case.flaky for case in cases)
        yield SummaryLine("")
        yield SummaryLine(f"Repeats: {flaky} of {len(cases)} flaky", style="bold")
    for names, result, is_flaky in repeat_lines(cases):
        for name in names:
            yield SummaryLine(name, 2, "bold")
        yield SummaryLine(result, 4, "yellow" if is_flaky else "")


def _causes(records: Sequence[Execution]) -> Iterator[SummaryLine]:
    """Yield the number of failing cases by cause, if any two cases share a cause."""
    groups = failing_groups(records)
    if not any(map(is_shared, groups)):
        return
    yield SummaryLine("")
    yield SummaryLine("Why cases fail:", style="bold")
    width = len(f"{len(groups[0].cases):,}")
    for group in groups[:_CAUSES_NAMED]:
        yield SummaryLine(f"{len(group.cases):>{width},}  {cause_text(group.cause)}", 2)
    if rest := groups[_CAUSES_NAMED:]:
        yield SummaryLine(f"{sum(len(group.cases) for group in rest):>{width},}  {counted(len(rest), 'more cause')}", 2)


def _problems(records: Sequence[Execution], root: str) -> Iterator[SummaryLine]:
    """Yield the cases with their reasons. Cases with the same cause are grouped."""
    groups = failing_groups(records)
    if not groups:
        yield from _cases(_by_reasons(records, root))
    for group in groups:
        yield from _shared(group, root) if is_shared(group) else _cases(_by_reasons(group.cases, root))


def _shared(group: CauseGroup[Execution], root: str) -> Iterator[SummaryLine]:
    """Yield the first cases of a shared cause, with a heading unless their reasons are the same."""
    names: dict[str, list[Execution]] = {}
    for record in group.cases:
        names.setdefault(_name(record), []).append(record)
    named = [record for records in itertools.islice(names.values(), _CASES_NAMED) for record in records]
    cases = _by_reasons(named, root)
    more = len(names) - _CASES_NAMED
    if len(cases) == 1:
        yield from _cases(cases, more)
        return
    yield SummaryLine(f"{cause_text(group.cause)}: {counted(len(names), 'case')}", 2, "bold")
    for line in _cases(cases):
        yield replace(line, indent=line.indent + 2, style="")
    if more > 0:
        yield SummaryLine(f"and {more:,} more", 4)


_Cases: TypeAlias = dict[tuple[SummaryLine, ...], dict[str, list[int]]]
"""The numbers of repeats by reasons, then by name of the case."""


def _by_reasons(records: Iterable[Execution], root: str) -> _Cases:
    found: _Cases = {}
    for record in records:
        repeat = 1 if record.planned.fault is not None else record.ref.repeat
        found.setdefault(tuple(_reasons(read_details(record), root)), {}).setdefault(_name(record), []).append(repeat)
    return found


def _cases(cases: _Cases, more: int = 0) -> Iterator[SummaryLine]:
    """Yield cases followed by their common reasons. `more` is the number of cases that the caller left out."""
    for lines, names in cases.items():
        for name, repeats in list(names.items())[:_CASES_NAMED]:
            which = ""
            if repeats != [1]:
                which = f" ({'repeat' if len(repeats) < 2 else 'repeats'} {', '.join(map(str, repeats))})"
            yield SummaryLine(name + which, 2, "bold")
        left_out = max(len(names) - _CASES_NAMED, 0) + max(more, 0)
        if left_out:
            yield SummaryLine(f"and {left_out:,} more", 2)
        yield from lines


def _name(record: Execution) -> str:
    return case_label(record) if record.planned.fault is not None else label(replace(record.ref, repeat=1))


def _reasons(record: CaseRecord, root: str) -> Iterator[SummaryLine]:
    free = [one.name for one in record.metrics.values() if one.name in record.custom_metrics and one.score is not None]
    nothing = (
        f"no threshold for {few(free)}, so no verdict" if free else "no criterion has anything to judge in this case"
    )
    for reason in reasons(record) or [nothing]:
        yield SummaryLine(reason, 4)
    if record.error is not None:
        for line in error_hints(record.error, root):
            yield SummaryLine(line, 6)


def _criteria(records: Iterable[Execution]) -> Iterator[SummaryLine]:
    """Yield the criteria of each evalset and their source. Evalsets with the same criteria share a line."""
    criteria: dict[str, str] = {}
    sources: dict[str, str] = {}
    for record in records:
        file = record.ref.evalset_file
        sources[file] = record.planned.criteria_source
        criteria[file] = criteria.get(file) or criteria_text(read_details(record))
    files: dict[tuple[str, str], list[str]] = {}
    for file, source in sources.items():
        files.setdefault((criteria[file], source), []).append(file)
    if files:
        yield SummaryLine("Criteria:", style="bold")
    for (text, source), names in files.items():
        why = one_line(source, limit=1000)
        yield SummaryLine(f"{text} ({why})" if text else why, 2)
        yield SummaryLine(few(map(one_line, names), 5), 4, "dim")


def _agents(records: Iterable[Execution]) -> Iterator[SummaryLine]:
    """Yield the agents that were matched to their evalsets by location."""
    sentences = matched_by_location(records)
    if sentences:
        yield SummaryLine("")
        yield SummaryLine("Agents:", style="bold")
    for agent in sentences:
        yield SummaryLine(agent, 2)


def _judges(records: Iterable[Execution]) -> Iterator[SummaryLine]:
    """Yield the judges with their criteria, custom addresses and notes."""
    criteria: dict[str, list[str]] = {}
    for record in records:
        judged = [(judge_in(result.details), result.name) for result in record.scores.values()]
        if record.handling is not None:
            judged.append((judge_in(record.handling.details), "tool faults"))
        for judge, name in judged:
            if judge:
                fields = [one_line(string(judge.get(key)), limit=300) for key in ("model", "base_url", "note")]
                who = f"{fields[0]} at {fields[1]}" if fields[1] else fields[0]
                names = criteria.setdefault(f"{who}: {fields[2]}" if fields[2] else who, [])
                if name not in names:
                    names.append(name)
    if criteria:
        yield SummaryLine("Judges:", style="bold")
    for who, names in criteria.items():
        yield SummaryLine(who, 2)
        yield SummaryLine(", ".join(one_line(name, limit=100) for name in names), 4, "dim")


def repeats_of(store: Store) -> list[CaseRepeats]:
    """Return the repeats of each repeated case: flaky cases first, then low pass rates, cancelled cases last."""

    def order(case: CaseRepeats) -> tuple[bool, float]:
        if case.cancelled == len(case.records):
            return True, 2.0
        return not case.flaky, case.rate.rate if case.rate.rate is not None else -1.0

    return sorted(summarize_all(store.current_records(), store.run.until_sure), key=order)


def repeat_lines(cases: Sequence[CaseRepeats]) -> Iterator[tuple[list[str], str, bool]]:
    """Yield the first names of cases with the same result, that result, and whether the cases are flaky."""
    groups: dict[str, list[CaseRepeats]] = {}
    for case in cases:
        groups.setdefault(sentence(case), []).append(case)
    for result, found in groups.items():
        names = [label(case.ref) for case in found[:_CASES_NAMED]]
        if len(found) > _CASES_NAMED:
            names.append(f"and {len(found) - _CASES_NAMED} more")
        yield names, result, found[0].flaky

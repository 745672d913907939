"""Export of a run as one self-contained HTML page: no network, foreign text escaped, one script that sorts a table.

Each case has the lines and styles that the terminal shows. Cases that did not pass are open.
"""

from collections.abc import Iterator
from typing import Final

from workbench.authoring.triage.agreement import agreements, left_out
from workbench.counting import tenths
from workbench.details import read_details
from workbench.execution import CaseRecord, Execution
from workbench.exporting.case_table import SCRIPT_DIGEST, case_table
from workbench.exporting.charts import (
    agreement_tables,
    bars,
    distribution,
    most_expensive,
    most_tokens,
    rates_chart,
    slowest,
)
from workbench.exporting.exporter import Exporter
from workbench.exporting.html_text import class_name, html_body, html_line
from workbench.exporting.run_context import RunContext
from workbench.exporting.style import STYLE
from workbench.injection.matrix import WAYS
from workbench.injection.outcome import STATUS
from workbench.prices import Prices, money
from workbench.rendering.causes import by_cause, cause_text, failing_groups, is_shared
from workbench.rendering.costs import NO_PRICES, costs, not_known
from workbench.rendering.explain import other_criteria, reasons, score_text
from workbench.rendering.fault_table import cell_text, fault_rows, handling_text
from workbench.rendering.frozen import frozen_mark, frozen_total
from workbench.rendering.lines import Line
from workbench.rendering.overview.criteria import scores
from workbench.rendering.placed import placed_texts
from workbench.rendering.plain_case import case_lines
from workbench.rendering.plain_lines import case_label, label, marks
from workbench.rendering.plain_summary import count_text
from workbench.rendering.repeat_lines import by_need, repeats_of
from workbench.rendering.thawed import drift_texts, thawed_total
from workbench.rendering.trace.pane import trace_lines
from workbench.repeats.repeat_texts import cells
from workbench.scores import cut_score
from workbench.store import Store

_WIDTH = 110
_POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_DIGEST}'; base-uri 'none'; form-action 'none'"
)
_MOST_CHANGES = 5
_MAX_OPEN = 50
_MAX_FULL = 300
"""With more cases, those that passed are shortened. A browser needs 10 s for 1,000 full ones."""


def build_html(store: Store, context: RunContext | None = None, prices: Prices | None = None) -> bytes:
    """Return the newest run as a page, UTF-8. With `prices`, it lists the most expensive cases."""
    return "".join(_page(store, context or RunContext(), prices)).encode("utf-8", "replace")


def _page(store: Store, context: RunContext, prices: Prices | None) -> Iterator[str]:
    run = store.run
    title = html_line(count_text(store))
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{title}</title><style>{STYLE}</style></head>\n<body><main><h1>{title}</h1>\n"
    yield f"<p>Run {html_line(run.run_id)}, {html_line(run.started)}, in {html_line(run.root)}</p>\n"
    if run.scored_from:
        yield f"<p>Scored again from {html_line(run.scored_from)}; no agent ran</p>\n"
    records = list(store.current_records())
    totals = (
        frozen_total(record.frozen for record in records),
        thawed_total(read_details(record).thawed for record in records if record.drifted is not None),
    )
    yield from (f"<p><b>{html_line(text)}</b></p>\n" for text in totals if text)
    for notice in store.notices:
        if notice.forecast:
            continue
        yield f'<p class="notice-{class_name(notice.level)}">{html_line(notice.message)}</p>\n'
    yield from _causes(records)
    if run.has_faults:
        yield from _faults(records)
    else:
        yield from _criteria(records)
        yield from _repeats(store)
        yield '<div class="charts">'
        yield from rates_chart(context.trend)
        yield from bars("Slowest", slowest(records), lambda amount: f"{amount:.2f} s")
        yield from _expensive(records, prices)
        yield from bars("Most tokens", most_tokens(records), lambda amount: f"{amount:,.0f}")
        yield "</div>\n"
    # Cases that need attention come first, by cause.
    order = {"failed": 0, "error": 0, "not_evaluated": 1, "cancelled": 2, "passed": 3}
    opened = 0
    shortened = len(records) > _MAX_FULL and any(record.state == "passed" for record in records)
    ordered = sorted(by_cause(records), key=lambda record: order.get(record.state, 0))
    anchors = {id(record): f"case-{number}" for number, record in enumerate(ordered, 1)}
    if records:
        yield from case_table(ordered, anchors)
        yield "<h2>Cases</h2>\n"
    if shortened:
        yield f"<p>More than {_MAX_FULL} cases: only scores are shown for passed cases.</p>\n"
    for record in ordered:
        anchor = anchors[id(record)]
        is_open = record.state not in ("passed", "cancelled") and opened < _MAX_OPEN
        opened += is_open
        if shortened and record.state == "passed":
            yield f'<p id="{anchor}">{_head(read_details(record), context)}</p>\n'
        else:
            yield from _case(read_details(record), context, anchor, is_open=is_open)
    entries = list(context.entries())
    yield from agreement_tables(agreements(entries), left_out(entries))
    yield "</main></body></html>\n"


def _causes(records: list[Execution]) -> Iterator[str]:
    """Yield the table of causes, if any two cases have the same."""
    groups = failing_groups(records)
    if any(map(is_shared, groups)):
        yield "<h2>Why cases fail</h2>\n<table><thead><tr><th>cause<th>cases</tr></thead><tbody>\n"
        for group in groups:
            yield f"<tr><td>{html_line(cause_text(group.cause))}<td>{len(group.cases):,}</tr>\n"
        yield "</tbody></table>\n"


def _faults(records: list[Execution]) -> Iterator[str]:
    """Yield the table of tool faults."""
    yield "<h2>Tool faults</h2>\n<table><thead><tr><th>agent › tool"
    yield "".join(f"<th>{html_line(way.title)}" for way in WAYS.values())
    yield "</tr></thead><tbody>\n"
    for row in fault_rows(records):
        yield f"<tr><td>{html_line(row.agent or '?')} › {html_line(row.tool)}"
        for cell in row.cells.values():
            worst = STATUS[cell[0].outcome] if cell else "cancelled"
            yield f'<td class="{class_name("status-" + worst.replace("_", "-"))}">{html_line(cell_text(cell))}'
        yield "</tr>\n"
    yield "</tbody></table>\n"


def _criteria(records: list[Execution]) -> Iterator[str]:
    """Yield the table of criteria: cases passed, mean score and distribution, one vote per case."""
    found = scores(records)
    if not found:
        return
    yield "<h2>Criteria</h2>\n<table><thead><tr>"
    yield "<th>criterion<th>cases passed<th>failed<th>no verdict<th>mean score<th>scores from 0 to 1"
    yield "</tr></thead><tbody>\n"
    for one in found:
        mean, drawn = (cut_score(one.mean), distribution(one)) if one.cases else ("", "")
        cells = f"<td>{tenths(one.passed)}<td>{tenths(one.failed)}<td>{one.undecided}<td>{mean}<td>{drawn}"
        yield f"<tr><td>{html_line(one.name)}{cells}</tr>\n"
    yield "</tbody></table>\n"


def _expensive(records: list[Execution], prices: Prices | None) -> Iterator[str]:
    """Yield the most expensive cases, and a note about unknown costs."""
    found = costs(map(read_details, records), prices)
    shares = most_expensive(records, found) if found is not None else []
    note = NO_PRICES if found is None else not_known(found)
    if found is not None:
        yield from bars("Most expensive", shares, lambda amount: money(amount, found.currency), note)
    elif records:
        yield from bars("Most expensive", (), str, note)


def _repeats(store: Store) -> Iterator[str]:
    """Yield the table of pass rates, if any case was executed more than once."""
    cases = sorted(repeats_of(store), key=by_need)
    if not cases:
        return
    yield "<h2>Repeats</h2>\n<table><thead><tr>"
    yield "<th>case<th>passed<th>rate (95 %)<th>pass^k<th>varies<th></tr></thead><tbody>\n"
    for case in cases:
        passed, rate, hat, mark, more = cells(case)
        style = "status-not-evaluated" if case.flaky else ""
        marked = f'<b class="{style}">{html_line(mark)}</b>' if style else html_line(mark)
        row = f"<td>{html_line(passed)}<td>{html_line(rate)}<td>{html_line(hat)}<td>{marked}<td>{html_line(more)}"
        yield f"<tr><td>{html_line(label(case.ref))}{row}</tr>\n"
    yield "</tbody></table>\n"


def _case(record: CaseRecord, context: RunContext, anchor: str, *, is_open: bool) -> Iterator[str]:
    yield f'<details{" open" if is_open else ""} id="{anchor}"><summary>{_head(record, context)}</summary><pre>'
    for line in case_lines(record, _WIDTH):
        yield _line(line) + "\n"
    yield "</pre>"
    yield from _trace(record)
    yield "</details>\n"


def _head(record: CaseRecord, context: RunContext) -> str:
    """Return a case's line: its verdict, the reasons and the user's triage."""
    state = record.status
    why = "; ".join(_passes(record) if state == "passed" else reasons(record))
    style = class_name(state.replace("_", "-"))
    head = f'<b class="status-{style}">{html_line(state.replace("_", " "))}</b> {html_line(case_label(record))}'
    remarks = [f'<b class="said">{html_line(mark)}</b>'] if (mark := frozen_mark(record.frozen)) else []
    remarks += [f'<b class="said">{html_line(text)}</b>' for text in drift_texts(record.thawed, _MOST_CHANGES)]
    remarks += [f'<b class="said">{html_line(text)}</b>' for text in placed_texts(record)]
    if changed := other_criteria(record):
        remarks.append(f'<b class="said">≠ other criteria: {html_line(changed)}</b>')
    for entry in context.triage_of(record):
        note = f": {entry.note}" if entry.note else ""
        about = f" ({entry.about.criterion})" if entry.about.criterion else ""
        remarks.append(f'<b class="said">⚑ {html_line(entry.triage + about + note)}</b>')
    return f"{head} <i>{html_line(why)}</i>{''.join(remarks)}"


def _passes(record: CaseRecord) -> Iterator[str]:
    if record.handling is not None:
        yield handling_text(record.handling)
        return
    for result in record.metrics.values():
        if result.status == "passed" and result.score is not None:
            suffix = "".join(f" ({word})" for word in marks(record, result))
            yield f"{result.name} {score_text(result)}{suffix}"


def _trace(record: CaseRecord) -> Iterator[str]:
    """Yield the folded trace, if one was recorded."""
    lines = list(trace_lines(record, _WIDTH))
    if lines:
        yield "<details><summary>Trace: durations of each step</summary><pre>"
        yield from (_line(line) + "\n" for line in lines)
        yield "</pre></details>"


def _line(line: Line) -> str:
    """Return a line as HTML. Its segments are already safe for a terminal."""
    return "".join(
        f'<span class="{class_name(style)}">{html_body(text)}</span>' if style else html_body(text)
        for text, style in line
    ).rstrip()


EXPORTER: Final = Exporter(
    "html",
    "one self-contained page that loads nothing",
    ".html",
    lambda run: (build_html(run.store, run.besides, run.prices),),
)

"""Export of a run as a self-contained HTML page.

The page loads nothing and escapes foreign text. Each case has the lines and styles of the terminal. The first 50 cases
that did not pass are open, except cancelled ones. Charts are inline SVG, each with a title that gives the same figures
as text. A click on a title sorts the table of cases. The page's policy allows exactly one script, by its digest, which
only moves rows. Without scripts, the table is in the order of the cases, and its titles are disabled.
"""

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Final

from workbench.editing.triage.entry import JudgeAgreement, agreements, left_out, left_out_text
from workbench.exporting.exporter import Exporter, RunContext
from workbench.files.prices import Prices
from workbench.results.case_table import (
    CASE,
    COST,
    TIME,
    TOKENS,
    Cell,
    Rank,
    cost_cell,
    criterion_cell,
    criterion_columns,
    seconds_cell,
    tokens_cell,
)
from workbench.results.causes import by_cause, cause_text, failing_groups, is_shared
from workbench.results.costs import Costs, costs, not_known
from workbench.results.explain import other_criteria, reasons, score_text
from workbench.results.faces import FACES
from workbench.results.faults import cell_text, fault_rows, handling_text, outcomes
from workbench.results.frozen import drift_texts, frozen_mark, frozen_total, thawed_total
from workbench.results.lines import Line, pieces
from workbench.results.machines import placed_texts
from workbench.results.panes import case_lines
from workbench.results.plain_lines import case_label, label, marks
from workbench.results.plain_summary import count_text, repeats_of
from workbench.results.repeat_texts import cells
from workbench.results.tally import BINS, STEPS, Scores, scores
from workbench.results.trace import trace_lines
from workbench.run.fault_outcome import STATUS, WAYS
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.history.run_list import RunRate, Trend
from workbench.store.store import Store
from workbench.text.counting import compared, counted, cut_score, cut_to_tenths, percent
from workbench.text.safe_text import one_line


def html_line(text: str) -> str:
    """Return any text as one line that is safe for a terminal and for HTML."""
    return escape(one_line(text, limit=1000))


def class_name(style: str) -> str:
    """Return the name of a style as the value of an HTML class attribute."""
    return escape(" ".join(style.replace(".", " ").split()))


_STEP = 6
_HEIGHT = 26
_RATES_HEIGHT = 60
_RATE_WIDTH = 10


def distribution(one: Scores) -> str:
    """Return a chart of a criterion's scores from 0 to 1, with the threshold as a line."""
    most = max(one.bins) or 1
    mean, threshold = cut_score(one.mean), ""
    if one.threshold is not None:
        mean, threshold = compared(one.mean, one.threshold)
    words = f"{one.name}: {cut_to_tenths(one.passed)} of {counted(one.cases, 'case')} passed, mean {mean}"
    drawn = []
    for number, count in enumerate(one.bins):
        if count:
            height = max(round(count / most * (_HEIGHT - 2)), 2)
            style = _colour(number, one.threshold)
            x = number * _STEP
            drawn.append(f'<rect x="{x}" y="{_HEIGHT - height}" width="{_STEP - 1}" height="{height}"{style}/>')
    if one.threshold is not None:
        words += f", threshold {threshold}"
        place = min(max(one.threshold, 0), 1) * STEPS * _STEP - 0.5
        drawn.append(f'<line x1="{place:g}" x2="{place:g}" y1="0" y2="{_HEIGHT}"/>')
    return _svg(BINS * _STEP, _HEIGHT, words, drawn)


def _colour(number: int, threshold: float | None) -> str:
    """Return the class of a bin: all of its scores reach the threshold, or none does. Else it has no class."""
    limit = math.nan if threshold is None else threshold * STEPS
    if number >= limit - 1e-9:
        return ' class="good"'
    return ' class="bad"' if number + 1 <= limit + 1e-9 or STEPS == number < limit else ""


def rates_chart(trend: Trend) -> Iterator[str]:
    """Yield a chart of the pass rates of runs of the same cases, the newest on the right, or why there is none."""
    yield '<section class="whole"><h2>Pass rate over runs</h2>\n'
    words = trend_words(trend)
    if trend.is_comparable:
        drawn = list(map(_column, range(len(trend.rates)), trend.rates))
        yield _svg(len(trend.rates) * _RATE_WIDTH, _RATES_HEIGHT, words, drawn, framed=True)
    yield f"<p>{html_line(words)}</p></section>\n"


def trend_words(trend: Trend) -> str:
    """Return a trend in words: `12 runs of the same 60 cases  now 75% (45 of 60)  best 80%`, or why there is none."""
    cases = counted(trend.wanted, "case")
    few = f"left out: {counted(trend.left_out, 'run')} with under half of these cases" if trend.left_out else ""
    if not trend.is_comparable:
        if not trend.rates and not few:
            return "no complete run of these cases is stored"
        return "; ".join(filter(None, ("nothing to compare: no two runs of the same cases", few)))
    last, best = trend.rates[-1], max(one.rate for one in trend.rates)
    same = f"{trend.cases:,} of {cases}" if trend.cases < trend.wanted else f"the same {cases.removeprefix('1 ')}"
    text = f"{counted(len(trend.rates), 'run')} of {same}  now {rate_words(last)}  best {percent(best)}"
    return f"{text}  {few}" if few else text


def rate_words(one: RunRate) -> str:
    """Return a pass rate with its cases: `75% (45 of 60)`. Repeated cases can give tenths, which are cut."""
    return f"{percent(one.rate)} ({cut_to_tenths(one.passed)} of {one.total:,})"


def _column(number: int, one: RunRate) -> str:
    height = max(round(one.rate * _RATES_HEIGHT), 1)
    style = "good" if one.passed == one.total else "bad" if not one.passed else "some"
    return (
        f'<rect x="{number * _RATE_WIDTH}" y="{_RATES_HEIGHT - height}" width="{_RATE_WIDTH - 2}"'
        f' height="{height}" class="{style}"><title>{html_line(f"{one.run_id}: {rate_words(one)}")}</title></rect>'
    )


def agreement_tables(found: Sequence[JudgeAgreement], left_out: int = 0) -> Iterator[str]:
    """Yield how often each judge agrees with the user's triage, with a confusion matrix.

    `left_out` is the number of verdicts given by cause, which do not count. Yield nothing if `found` is
    empty and `left_out` is 0.
    """
    if not found and not left_out:
        return
    yield "<section><h2>Agreement of judges with the user</h2>\n"
    if left_out:
        yield f"<p>{html_line(left_out_text(left_out))}</p>\n"
    for one in found:
        name = one.criterion or "the case’s verdict"
        kappa = "" if one.kappa is None else f", kappa {cut_score(one.kappa, 2, 2)}"
        few = " (few)" if one.few else ""
        who = f" by {one.judge}" if one.judge else ""
        kind = f", {one.part} labels" if one.part else ""
        words = f"{name}{who}{kind}: agrees in {one.share.passed} of {one.share.total}{kappa}{few}"
        yield f"<p>{html_line(words)}</p><table><tr><th>user ↓ judge →"
        yield "".join(f"<th>{html_line(name)}" for name in one.labels) + "</tr>\n"
        for user in one.labels:
            counts = (one.counts.get((user, judge), 0) for judge in one.labels)
            yield f"<tr><td>{html_line(user)}" + "".join(f"<td>{count or '·'}" for count in counts) + "</tr>\n"
        yield "</table>\n"
    yield "</section>\n"


def _svg(width: int, height: int, words: str, drawn: Sequence[str], *, framed: bool = False) -> str:
    style = ' class="framed"' if framed else ""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {size} role="img"{style}><title>{html_line(words)}</title>{"".join(drawn)}</svg>'


SCRIPT = """
for (const button of document.querySelectorAll("th button")) {
  button.disabled = false;
  button.addEventListener("click", () => {
    const title = button.closest("th"), body = title.closest("table").tBodies[0];
    const place = title.cellIndex, largest = "largest" in title.dataset;
    const back = title.hasAttribute("aria-sort") && !("back" in title.dataset);
    for (const other of title.parentNode.cells) {
      other.removeAttribute("aria-sort");
      delete other.dataset.back;
    }
    if (back) title.dataset.back = "";
    title.setAttribute("aria-sort", back !== largest ? "descending" : "ascending");
    const sign = back !== largest ? -1 : 1;
    const rows = Array.from(body.rows, (row) => {
      const [rank, value] = (row.cells[place].dataset.order || "1 0").split(" ").map(Number);
      return [rank, sign * value, row];
    });
    rows.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
    body.append(...rows.map((row) => row[2]));
  });
}
"""
SCRIPT_DIGEST = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
"""The digest of the script. The page's policy allows scripts with this digest only."""


def case_table(records: Sequence[Execution], anchors: Mapping[int, str], spent: Costs | None) -> Iterator[str]:
    """Yield the table. `anchors` maps the `id()` of each record to the HTML anchor of its case.

    Without `spent`, it has no costs.
    """
    costs = () if spent is None else (replace(COST, title=f"cost {spent.currency}"),)
    columns = (*criterion_columns((), records), *costs, TOKENS, TIME)
    yield '<h2>Table</h2>\n<div class="cases" tabindex="0"><table><thead><tr>'
    for column in (CASE, *columns):
        largest = " data-largest" if column.largest_first else ""
        name = f' title="{html_line(column.name)}"' if column.name else ""
        title = html_line(column.title + column.marks)
        yield f'<th scope="col"{largest}{name}><button type="button" disabled>{title}</button>'
    yield "</tr></thead><tbody>\n"
    for record in records:
        face = FACES[record.status]
        style = class_name(f"status-{record.status.replace('_', '-')}")
        name = f'<a href="#{anchors[id(record)]}">{html_line(case_label(record))}</a>'
        yield f'<tr><td data-order="1 {face.rank}"><b class="{style}">{face.glyph}</b> {name}'
        for column in columns:
            match column.kind:
                case "cost" if spent is not None:
                    yield _cell(cost_cell(record, spent.amounts.get(record.ref), known=True))
                case "tokens":
                    yield _cell(tokens_cell(record))
                case "time":
                    yield _cell(seconds_cell(record))
                case _:
                    # A case without any score ended before its criteria were judged.
                    yield _cell(criterion_cell(record, column.name, configured=not record.scores))
        yield "</tr>\n"
    yield f"</tbody></table></div>\n<script>{SCRIPT}</script>\n"


def _cell(cell: Cell) -> str:
    value = cell.value if cell.rank is Rank.VALUE and isinstance(cell.value, int | float) else 0.0
    value = max(min(value, 1e300), -1e300) if value == value else 0.0
    coloured = cell.status not in (None, "passed", "informational")
    style = f' class="{class_name(FACES[cell.status].variable)}"' if coloured and cell.status else ""
    return f'<td{style} data-order="{int(cell.rank)} {value!r}">{html_line(cell.text)}'


STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --muted: #59636e; --line: #d1d9e0; --good: #1a7f37;
  --bad: #c11c28; --odd: #8a5a00; --info: #0958c8; --panel: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --muted: #9198a1; --line: #3d444d;
  --good: #3fb950; --bad: #ff7b72; --odd: #d8a030; --info: #6cb0ff; --panel: #151b23; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; } p { margin: .2rem 0; color: var(--muted); overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; display: block; width: fit-content; max-width: 100%;
  overflow-x: auto; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; background: var(--panel); }
summary { border-radius: 6px; padding: .45rem .8rem; cursor: pointer; overflow-wrap: anywhere; }
summary:focus-visible { outline: 2px solid var(--info); } summary b { font-weight: 600; }
summary i { font-style: normal; color: var(--muted); margin-left: .6rem; }
pre { content-visibility: auto; contain-intrinsic-size: auto 20rem; margin: 0; padding: .7rem .8rem; overflow-x: auto;
  border-top: 1px solid var(--line); background: var(--paper);
  font: 13px/1.45 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; border-radius: 0 0 6px 6px; }
.heading, .strong, [class$="-strong"] { font-weight: 600; }
.muted, .hint, .rule, .fold, .label { color: var(--muted); } .name { color: var(--info); }
[class^="status-passed"] { color: var(--good); }
[class^="status-failed"], .diff-missing, .mark-missing, .notice-error { color: var(--bad); }
.mark-missing, .mark-extra { font-weight: 600; text-decoration: underline; }
.diff-extra, .mark-extra { color: var(--good); }
[class^="status-error"], .diff-moved, .notice-warning { color: var(--odd); }
[class^="status-not-evaluated"] { color: var(--odd); } [class^="status-cancelled"] { color: var(--muted); }
.said { display: block; color: var(--info); font-weight: 600; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1rem 0 .3rem; } h2 + table { margin-top: 0; }
td:first-child { overflow-wrap: anywhere; min-width: 9rem; } td + td { white-space: nowrap; }
.charts { display: flex; flex-wrap: wrap; gap: 0 1.5rem; margin-bottom: 1rem; }
section { max-width: 100%; } .whole { flex-basis: 100%; }
section table { margin: 0; font-size: .9em; }
svg { vertical-align: middle; max-width: 100%; } rect { fill: var(--muted); } rect.some { fill: var(--info); }
rect.good { fill: var(--good); } rect.bad { fill: var(--bad); } svg line { stroke: var(--ink); stroke-dasharray: 3 2; }
svg.framed { border-bottom: 1px solid var(--muted); }
.cases { max-height: 36rem; overflow: auto; margin: 0 0 1rem; } .cases table { display: table; margin: 0; }
.cases thead th { position: sticky; top: 0; background: var(--paper); }
.cases a { color: inherit; text-decoration: none; }
.cases a:hover, .cases a:focus-visible { text-decoration: underline; }
.cases td:first-child { min-width: 12rem; max-width: 26rem; }
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th button:disabled { cursor: auto; } th button:focus-visible { outline: 2px solid var(--info); }
th[aria-sort] button { color: var(--info); } th[aria-sort="ascending"] button::after { content: " ▴"; }
th[aria-sort="descending"] button::after { content: " ▾"; } :target { outline: 2px solid var(--info); }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .6rem; } th, td { padding: .2rem .4rem; }
  pre { font-size: 11px; padding: .5rem; } section svg { max-width: 6rem; } svg.framed { max-width: 100%; }
  table { font-size: .85em; } }
@media print { .cases { max-height: none; overflow: visible; }
  details:not([open]), tr, section { break-inside: avoid; } h2, summary { break-after: avoid; }
  details details:not([open]) { display: none; } body { margin: 0; max-width: none; font-size: 11px; }
  pre { content-visibility: visible; font-size: 8px; overflow: visible; white-space: pre-wrap; }
  rect, b, span { print-color-adjust: exact; } }
"""


_WIDTH = 110
_POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_DIGEST}'; base-uri 'none'; form-action 'none'"
)
_MAX_FULL = 300
"""Maximum number of cases for which passed cases are shown in full. A browser needs 10 s for 1,000 full cases."""


def build_html(store: Store, context: RunContext | None = None, prices: Prices | None = None) -> bytes:
    """Return the newest run as an HTML page in UTF-8. With `prices`, its table has costs."""
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
        yield "</div>\n"
    # Cases that need attention come first, by cause.
    order = {"failed": 0, "error": 0, "not_evaluated": 1, "cancelled": 2, "passed": 3}
    opened = 0
    shortened = len(records) > _MAX_FULL and any(record.state == "passed" for record in records)
    ordered = sorted(by_cause(records), key=lambda record: order.get(record.state, 0))
    anchors = {id(record): f"case-{number}" for number, record in enumerate(ordered, 1)}
    if records:
        spent = costs(map(read_details, records), prices)
        yield from case_table(ordered, anchors, spent)
        if spent is not None and (why := not_known(spent)):
            yield f"<p>Cost {html_line(why)}</p>\n"
        yield "<h2>Cases</h2>\n"
    if shortened:
        yield f"<p>More than {_MAX_FULL} cases: only scores are shown for passed cases.</p>\n"
    for record in ordered:
        anchor = anchors[id(record)]
        is_open = record.state not in ("passed", "cancelled") and opened < 50
        opened += is_open
        if shortened and record.state == "passed":
            yield f'<p id="{anchor}">{_head(read_details(record), context)}</p>\n'
        else:
            yield from _case(read_details(record), context, anchor, is_open=is_open)
    entries = [entry for entries in context.triage.values() for entry in entries]
    yield from agreement_tables(agreements(entries), left_out(entries))
    yield "</main></body></html>\n"


def _causes(records: list[Execution]) -> Iterator[str]:
    """Yield the table of causes if any two cases share a cause."""
    groups = failing_groups(records)
    if any(map(is_shared, groups)):
        yield "<h2>Why cases fail</h2>\n<table><thead><tr><th>cause<th>cases</tr></thead><tbody>\n"
        for group in groups:
            yield f"<tr><td>{html_line(cause_text(group.cause))}<td>{len(group.cases):,}</tr>\n"
        yield "</tbody></table>\n"


def _faults(records: list[Execution]) -> Iterator[str]:
    yield "<h2>Tool faults</h2>\n<table><thead><tr><th>agent › tool"
    yield "".join(f"<th>{html_line(way.title)}" for way in WAYS.values())
    yield "</tr></thead><tbody>\n"
    for row in fault_rows(records):
        yield f"<tr><td>{html_line(row.agent or '?')} › {html_line(row.tool)}"
        for cell in map(outcomes, row.cells.values()):
            worst = STATUS[cell[0].outcome] if cell else "cancelled"
            yield f'<td class="{class_name("status-" + worst.replace("_", "-"))}">{html_line(cell_text(cell))}'
        yield "</tr>\n"
    yield "</tbody></table>\n"


def _criteria(records: list[Execution]) -> Iterator[str]:
    """Yield the table of criteria: passed cases, mean score and distribution. Each case counts once."""
    found = scores(records)
    if not found:
        return
    yield "<h2>Criteria</h2>\n<table><thead><tr>"
    yield "<th>criterion<th>cases passed<th>failed<th>no verdict<th>mean score<th>scores from 0 to 1"
    yield "</tr></thead><tbody>\n"
    for one in found:
        mean, drawn = (cut_score(one.mean), distribution(one)) if one.cases else ("", "")
        passed, failed = cut_to_tenths(one.passed), cut_to_tenths(one.failed)
        cells = f"<td>{passed}<td>{failed}<td>{one.undecided}<td>{mean}<td>{drawn}"
        yield f"<tr><td>{html_line(one.name)}{cells}</tr>\n"
    yield "</tbody></table>\n"


def _repeats(store: Store) -> Iterator[str]:
    """Yield the table of pass rates if any case ran more than once."""
    cases = repeats_of(store)
    if not cases:
        return
    yield "<h2>Repeats</h2>\n<table><thead><tr>"
    yield "<th>case<th>passed<th>rate (95%)<th>pass^k<th>varies<th></tr></thead><tbody>\n"
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
    if trace := list(trace_lines(record, _WIDTH)):
        yield "<details><summary>Trace: the duration of each step</summary><pre>"
        yield from (_line(line) + "\n" for line in trace)
        yield "</pre></details>"
    yield "</details>\n"


def _head(record: CaseRecord, context: RunContext) -> str:
    """Return the heading of a case: its verdict, the reasons and the user's triage."""
    state = record.status
    why = "; ".join(_passes(record) if state == "passed" else reasons(record))
    style = class_name(state.replace("_", "-"))
    head = f'<b class="status-{style}">{html_line(state.replace("_", " "))}</b> {html_line(case_label(record))}'
    remarks = [*filter(None, [frozen_mark(record.frozen)]), *drift_texts(record.thawed), *placed_texts(record)]
    said = list(map(html_line, remarks))
    if changed := other_criteria(record):
        said.append(f"≠ other criteria: {html_line(changed)}")
    for entry in context.triage_of(record):
        note = f": {entry.note}" if entry.note else ""
        about = f" ({entry.about.criterion})" if entry.about.criterion else ""
        said.append(f"⚑ {html_line(entry.triage + about + note)}")
    told = "".join(f'<b class="said">{text}</b>' for text in said)
    return f"{head} <i>{html_line(why)}</i>{told}"


def _passes(record: CaseRecord) -> Iterator[str]:
    if record.handling is not None:
        yield handling_text(record.handling)
        return
    for result in record.metrics.values():
        if result.status == "passed" and result.score is not None:
            suffix = "".join(f" ({word})" for word in marks(record, result))
            yield f"{result.name} {score_text(result)}{suffix}"


def _line(line: Line) -> str:
    """Return a styled line, which is already safe for a terminal, as HTML."""
    return "".join(
        f'<span class="{class_name(style)}">{escape(text)}</span>' if style else escape(text)
        for text, style in pieces(line)
    ).rstrip()


EXPORTER: Final = Exporter(
    "html",
    "one self-contained page that loads nothing",
    ".html",
    lambda run: (build_html(run.store, run.context, run.prices),),
)

"""The charts of the HTML page, and its table of cases and criteria. A click on a title sorts the table.

Charts are inline SVG. Each has a title that gives the same figures as text. The page's policy allows exactly one
script, by its digest. The script only moves rows: no text of the page becomes code or HTML. Without scripts, the table
is in the order of the cases, and its titles are disabled.
"""

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

from workbench.editing.triage.entry import JudgeAgreement, left_out_text
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
from workbench.results.costs import Costs
from workbench.results.faces import FACES
from workbench.results.plain_lines import case_label
from workbench.results.tally import BINS, STEPS, Scores
from workbench.store.execution import Execution
from workbench.store.history.run_list import RunRate, Trend
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

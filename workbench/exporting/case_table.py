"""The table of cases and criteria in the HTML page. A click on a title sorts it.

The page's policy allows exactly this script, by its digest. It only moves rows: no text of the page becomes code or
HTML. Without scripts, the table is in the order of the cases, and its titles cannot be pressed.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence

from workbench.execution import Execution
from workbench.exporting.html_text import class_name, html_line
from workbench.rendering.case_table.cells import Cell, Rank, criterion_cell, seconds_cell, tokens_cell
from workbench.rendering.case_table.columns import CASE, TIME, TOKENS, Column, criterion_columns
from workbench.rendering.faces import FACES
from workbench.rendering.plain_lines import case_label

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
"""The digest by which the page's policy allows the script."""
_LARGEST = 1e300


def case_table(records: Sequence[Execution], anchors: Mapping[int, str]) -> Iterator[str]:
    """Yield the table. `anchors` has the place of each case in the page by the `id` of its record."""
    columns = (*criterion_columns((), records), TOKENS, TIME)
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
            yield _cell(_cell_of(record, column))
        yield "</tr>\n"
    yield f"</tbody></table></div>\n<script>{SCRIPT}</script>\n"


def _cell_of(record: Execution, column: Column) -> Cell:
    match column.kind:
        case "tokens":
            return tokens_cell(record)
        case "time":
            return seconds_cell(record)
    # A case without any score ended before its criteria were judged.
    return criterion_cell(record, column.name, configured=not record.scores)


def _cell(cell: Cell) -> str:
    value = cell.value if cell.rank is Rank.VALUE and isinstance(cell.value, int | float) else 0.0
    value = max(min(value, _LARGEST), -_LARGEST) if value == value else 0.0
    failed = cell.status is not None and cell.status not in ("passed", "informational")
    style = f' class="{class_name(FACES[cell.status].variable)}"' if failed and cell.status is not None else ""
    return f'<td{style} data-order="{int(cell.rank)} {value!r}">{html_line(cell.text)}'

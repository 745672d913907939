"""A try as rows for a terminal: the table of variants, the cases that changed, and two executions side by side.

A row is a list of pieces: safe text, and the name of its style. The joined texts are the row without colours.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from workbench.files.prices import Prices
from workbench.project.variants.report import (
    MARKS,
    CaseChange,
    Direction,
    TryReport,
    VariantResult,
    case_names,
    cost_words,
    latency_words,
    pair_words,
)
from workbench.project.variants.trial import FileChange
from workbench.results.cells import cell_len, cut, cut_name, fit
from workbench.results.document import Document
from workbench.results.gate import change_text, rate_text
from workbench.results.lines import View, heading, remark
from workbench.results.side_by_side import add_compared, diff_lines
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted, counted_status, few
from workbench.text.safe_text import one_line

Row: TypeAlias = list[tuple[str, str]]
_GAP = 2
_BETWEEN = "   "
_NAME = 12
"""Minimum width of a name, in cells. Other columns are left out if it does not fit."""
_TITLE = 24
"""Maximum width of a column's title, in cells."""
_LISTED = 3
"""Maximum number of cases that are named beside a count."""
_RESULT_STYLES = {"better": "passed", "worse": "failed", "unclear": "muted"}
_STYLES: dict[Direction, str] = {"better": "passed", "worse": "failed", "same": "muted", "left out": "not-evaluated"}


# The table of variants


def table_rows(found: TryReport, prices: Prices, width: int, *, ended: bool = True) -> list[Row]:
    """Return the titles, and a row for each variant.

    In narrow terminals, latency, costs and at last the pass rate are left out, and changes are shortened.
    The result of the test is shown only when the try has `ended`, because repeated looks find differences by chance.
    """
    names = [one_line(variant.name) for variant in found.variants]
    results = [variant.comparison.result if variant.comparison and ended else "" for variant in found.variants]
    wanted = min(max(map(cell_len, names)), _NAME)
    choices = [*_choices(found, prices, results)]
    columns = next((columns for columns in choices if _room(columns, width) >= wanted), choices[-1])
    name_width = max(min(max(map(cell_len, names)), _room(columns, width)), 4)
    lines: list[Row] = [[(" " * name_width, "")]]
    lines += [[(fit(cut_name(name, name_width, names), name_width), "")] for name in names]
    for column in columns:
        for number, text in enumerate([column.title, *column.cells]):
            shown = cut(text, column.width)
            blanks = " " * (column.width - cell_len(shown))
            style = "label" if number == 0 else _RESULT_STYLES.get(results[number - 1], "") if column.styled else ""
            lines[number] += [(" " * _GAP, ""), (blanks + shown if column.right else shown + blanks, style)]
    return lines


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table. `styled` cells have the style of their row's result."""

    title: str
    cells: Sequence[str]
    right: bool = False
    styled: bool = False

    @property
    def width(self) -> int:
        """The width of the widest cell or of the title. A long title is cut."""
        return max(*map(cell_len, self.cells), min(cell_len(self.title), _TITLE))


def _choices(found: TryReport, prices: Prices, results: Sequence[str]) -> Iterator[list[_Column]]:
    """Yield the columns beside the names, for terminals of decreasing width."""
    variants = found.variants
    changes = ["" if one.comparison is None else change_text(one.comparison) for one in variants]
    passed = _Column("passed", [rate_text(one.pass_rate) for one in variants], right=True)
    change = _Column(f"change from {one_line(found.against)}", changes, styled=True)
    costs = [_Column("cost", [cost_words(one.cost, prices.currency) for one in variants])] if prices else []
    latency = _Column("latency", [latency_words(one.seconds) for one in variants])
    result = _Column("", results, styled=True)
    yield [passed, change, *costs, latency, result]
    yield [passed, change, *costs, result]
    yield [passed, change, result]
    yield [passed, replace(change, title="change", cells=[one.replace(" points", "") for one in change.cells]), result]
    change = replace(change, title="change", cells=[one.partition(" ")[0] for one in change.cells])
    yield [passed, change, result]
    yield [change, result]


def _room(columns: Sequence[_Column], width: int) -> int:
    """Return the width that is left for names, in cells."""
    return width - sum(column.width + _GAP for column in columns)


# The cases


def is_pending(case: CaseChange) -> bool:
    """Return whether a case has not ended in one of the two variants, so that it cannot be compared yet."""
    return not case.pair.is_compared and not case.pair.left_out


def counts_row(variant: VariantResult, against: str) -> Row:
    """Return `working tree against HEAD 9 cases better 2 worse 49 the same`, with left out and pending ones."""
    row: Row = [(f"{one_line(variant.name)} against {one_line(against)}", "strong")]
    for piece in _counts(variant):
        row += [(_BETWEEN, ""), piece]
    return row


def counts_text(variant: VariantResult) -> str:
    """Return `9 cases better 2 worse 49 the same`, with the numbers of left out and pending cases."""
    return _BETWEEN.join(text for text, _ in _counts(variant))


def _counts(variant: VariantResult) -> Iterator[tuple[str, str]]:
    numbers = Counter("pending" if is_pending(case) else case.direction for case in variant.cases)
    yield f"{counted(numbers['better'], 'case')} better", "passed" if numbers["better"] else "muted"
    yield f"{numbers['worse']:,} worse", "failed" if numbers["worse"] else "muted"
    yield f"{numbers['same']:,} the same", "muted"
    for name, style in (("left out", "not-evaluated"), ("pending", "muted")):
        if numbers[name]:
            yield f"{numbers[name]:,} {name}", style


def listed_cases(variant: VariantResult, *, same: bool) -> list[CaseChange]:
    """Return the cases that are listed: changed ones, those left out, and with `same` those that did not change."""
    left_out = [case for case in variant.cases if case.direction == "left out" and not is_pending(case)]
    others = [case for case in variant.cases if case.direction == "same"] if same else []
    return [*variant.changed, *left_out, *others]


def case_rows(variant: VariantResult, cases: Sequence[CaseChange], width: int) -> list[Row]:
    """Return a row for each of these cases: `✗→✓ late_parcel   0/3 → 3/3   refund: amount is text`."""
    names = case_names(variant)
    shown = [names[case.case] for case in cases]
    longest = max(map(cell_len, shown), default=0)
    pairs = [_outcome(case) for case in cases]
    middle = max(map(cell_len, pairs), default=0)
    room = min(longest, max(width // 2 - 4, width - middle - 30, 10))
    rows: list[Row] = []
    for case, name, pair in zip(cases, shown, pairs, strict=True):
        style = _STYLES[case.direction]
        rest = width - 4 - room - 3 - middle - 3
        rows.append(
            [
                (f"{fit(MARKS[case.direction], 3)} ", style),
                (fit(cut_name(name, room, shown), room), ""),
                ("   ", ""),
                (fit(pair, middle), style),
                (f"   {cut(case.cause, rest)}" if rest >= 8 and case.cause else "", "muted"),
            ]
        )
    return rows


def _outcome(case: CaseChange) -> str:
    if case.pair.is_compared:
        return pair_words(case.pair)
    return ", ".join(counted_status(status, count) for status, count in sorted(Counter(case.pair.left_out).items()))


def left_out_text(variant: VariantResult) -> str:
    """Return the executions without a verdict and the names of their cases, or "" if all have one."""
    cases = [case for case in variant.cases if case.pair.left_out]
    if not cases:
        return ""
    names = case_names(variant)
    statuses = Counter(status for case in cases for status in case.pair.left_out)
    words = ", ".join(counted_status(status, count) for status, count in sorted(statuses.items()))
    return f"left out: {words} in {few([names[case.case] for case in cases], _LISTED)}"


# Both sides of a case, and of the files


def sides_document(
    names: tuple[str, str], before: CaseRecord | None, after: CaseRecord | None, about: str, view: View
) -> Document:
    """Return two executions of a case side by side. `about` is a title that says which ones.

    `names` are the raw names of their variants. An execution is None if it has not begun.
    """
    document = Document()
    document.add([heading(one_line(about), view.width)])
    for name, record in zip(names, (before, after), strict=True):
        if record is None:
            document.add(remark(f"{one_line(name)} has not run this case yet", view))
    if before is not None and after is not None:
        document.gap()
        add_compared(document, before, after, view)
    return document


def files_document(name: str, against: str, source: str, files: Sequence[FileChange], view: View) -> Document:
    """Return the files of a variant that differ from those of the first one, with the changed lines.

    `source` is a sentence that describes the variant. All three texts are raw.
    """
    document = Document()
    title = f"{counted(len(files), 'file')} of {one_line(name)} {'differs' if len(files) == 1 else 'differ'}"
    document.add([heading(f"{title} from {one_line(against)}" if files else one_line(name), view.width)])
    document.add(remark(one_line(source, limit=500), view))
    if not files:
        document.add(remark("No file differs. Only variables or the model differ.", view))
    for file in files:
        document.gap()
        document.add([heading(one_line(file.path, limit=300), view.width)])
        what = "new file" if file.before is None else "deleted" if file.after is None else ""
        if what:
            document.add(remark(what, view))
        lines = file.diff()
        has_names = lines[:1] == [f"--- a/{file.path}"]
        document.add(diff_lines(lines[2:] if has_names else lines, view, 1))
    return document

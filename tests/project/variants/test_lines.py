"""Rows of a try: what is dropped in narrow terminals, what is left out by name, and both sides of a case."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from workbench.events.events import CaseError, CaseRef, MetricResult, PlannedCase
from workbench.files.prices import Price, Prices
from workbench.project.variants.lines import (
    Row,
    case_rows,
    counts_row,
    files_document,
    left_out_text,
    listed_cases,
    sides_document,
    table_rows,
)
from workbench.project.variants.report import CaseChange, TryReport, VariantResult, conclusion, report
from workbench.project.variants.trial import FileChange, Layout
from workbench.results.cells import cell_len
from workbench.results.lines import View
from workbench.results.statistics import CasePair, compare_rates
from workbench.store.execution import CaseRecord

PRICES = Prices({"m": Price(1, 1)}, "USD")
NAMES = ("late_parcel_two_items", "late_parcel_one_item", "geld_zurück", "注文番号がわからないお客様の荷物の場所")
TREE = "working tree"


def text(row: Row) -> str:
    return "".join(part for part, _ in row).rstrip()


def change(name: str, pair: CasePair, cause: str = "") -> CaseChange:
    return CaseChange(CaseRef("desk", "desk/a.evalset.json", "a", name), pair, cause)


def variant(cases: Sequence[CaseChange], name: str = TREE, rate: float | None = 0.783) -> VariantResult:
    comparison = compare_rates(case.pair for case in cases)
    return VariantResult(name, rate, 0.63, 2.2, {}, 3, 3, comparison, tuple(cases))


def found(*variants: VariantResult) -> TryReport:
    first = VariantResult("HEAD", 0.711, 0.61, 2.1, {}, 3, 3)
    return TryReport("HEAD", 4, 3, (first, *variants))


BETTER = [change(f"case_{number}", CasePair((0, 3), (3, 3))) for number in range(9)]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (100, "passed change from HEAD cost latency"),
        (70, "passed change from HEAD cost"),
        (62, "passed change from HEAD"),
        (48, "passed change"),
        (36, "passed change"),
        (22, "change"),
    ],
)
def test_narrow_tables_leave_out_columns_but_never_the_result(width: int, titles: str) -> None:
    rows = table_rows(found(variant(BETTER, "丁寧な口調で短く答える変種の名前")), PRICES, width)
    assert text(rows[0]).split() == titles.split()
    assert all(cell_len(text(row)) <= width for row in rows)
    assert text(rows[2]).endswith("better")
    assert {cell_len("".join(part for part, _ in row)) for row in rows} == {
        cell_len("".join(part for part, _ in rows[0]))
    }


def test_result_of_the_test_is_shown_only_at_the_end() -> None:
    row = table_rows(found(variant(BETTER)), PRICES, 100, ended=False)[2]
    assert "better" not in text(row)
    assert "+100.0 points" in text(row)
    assert ("better", "passed") in table_rows(found(variant(BETTER)), PRICES, 100)[2]


def test_costs_have_a_column_only_with_prices() -> None:
    assert "cost" in text(table_rows(found(variant(BETTER)), PRICES, 100)[0])
    assert "cost" not in text(table_rows(found(variant(BETTER)), Prices(), 100)[0])


def test_more_tokens_are_no_better_score() -> None:
    cases = tuple(CaseRef("desk", "desk/a.evalset.json", "a", f"case_{number}") for number in range(9))
    agents = {"desk (HEAD)": (0, "desk"), "desk (tree)": (1, "desk")}
    records = []
    for (agent, (variant, _)), case in itertools.product(agents.items(), cases):
        record = CaseRecord(PlannedCase(replace(case, agent=agent), None, ""), "passed")
        tokens = MetricResult("token_usage_v1", "informational", 100.0 + variant)
        record.scores = {"token_usage_v1": tokens, "own": MetricResult("own", "passed", 0.5 + variant / 2, 0.5)}
        records.append(record)
    _, tree = report(Layout(("HEAD", "tree"), cases, agents, 1), records).variants
    assert [(one.name, one.comparison.result) for one in tree.criteria] == [("own", "better")]


def test_unfinished_cases_do_not_count_as_left_out() -> None:
    cases = [
        change("one", CasePair((0, 3), (3, 3))),
        change("two", CasePair((3, 3), (1, 3))),
        change("three", CasePair((3, 3), (3, 3))),
        change("four", CasePair((3, 3), (0, 0), ("error", "error", "cancelled"))),
        change("five", CasePair((1, 1), (0, 0))),
    ]
    result = variant(cases)
    words = "working tree against HEAD   1 case better   1 worse   1 the same   1 left out   1 pending"
    assert text(counts_row(result, "HEAD")) == words
    assert [case.case.eval_id for case in listed_cases(result, same=False)] == ["one", "two", "four"]
    assert [case.case.eval_id for case in listed_cases(result, same=True)] == ["one", "two", "four", "three"]
    assert left_out_text(result) == "left out: 1 cancelled, 2 errors in four"
    assert left_out_text(variant(cases[:3])) == ""


@pytest.mark.parametrize(("low", "high", "words"), [(0.028, 0.119, "2 to 12"), (-0.07, -0.02, "2 to 7")])
def test_size_of_a_change_is_rounded_outwards(low: float, high: float, words: str) -> None:
    better = variant(BETTER)
    assert better.comparison is not None
    shown = replace(better, comparison=replace(better.comparison, interval=(low, high)))
    assert f"probably by {words} points." in conclusion(shown, "HEAD")


def test_conclusion_counts_the_cases_that_could_not_be_compared() -> None:
    lost = [change(name, CasePair((3, 3), (0, 0), ("error",) * 3)) for name in ("one", "two")]
    to_come = change("three", CasePair((3, 3), (0, 0)))
    words = conclusion(variant([*BETTER, *lost, to_come]), "HEAD")
    assert words.startswith("better: ")
    assert words.endswith(" points. 2 more cases could not be compared.")
    assert conclusion(variant([*BETTER[:1], lost[0]]), "HEAD").endswith(" 1 more case could not be compared.")
    assert "compared" not in conclusion(variant([*BETTER, to_come]), "HEAD")


def test_rows_of_cases_are_aligned_and_distinguish_equal_ids() -> None:
    cases = [change(name, CasePair((0, 3), (3, 3)), "refund: amount is text") for name in NAMES]
    cases.append(change("no_such_order", CasePair((0, 0), (0, 0), ("error",) * 6), "KeyError: 'x'"))
    wide = [text(row) for row in case_rows(variant(cases), cases, 100)]
    assert wide[0] == "✗→✓ late_parcel_two_items                    0/3 → 3/3   refund: amount is text"
    assert wide[4] == "?   no_such_order                            6 errors    KeyError: 'x'"
    for width in (58, 40, 30):
        rows = [text(row) for row in case_rows(variant(cases), cases, width)]
        assert all(cell_len(row) <= width for row in rows)
        assert len(set(rows)) == len(rows)
        assert all("0/3 → 3/3" in row for row in rows[:4])


def test_hostile_names_are_safe() -> None:
    evil = "\x1b[31mevil\u202e\n[bold]"
    result = variant([change(evil, CasePair((0, 3), (3, 3)))], evil)
    rows = [*table_rows(found(result), PRICES, 100), counts_row(result, evil), *case_rows(result, result.cases, 100)]
    document = files_document(evil, evil, evil, [FileChange(evil, b"\x1b[2J", b"\x1b]0;x")], View(80))
    lines = [*map(text, rows), *(line.plain for line in document.lines)]
    assert not any(sign in line for line in lines for sign in "\x1b\u202e\n")


def test_files_without_lines_to_show_are_named_in_full() -> None:
    files = [FileChange("picture.png", b"\0", b"\0\0"), FileChange("prompt.md", b"one\r\n", b"one\n")]
    lines = [line.plain.strip() for line in files_document(TREE, "HEAD", "2 files differ", files, View(90)).lines]
    assert "picture.png differs (1 and 2 bytes)" in lines
    assert "prompt.md differs only in line ends, or in bytes that are no text" in lines
    assert FileChange("new.md", None, b"").diff() == []


def test_files_are_shown_with_their_lines_whether_changed_new_or_deleted() -> None:
    files = [
        FileChange("a.md", b"kind\nold\n", b"kind\nnew\n"),
        FileChange("b.md", None, b"all new\n"),
        FileChange("c.md", b"gone\n", None),
    ]
    lines = [line.plain.rstrip() for line in files_document(TREE, "HEAD", "3 files differ", files, View(60)).lines]
    assert "3 files of working tree differ from HEAD" in lines[0]
    assert " − old" in lines
    assert " + new" in lines
    assert lines.index(" new file") < lines.index(" + all new")
    assert lines.index(" deleted") < lines.index(" − gone")
    assert not any("+++" in line or "---" in line for line in lines)
    none = files_document("model=m", "HEAD", "the model m", [], View(60))
    assert any("No file differs" in line.plain for line in none.lines)


def test_side_by_side_view_names_both_variants_and_accepts_a_missing_side() -> None:
    ref = CaseRef("desk", "desk/a.evalset.json", "a", "lost")
    error = CaseError("agent_raised", "no such order")
    broken = CaseRecord(PlannedCase(ref, None, "defaults"), state="error", error=error)
    document = sides_document(("HEAD", TREE), None, broken, "lost · HEAD → working tree", View(80))
    lines = "\n".join(line.plain for line in document.lines)
    assert "lost · HEAD → working tree" in lines
    assert "HEAD has not run this case yet" in lines
    both = sides_document(("HEAD", TREE), broken, broken, "lost", View(80))
    assert "no such order" in "\n".join(line.plain for line in both.lines)

"""Rows by position and positions by row, with open, filtered and repeated rows."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.tree.outline import Fold, Outline, Row


def outline(repeats: dict[tuple[int, int], int] | None = None) -> Outline:
    runs = repeats or {}
    return Outline([[0, 1], [2], []], [3, 2, 1], lambda evalset, case: runs.get((evalset, case), 0))


def texts(tree: Outline) -> list[str]:
    return [" ".join(str(part) for part in tree.row(position) if part not in (-1,)) for position in range(len(tree))]


def test_rows_of_an_open_tree_have_the_order_of_the_files() -> None:
    assert texts(outline()) == [
        "all",
        "agent 0",
        "evalset 0 0",
        "case 0 0 0",
        "case 0 0 1",
        "case 0 0 2",
        "evalset 0 1",
        "case 0 1 0",
        "case 0 1 1",
        "agent 1",
        "evalset 1 2",
        "case 1 2 0",
        "agent 2",
    ]


def test_closed_rows_hide_the_rows_below() -> None:
    tree = outline()
    tree.closed = {Row("agent", 1), Row("evalset", 0, 0)}
    tree.rebuild()
    below = ["evalset 0 0", "evalset 0 1", "case 0 1 0", "case 0 1 1"]
    assert texts(tree) == ["all", "agent 0", *below, "agent 1", "agent 2"]
    assert tree.find(Row("case", 0, 0, 1)) is None
    assert tree.nearest(Row("case", 0, 0, 1)) == 2
    assert tree.cases(Row("agent", 0)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)], "closed is not hidden from a run"


def test_a_filter_hides_empty_evalsets_and_agents() -> None:
    tree = outline()
    tree.orders = {0: [2, 0], 1: [], 2: []}
    tree.rebuild()
    assert texts(tree) == ["all", "agent 0", "evalset 0 0", "case 0 0 2", "case 0 0 0"]
    assert tree.all_cases() == [(0, 2), (0, 0)]


@given(st.data())
def test_find_is_the_inverse_of_row(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=5))
    cut = data.draw(st.integers(0, len(sizes)))
    runs = data.draw(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 5)), st.integers(0, 3)))
    tree = Outline(
        [list(range(cut)), list(range(cut, len(sizes)))], sizes, lambda evalset, case: runs.get((evalset, case), 0)
    )
    for evalset, size in enumerate(sizes):
        if folded := sorted(data.draw(st.sets(st.integers(0, size - 1))) if size else ()):
            tree.folds[evalset] = Fold([case for case in range(size) if case not in folded], folded)
    tree.rebuild()
    rows = [tree.row(position) for position in range(len(tree))]
    rows += [Row("case", tree.group_of[evalset], evalset, case) for evalset, case in tree.all_cases()]
    tree.closed = {row for row in rows if row.kind in ("agent", "evalset") and data.draw(st.booleans())}
    tree.opened = {row for row in rows if row.kind in ("case", "passed") and data.draw(st.booleans())}
    if data.draw(st.booleans()):
        tree.orders = {
            evalset: data.draw(st.permutations(range(size)))[: data.draw(st.integers(0, size))]
            for evalset, size in enumerate(sizes)
        }
    tree.rebuild()
    visible = [tree.row(position) for position in range(len(tree))]
    assert [tree.find(row) for row in visible] == list(range(len(tree)))
    assert all(tree.find(row) is None for row in set(rows) - set(visible))


def test_cases_around_a_case_are_those_that_the_filter_shows() -> None:
    outline = Outline([[0]], [10], lambda _, __: 1)
    assert list(outline.around(Row("case", 0, 0, 4), 2)) == [2, 3, 4, 5]
    outline.orders = {0: [9, 1, 4]}
    outline.rebuild()
    assert list(outline.around(Row("case", 0, 0, 4), 2)) == [9, 1, 4]
    assert list(outline.around(Row("case", 0, 0, 5), 2)) == [5], "the filter hides it"

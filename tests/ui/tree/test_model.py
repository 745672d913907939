"""The tree without a screen: cursor, filter, sort order, marks, problems, and reading again."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.ui.conftest import MakeWorkspace
from tests.ui.feed import Feed
from workbench.agents.workspace import Workspace
from workbench.editing.triage.entry import About, Entry, Judged
from workbench.editing.triage.triage_file import Triage
from workbench.events.events import CaseError, CaseFinished, CaseStatus, RepeatsDropped
from workbench.results.cells import cell_len
from workbench.store.inputs import Change
from workbench.store.store import Store
from workbench.ui.screen.overview_contents import Figures
from workbench.ui.tree.labels import Labels
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import ALL, Row
from workbench.ui.tree.query import parse_query
from workbench.ui.tree.scope import scope_at, scope_of, targets_of
from workbench.ui.tree.verdicts import CaseVerdict, Verdicts

PROMPT = Change("agent_file", "desk/prompt.txt", "desk/prompt.txt", "run")


@pytest.fixture
def tree(store: Store, shop: Workspace) -> Tree:
    verdicts = Verdicts(store)
    store.subscribe(verdicts.apply)
    model = Tree(verdicts)
    model.load(shop)
    return model


def run(feed: Feed, *outcomes: tuple[str, str, str]) -> None:
    """Run these (evalset, case, status) to their ends."""
    for ref, (_, _, status) in zip(feed.start(*[one[:2] for one in outcomes]), outcomes, strict=True):
        feed.begin(ref)
        feed.end(ref, status, {"passed": 0.9, "failed": 0.5}.get(status))  # type: ignore[arg-type]
    feed.finish()


def lines(tree: Tree, width: int = 60) -> list[str]:
    """Return the rows as text."""
    labels = Labels(tree, lambda: 0.0)
    sides = [labels.pieces(tree.outline.row(number), width) for number in range(len(tree.outline))]
    return ["".join(text for text, _ in left) + "  |  " + "".join(text for text, _ in right) for left, right in sides]


def names(tree: Tree) -> list[str]:
    """Return the IDs of the visible cases."""
    return [tree.entries[e].document.cases[c].eval_id for e, c in tree.outline.all_cases()]


def test_run_changes_neither_rows_nor_cursor(tree: Tree, feed: Feed) -> None:
    tree.set_query(parse_query("parcel"))
    tree.stand_on(tree.outline.nearest(Row("case", 0, 0, 1)))
    rows, cursor = [tree.outline.row(number) for number in range(len(tree.outline))], tree.cursor
    run(feed, ("refunds", "late_parcel", "failed"), ("refunds", "two_parcels", "passed"))
    assert [tree.outline.row(number) for number in range(len(tree.outline))] == rows
    assert tree.cursor == cursor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parcel", ["late_parcel", "two_parcels"]),
        ("greetings", ["hello", "good_night"]),
        ("order_desk good", ["good_night"]),
        (":fail", ["late_parcel"]),
        (":fail :error", ["late_parcel", "unknown_order"]),
        (":error parcel", []),
        ("response<0.8", ["late_parcel"]),
        ("response_match_score>=0.9", ["on_time"]),
        (":notrun refunds", ["two_parcels"]),
        (":marked", ["hello"]),
    ],
)
def test_filters_combine_words_statuses_and_metrics(tree: Tree, feed: Feed, text: str, expected: list[str]) -> None:
    run(
        feed,
        ("refunds", "on_time", "passed"),
        ("refunds", "late_parcel", "failed"),
        ("refunds", "unknown_order", "error"),
    )
    tree.marks.toggle([(1, 0)])
    tree.set_query(parse_query(text))
    assert names(tree) == expected


def test_failed_case_with_an_error_matches_both_fail_and_error(tree: Tree, feed: Feed) -> None:
    run(feed, ("refunds", "on_time", "failed"), ("refunds", "late_parcel", "failed"))
    (ref,) = feed.start(("refunds", "late_parcel"))
    feed.begin(ref)
    tree.verdicts.store.apply(CaseFinished(ref, "failed", CaseError("judge", "no connection"), 1.0))
    for text, expected in {":fail": ["on_time", "late_parcel"], ":error": ["late_parcel"]}.items():
        tree.set_query(parse_query(text))
        assert names(tree) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cause:answer-differs", ["on_time", "late_parcel"]),
        ("cause:ANSWER parcel", ["late_parcel"]),
        ("cause:no-such", ["unknown_order"]),
        ("cause:no-such cause:answer", ["on_time", "late_parcel", "unknown_order"]),
        ("cause:one-of-a-kind", ["unknown_order"]),
        ("cause:one-of-a-kind late", ["late_parcel"]),
        ("cause:zzz", []),
    ],
)
def test_filter_by_cause_selects_its_group(tree: Tree, feed: Feed, text: str, expected: list[str]) -> None:
    run(
        feed,
        ("refunds", "on_time", "failed"),
        ("refunds", "late_parcel", "failed"),
        ("refunds", "unknown_order", "error"),
        ("refunds", "two_parcels", "passed"),
    )
    figures = Figures(tree.verdicts)
    groups = [(group.cause.slug, group.cases) for group in figures.groups(scope_at(tree, ALL))]
    assert groups == [("answer-differs", ((0, 0), (0, 1))), ("valueerror-no-such-order", ((0, 2),))]
    assert figures.groups(scope_of([(0, 1), (0, 3)]))[0].cases == ((0, 1),)
    tree.set_query(parse_query(text))
    assert names(tree) == expected


def test_cause_of_a_case_is_that_of_its_deciding_repeat(tree: Tree, feed: Feed) -> None:
    statuses: tuple[CaseStatus, ...] = ("passed", "error", "failed")
    for ref, status in zip(feed.start(("refunds", "on_time"), runs=3), statuses, strict=True):
        feed.begin(ref)
        feed.end(ref, status, 0.5 if status == "failed" else None)
    cause = tree.verdicts.cause(0, 0)
    assert cause is not None
    assert cause.text == "answer differs"
    assert tree.verdicts.cause(0, 1) is None


def test_reapplied_filter_keeps_the_case_under_the_cursor(tree: Tree, feed: Feed) -> None:
    run(feed, ("refunds", "on_time", "failed"), ("refunds", "late_parcel", "failed"))
    tree.set_query(parse_query(":fail"))
    tree.show(Row("case", 0, 0, 0))
    run(feed, ("refunds", "on_time", "passed"), ("refunds", "late_parcel", "passed"))
    assert names(tree) == ["on_time", "late_parcel"]
    tree.arrange_again()
    assert names(tree) == ["on_time"]
    assert tree.cursor == Row("case", 0, 0, 0)


def test_cases_sort_by_status_score_change_and_time(tree: Tree, feed: Feed) -> None:
    refs = feed.start(*[("refunds", case) for case in ("on_time", "late_parcel", "unknown_order")])
    for ref, (status, score, seconds) in zip(
        refs, [("passed", 0.9, 3.0), ("failed", 0.5, 1.0), ("error", None, 2.0)], strict=True
    ):
        feed.begin(ref)
        feed.end(ref, status, score, seconds)  # type: ignore[arg-type]
    tree.verdicts.mark_flips({(0, 2): True, (0, 0): False})
    found = {}
    for _ in range(5):
        sort = tree.next_sort()
        found[sort] = names(tree)[:4]
    assert found == {
        "status": ["late_parcel", "unknown_order", "on_time", "two_parcels"],
        "score": ["late_parcel", "on_time", "unknown_order", "two_parcels"],
        "change": ["unknown_order", "on_time", "late_parcel", "two_parcels"],
        "time": ["on_time", "unknown_order", "late_parcel", "two_parcels"],
        "file": ["on_time", "late_parcel", "unknown_order", "two_parcels"],
    }


def test_problems_are_found_in_all_evalsets_even_closed_ones(tree: Tree, feed: Feed) -> None:
    run(feed, ("refunds", "late_parcel", "failed"), ("hand_over", "to_technician", "error"))
    tree.outline.closed = {Row("agent", 1)}
    tree.outline.rebuild()
    assert tree.problem(1) == (Row("case", 0, 0, 1), False)
    tree.show(Row("case", 0, 0, 1))
    assert tree.problem(1) == (Row("case", 1, 2, 1), False)
    assert tree.show(Row("case", 1, 2, 1)), "an agent was opened for it"
    assert tree.problem(1) == (Row("case", 0, 0, 1), True)
    assert tree.problem(-1) == (Row("case", 0, 0, 1), False)


def test_search_returns_to_the_only_problem(tree: Tree, feed: Feed) -> None:
    run(feed, ("refunds", "late_parcel", "failed"))
    tree.show(Row("case", 0, 0, 1))
    assert tree.problem(1) == (Row("case", 0, 0, 1), True)


def test_marking_a_heading_twice_marks_and_unmarks_all_below(tree: Tree) -> None:
    tree.show(Row("evalset", 0, 0))
    tree.mark()
    assert len(tree.marks) == 4
    assert [tree.is_marked(number) for number in range(1, 8)] == [False, True, True, True, True, True, False]
    tree.mark()
    assert len(tree.marks) == 0


def test_a_range_is_marked_between_its_ends(tree: Tree) -> None:
    tree.show(Row("case", 0, 0, 3))
    tree.mark_range()
    tree.show(Row("case", 0, 0, 1))
    assert [tree.is_marked(number) for number in range(3, 7)] == [False, True, True, True]
    assert not len(tree.marks)
    tree.mark()
    assert sorted(tree.marks) == [(0, 1), (0, 2), (0, 3)]
    tree.mark_range()
    tree.drop_marks()
    assert len(tree.marks) == 3


def test_reading_the_folder_again_keeps_cursor_marks_and_closed_rows_by_name(
    tree: Tree, make_workspace: MakeWorkspace
) -> None:
    tree.show(Row("case", 0, 0, 3))
    tree.marks.toggle([(0, 1), (2, 0)])
    tree.outline.closed = {Row("evalset", 0, 1)}
    tree.load(
        make_workspace(
            {
                "a_new_one": {"first": ["x"]},
                "order_desk": {"greetings": ["hello"], "refunds": ["two_parcels", "late_parcel"]},
            }
        )
    )
    assert tree.cursor == Row("case", 1, 2, 0)
    assert sorted(tree.marks) == [(2, 1)]
    assert tree.outline.closed == {Row("evalset", 1, 1)}


def test_evalset_with_many_cases_starts_folded(store: Store, make_workspace: MakeWorkspace) -> None:
    tree = Tree(Verdicts(store))
    tree.load(make_workspace({"agent": {"many": [f"case_{number}" for number in range(200)]}}))
    assert lines(tree) == ["everything  |  ", "▾ agent  |  ", "  ▸ many  |  200"]


def test_evalsets_without_agent_come_last(store: Store, make_workspace: MakeWorkspace) -> None:
    tree = Tree(Verdicts(store))
    tree.load(make_workspace({"": {"stray": ["x"]}, "zebra": {}, "agent": {"one": ["y"]}}))
    assert tree.groups == ["zebra", "agent", "(no agent)"]
    assert lines(tree)[1] == "  zebra  |  no evalsets"


def test_repeats_are_rows_under_their_case(tree: Tree, feed: Feed) -> None:
    for ref, status in zip(feed.start(("refunds", "on_time"), runs=2), ("passed", "failed"), strict=True):
        feed.begin(ref)
        feed.end(ref, status)  # type: ignore[arg-type]
    assert lines(tree)[3] == "  ▸ ∿ on_time  |  1/2 50%"
    tree.show(Row("case", 0, 0, 0))
    tree.toggle()
    assert lines(tree)[4:6] == ["      ✓ #1  |  ", "      ✗ #2  |  "]


def test_dropped_repeats_disappear_from_the_rows(tree: Tree, store: Store, feed: Feed) -> None:
    refs = feed.start(("refunds", "on_time"), runs=4)
    tree.show(Row("case", 0, 0, 0))
    tree.toggle()
    tree.show(Row("repeat", 0, 0, 0, 4))
    rows = len(lines(tree))
    for ref in refs[:2]:
        feed.begin(ref)
        feed.end(ref)
    store.apply(RepeatsDropped(tuple(refs[2:])))
    assert tree.repeats_changed()
    assert len(lines(tree)) == rows - 2
    assert lines(tree)[3:6] == ["  ▾ ✓ on_time  |  2/2 100%", "      ✓ #1  |  ", "      ✓ #2  |  "]
    assert tree.cursor is not None
    assert tree.cursor.case >= 0


def test_flaky_cases_sort_after_cases_that_always_fail(tree: Tree, feed: Feed) -> None:
    verdicts = {"on_time": ("passed", "failed"), "late_parcel": ("failed", "failed")}
    for name, statuses in verdicts.items():
        for ref, status in zip(feed.start(("refunds", name), runs=2), statuses, strict=True):
            feed.begin(ref)
            feed.end(ref, status)  # type: ignore[arg-type]
    tree.set_query(parse_query(":flaky"))
    assert tree.outline.all_cases() == [(0, 0)]
    tree.set_query(parse_query(""))
    tree.next_sort()
    assert tree.outline.all_cases()[:2] == [(0, 1), (0, 0)]


@pytest.mark.parametrize("width", [20, 24, 34, 60])
@pytest.mark.parametrize(
    "name", ["荷物はどこですか_とても長い名前のケース", "a_case_with_a_very_long_name_of_which_no_end_is_seen"]
)
def test_long_name_is_cut_before_its_signs(store: Store, make_workspace: MakeWorkspace, name: str, width: int) -> None:
    model = Tree(Verdicts(store))
    model.load(make_workspace({"desk": {"talk": [name]}}))
    model.verdicts.mark_stale({(0, 0): (PROMPT,)})
    model.verdicts.mark_flips({(0, 0): True})
    labels = Labels(model, lambda: 0.0)
    left, right = labels.pieces(Row("case", 0, 0, 0), width)
    assert sum(cell_len(text) for text, _ in [*left, *right]) <= width
    turned, stale = (text.strip() for text, _ in left[3:])
    assert turned == "↓"
    assert stale == ("~prompt.txt" if width >= 60 else "~"), "the name is worth more than the reason"
    assert left[2][0].startswith(name[:2])


def test_counts_in_a_filtered_tree_include_only_shown_cases(tree: Tree, feed: Feed) -> None:
    run(
        feed,
        ("refunds", "on_time", "passed"),
        ("refunds", "late_parcel", "failed"),
        ("refunds", "two_parcels", "passed"),
        ("greetings", "hello", "error"),
    )
    tree.set_query(parse_query("parcel"))
    assert [line.split("  |  ")[1] for line in lines(tree)[:3]] == ["1✓ 1✗", "", "1✓ 1✗"]
    tree.verdicts.changed.clear()
    feed.end(feed.start(("refunds", "two_parcels"), run_id="run-2")[0], "error")
    feed.finish()
    tree.touched(tree.verdicts.changed, range(len(tree.outline)))
    assert [line.split("  |  ")[1] for line in lines(tree)[:3]] == ["1✗ 1!", "", "1✗ 1!"], (
        "verdicts arrive in the counts"
    )
    tree.set_query(parse_query(""))
    assert lines(tree)[0].endswith("1✓ 1✗ 2!")


def test_typing_a_filter_goes_to_the_first_match_and_leaving_it_goes_back(tree: Tree) -> None:
    greetings = Row("evalset", 0, 1)
    tree.show(greetings)
    tree.toggle()
    for text in ("t", "to", "to_tech"):
        tree.set_query(parse_query(text), typing=True)
    assert tree.cursor == Row("case", 1, 2, 1)
    tree.set_query(parse_query("hello"), typing=True)
    assert tree.cursor == Row("case", 0, 1, 0), "a collapsed evalset with a match is open"
    tree.set_query(parse_query("zzz"), typing=True)
    tree.set_query(parse_query(""), typing=True)
    assert tree.cursor == greetings
    assert not tree.outline.is_open(greetings)


def test_leaving_a_kept_filter_collapses_again_and_stays_on_the_case(tree: Tree, shop: Workspace) -> None:
    refunds, greetings = Row("evalset", 0, 0), Row("evalset", 0, 1)
    tree.show(greetings)
    tree.toggle()
    tree.set_query(parse_query("o"), typing=True)
    tree.show(Row("case", 0, 0, 2))
    tree.load(shop)
    tree.set_query(parse_query(""))
    assert tree.cursor == Row("case", 0, 0, 2), "its evalset was open before"
    assert (tree.outline.is_open(refunds), tree.outline.is_open(greetings)) == (True, False)
    tree.set_query(parse_query("hello"), typing=True)
    tree.set_query(parse_query(""))
    assert tree.cursor == greetings, "the case is hidden again"


# Folded cases

REFUNDS = Row("evalset", 0, 0)
PASSED = Row("passed", 0, 0)
FOUR = ("on_time", "late_parcel", "unknown_order", "two_parcels")


def rows(tree: Tree) -> list[str]:
    """Return the left sides of the rows of `refunds`."""
    found = [line.partition("  |  ")[0] for line in lines(tree)]
    return [line.strip() for line in found[3 : found.index("  ▾ greetings")]]


def folded_marks(tree: Tree) -> str:
    """Return the right side of the row of folded cases."""
    return next(line for line in lines(tree) if "passed " in line).partition("  |  ")[2]


def run_refunds(feed: Feed, tree: Tree, *statuses: str) -> None:
    """Run the cases of `refunds` and arrange the rows as at the end of a run."""
    run(feed, *(("refunds", name, status) for name, status in zip(FOUR, statuses, strict=True)))
    tree.arrange_again()


def test_passed_cases_share_a_row_after_a_run(tree: Tree, feed: Feed) -> None:
    run(feed, *(("refunds", name, "passed") for name in FOUR))
    assert len(rows(tree)) == 4, "a run alone moves no rows"
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    assert rows(tree) == ["✗ late_parcel", "3 passed ▸"]
    tree.show(PASSED)
    assert targets_of("run", tree).pairs() == [(0, 0), (0, 2), (0, 3)]
    assert (targets_of("run", tree).count(), targets_of("rerun", tree).count()) == (3, 0)
    assert tree.toggle()
    assert rows(tree) == ["✗ late_parcel", "3 passed ▾", "✓ on_time", "✓ unknown_order", "✓ two_parcels"]
    assert tree.outline.cases(REFUNDS) == [(0, 0), (0, 1), (0, 2), (0, 3)], "runs keep the order of the file"


def test_single_passed_case_keeps_its_row(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "failed", "failed", "error")
    assert rows(tree)[0] == "✓ on_time"


@pytest.mark.parametrize("name", FOUR)
def test_results_never_move_the_cursor_into_a_fold(tree: Tree, feed: Feed, name: str) -> None:
    tree.show(Row("case", 0, 0, FOUR.index(name)))
    cursor = tree.cursor
    for statuses in (("passed",) * 4, ("failed", "failed", "passed", "passed"), ("passed",) * 4):
        run_refunds(feed, tree, *statuses)
        assert tree.cursor == cursor is not None
        assert tree.outline.find(cursor) is not None
    assert rows(tree)[0] == f"✓ {name}"
    assert rows(tree)[-1] == "3 passed ▸"


def test_fold_counts_cases_that_no_longer_pass(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "passed", "passed", "failed")
    refs = feed.start(("refunds", "on_time"), ("refunds", "late_parcel"), run_id="run-2")
    feed.begin(refs[0])
    feed.end(refs[0], "failed")
    (fold,) = [line for line in lines(tree) if "passed ▸" in line]
    assert fold.split() == ["1", "passed", "▸", "|", "1✗", "1▶"]
    assert not tree.arrange_again(), "verdicts of earlier runs that arrive during a run move no rows"
    assert tree.touched({(0, 0)}, [tree.outline.nearest(PASSED)]), "its row is painted again"


def test_next_problem_takes_a_failed_case_out_of_its_fold(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "passed", "passed", "passed")
    (ref,) = feed.start(("refunds", "late_parcel"), run_id="run-2")
    feed.begin(ref)
    feed.end(ref, "failed")
    found = tree.problem(1)
    assert found == (Row("case", 0, 0, 1), False)
    tree.show(found[0])
    assert tree.cursor == found[0]
    assert rows(tree) == ["✗ late_parcel", "3 passed ▸"]


def test_fold_is_the_parent_of_a_passed_case_and_opens_for_it(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    row = Row("case", 0, 0, 2)
    assert tree.show(row)
    assert tree.cursor == row
    assert tree.outline.parent(row) == PASSED
    assert "3 passed ▾" in rows(tree)


def test_filter_and_other_orders_show_all_cases(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    tree.set_query(parse_query("parcel"))
    assert [line.split()[1] for line in lines(tree)[3:]] == ["late_parcel", "two_parcels"]
    tree.stand_on(4)
    tree.set_query(parse_query(""))
    assert tree.cursor == Row("case", 0, 0, 3), "the case under the cursor keeps a row of its own"
    assert rows(tree) == ["✗ late_parcel", "✓ two_parcels", "2 passed ▸"]
    tree.next_sort()
    assert not any("passed ▸" in line for line in lines(tree))


def test_marked_cases_keep_their_own_rows(tree: Tree, feed: Feed) -> None:
    tree.marks.toggle([(0, 0)])
    run_refunds(feed, tree, "passed", "passed", "passed", "failed")
    assert rows(tree) == ["✓ on_time", "✗ two_parcels", "2 passed ▸"]
    tree.show(PASSED)
    tree.mark()
    assert tree.is_marked(tree.outline.nearest(PASSED))
    assert sorted(tree.marks) == [(0, 0), (0, 1), (0, 2)]
    run_refunds(feed, tree, "passed", "passed", "passed", "failed")
    assert rows(tree) == ["✓ on_time", "✗ two_parcels", "2 passed ▸"], "what is folded and marked stays folded"


def test_range_of_marks_includes_a_fold(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    tree.show(Row("case", 0, 0, 1))
    tree.mark_range()
    tree.show(PASSED)
    tree.mark_range()
    assert len(tree.marks) == 4


def test_fold_shows_the_signs_of_its_cases(tree: Tree, feed: Feed) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    tree.verdicts.mark_stale({(0, 0): (PROMPT,), (0, 1): (PROMPT,), (0, 2): (PROMPT,)})
    tree.verdicts.mark_flips({(0, 3): False})
    assert "3 passed ↑1 ~2 ▸" in rows(tree)
    tree.verdicts.mark_stale({})
    assert "3 passed ↑1 ▸" in rows(tree)
    tree.verdicts.mark_flips({(0, 0): True, (0, 1): True})
    tree.verdicts.set_check_results({(0, 0): "warning", (0, 1): "error"})
    assert "3 passed ↓1 △ ▸" in rows(tree)
    assert folded_marks(tree) == ""
    run(feed, *(("refunds", name, "failed" if name == "late_parcel" else "passed") for name in FOUR))
    record = tree.verdicts.record(0, 3)
    assert record is not None
    record.split, record.planned = True, replace(record.planned, criteria_changed=("threshold",))
    tree.arrange_again()
    assert folded_marks(tree) == "≠ ◐"


def test_fold_counts_the_cases_that_were_triaged(tree: Tree, feed: Feed, shop: Workspace) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    for case in (0, 2):
        record = tree.verdicts.record(0, case)
        assert record is not None
        record.answer = "digest"
    triaged = {"on_time": "digest", "late_parcel": "digest", "unknown_order": "another answer"}
    entries = tuple(Entry(About(name), Judged("passed", answer), "right") for name, answer in triaged.items())
    assert folded_marks(tree) == ""
    tree.verdicts.triage.replace(shop.evalsets[0].file, Triage(entries))
    assert folded_marks(tree) == "⚑1 ⚐1"


def test_reading_the_folder_again_keeps_the_cursor_on_a_fold(tree: Tree, feed: Feed, shop: Workspace) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    tree.show(PASSED)
    tree.toggle()
    before = rows(tree)
    tree.load(shop)
    assert (tree.cursor, rows(tree)) == (PASSED, before)


def test_long_names_lose_their_common_beginning_and_never_their_middle(
    store: Store, make_workspace: MakeWorkspace
) -> None:
    tree = Tree(Verdicts(store))
    cases = ["late_parcel_two_items", "late_parcel_one_item", "late_parcel_paid_twice", "paraphrased"]
    tree.load(make_workspace({"desk": {"refunds": cases}}))
    shown = [line.partition("  |")[0].split()[-1] for line in lines(tree, 22)[3:]]
    assert shown == ["…two_items", "…one_item", "…paid_twice", "paraphrased"]
    assert [line.partition("  |")[0].split()[-1] for line in lines(tree, 40)[3:]] == cases
    tree.set_query(parse_query("two"))
    assert "…two_items" in lines(tree, 22)[3], "also if a filter leaves no sibling"


def test_only_evalsets_with_changed_verdicts_are_folded_again(
    tree: Tree, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_refunds(feed, tree, "passed", "failed", "passed", "passed")
    looked_at: list[int] = []
    every = Verdicts.of_evalset

    def look(self: Verdicts, evalset: int) -> Iterator[tuple[int, CaseVerdict]]:
        looked_at.append(evalset)
        return every(self, evalset)

    monkeypatch.setattr(Verdicts, "of_evalset", look)
    assert not tree.arrange_again()
    run(feed, ("greetings", "hello", "passed"))
    tree.arrange_again()
    assert looked_at == [1]

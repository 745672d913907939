"""The table without a screen: scope, order, filter and cursor."""

from dataclasses import replace

import pytest

from tests.ui.conftest import MakeWorkspace
from tests.ui.feed import Feed
from workbench.agents.workspace import Workspace
from workbench.events.events import CaseStatus, Usage
from workbench.files.evalset import first_message, open_evalset
from workbench.files.prices import Price, Prices
from workbench.results.case_table import Column
from workbench.store.execution import CaseRecord, Turn
from workbench.store.store import Store
from workbench.ui.screen.overview_contents import Spending
from workbench.ui.table.model import Table, table_scope
from workbench.ui.table.sources import Cases, CriteriaCells, pane_of
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Row
from workbench.ui.tree.query import parse_query
from workbench.ui.tree.scope import name_of
from workbench.ui.tree.verdicts import Verdicts

ROOM, TERMINAL = 75, 80


@pytest.fixture
def tree(store: Store, shop: Workspace) -> Tree:
    verdicts = Verdicts(store)
    store.subscribe(verdicts.apply)
    model = Tree(verdicts)
    model.load(shop)
    return model


def table_of(tree: Tree) -> Table:
    table = Table(table_scope(tree), CriteriaCells(Cases(tree.entries, tree.verdicts), None), tree)
    table.load(tree.entries, tree.marks)
    return table


def run(feed: Feed, *outcomes: tuple[str, str, CaseStatus, float], finish: bool = True) -> None:
    """Run these (evalset, case, status, response_match_score) to their ends."""
    for ref, (_, _, status, score) in zip(feed.start(*[one[:2] for one in outcomes]), outcomes, strict=True):
        feed.begin(ref)
        feed.end(ref, status, score if status in ("passed", "failed") else None, seconds=1 - score)
    if finish:
        feed.finish()


SOME: tuple[tuple[str, str, CaseStatus, float], ...] = (
    ("refunds", "on_time", "passed", 0.9),
    ("refunds", "late_parcel", "failed", 0.5),
    ("refunds", "unknown_order", "error", 0.0),
    ("greetings", "hello", "failed", 0.25),
)


def names(table: Table) -> list[str]:
    return [table.source.cases.name(pair) for pair in table.rows]


def go_to(table: Table, title: str) -> None:
    table.column = [column.title for column in table.columns].index(title)


def cells(table: Table, title: str) -> list[str]:
    column = next(column for column in table.columns if column.title == title)
    return [table.source.cell(pair, column).text for pair in table.rows]


def test_sorting_by_a_column_keeps_equal_cells_in_their_order_and_reverses(tree: Tree, feed: Feed) -> None:
    run(feed, *SOME)
    table = table_of(tree)
    table.stand_on((0, 0))
    go_to(table, "resp")
    table.sort_by_cursor()
    assert names(table)[:5] == ["unknown_order", "hello", "late_parcel", "on_time", "two_parcels"]
    assert str(table.order) == "worst resp first"
    assert table.pair == (0, 0), "the cursor stays on its case"
    table.sort_by_cursor()
    assert names(table)[:5] == ["unknown_order", "on_time", "late_parcel", "hello", "two_parcels"]
    assert str(table.order) == "best resp first"
    go_to(table, "time")
    table.sort_by_cursor()
    assert cells(table, "time")[:4] == ["1.0 s", "0.7 s", "0.5 s", "0.0 s"]
    assert str(table.order) == "slowest first"


def test_order_stays_until_the_table_is_loaded_again(tree: Tree, feed: Feed) -> None:
    table = table_of(tree)
    before = names(table)
    run(feed, *SOME, finish=False)
    assert names(table) == before
    assert cells(table, "resp")[:3] == ["0.90", "✗0.50", "!"], "but new verdicts are shown"
    table.stand_on((1, 0))
    feed.finish()
    table.load(tree.entries, tree.marks)
    assert names(table)[0] == "unknown_order"
    assert table.pair == (1, 0)


@pytest.mark.parametrize(
    ("row", "where", "count"),
    [
        (Row("all"), "everything", 8),
        (Row("agent", 1), "team_router", 2),
        (Row("evalset", 0, 0), "refunds", 4),
        (Row("case", 0, 1, 0), "greetings", 2),
    ],
)
def test_row_of_the_tree_decides_which_cases_are_shown(tree: Tree, row: Row, where: str, count: int) -> None:
    tree.cursor = row
    assert (table_of(tree).where, len(table_of(tree).rows)) == (where, count)


def test_marked_cases_are_shown_wherever_the_cursor_is(tree: Tree) -> None:
    tree.marks.add([(0, 1), (2, 0)])
    table = table_of(tree)
    assert (table.where, sorted(names(table))) == ("2 marked", ["late_parcel", "to_billing"])


def test_table_of_everything_keeps_all_cases_if_cases_are_marked_later(tree: Tree) -> None:
    table = table_of(tree)
    tree.marks.add([(0, 1)])
    assert len(table.scope_in(tree)) == 8


def test_table_starts_with_the_filter_of_the_tree_which_can_be_changed(tree: Tree, feed: Feed) -> None:
    run(feed, *SOME)
    tree.set_query(parse_query("parcel"))
    table = table_of(tree)
    assert names(table) == ["late_parcel", "two_parcels"]
    for text, expected in ((":fail", ["late_parcel", "hello"]), ("response<0.4", ["hello"]), ("zzz", [])):
        table.query = parse_query(text)
        table.load(tree.entries, tree.marks)
        assert names(table) == expected
    assert table.pair is None
    assert table.problem(1) is None


def test_next_problem_skips_other_cases_and_wraps_around(tree: Tree, feed: Feed) -> None:
    run(feed, *SOME)
    table = table_of(tree)
    places = []
    for _ in range(4):
        place = table.problem(1)
        assert place is not None
        table.row = place
        places.append(place)
    assert places == [1, 2, 0, 1]


def test_cell_is_explained_with_score_threshold_and_reason(tree: Tree, feed: Feed) -> None:
    run(feed, *SOME)
    table = table_of(tree)
    columns = {column.title: column for column in table.columns}
    explain = table.source.explain
    assert explain((0, 1), columns["resp"]) == "response_match_score of late_parcel: 0.50 < 0.80, words"
    assert explain((0, 2), columns["resp"]).startswith("response_match_score of unknown_order: error")
    assert explain((0, 3), columns["resp"]) == "response_match_score of two_parcels: not run"
    assert explain((0, 1), columns["case"]).startswith("order_desk › refunds › late_parcel: fail: answer differs")
    assert explain((0, 1), columns["input"]) == "input of late_parcel: Where is my parcel?"
    assert "tokens" not in columns, "no agent reported any"
    record = tree.verdicts.record(0, 1)
    assert record is not None
    record.usage = replace(record.usage, input_tokens=1204)
    table.source.update(table.pairs)
    tokens = next(column for column in table.columns if column.title == "tokens")
    assert explain((0, 1), tokens).endswith("add [prices] to the settings to see costs")


@pytest.mark.parametrize(
    ("name", "pane"),
    [
        ("tool_trajectory_avg_score", "Evidence"),
        ("hallucinations_v1", "Judges"),
        ("rubric_based_tool_use_quality_v1", "Judges"),
        ("per_turn_user_simulator_quality_v1", "Judges"),
        ("final_response_match_v2", "Judges"),
        ("safety_v1", "Judges"),
        ("my_function", "Judges"),
    ],
)
def test_each_criterion_opens_the_pane_with_its_details(name: str, pane: str) -> None:
    assert pane_of(Column("criterion", "x", name)) == pane


def test_first_message_is_read_from_any_format(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace(
        {
            "desk": {
                "scenario": '{"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation_scenario": '
                '{"starting_prompt": "Hi", "conversation_plan": "p"}}, {"eval_id": "b", "conversation": 7},'
                ' {"evalId": "c", "conversation": [{"userContent": {"parts": [{"text": "One"}, {"text": "two"}]}}]}]}',
                "old": '[{"name": "n", "data": [{"query": "Where?", "reference": "Here"}]}]',
            }
        }
    )
    found = [
        [first_message(open_evalset(entry.file), number) for number in range(len(entry.document.cases))]
        for entry in workspace.evalsets
    ]
    assert found == [["Hi", "", "One\ntwo"], ["Where?"]]


def test_cost_belongs_to_one_execution_and_is_empty_until_it_is_known(tree: Tree, feed: Feed) -> None:
    run(feed, *SOME)
    costs = Spending(Prices({"m": Price(1.0, 1.0)}, "EUR"))
    usage = {"prompt_token_count": 125_000, "candidates_token_count": 125_000}
    event = {"author": "desk", "model_version": "m", "usage_metadata": usage}
    table = Table(table_scope(tree), CriteriaCells(Cases(tree.entries, tree.verdicts), costs), tree)
    table.load(tree.entries, tree.marks)
    assert [column.title for column in table.columns][-2:] == ["cost", "time"]
    assert set(cells(table, "cost")) == {""}
    records = [record for pair in table.rows if (record := tree.verdicts.record(*pair)) is not None]
    missing = costs.missing(records)
    assert len(missing) == 4
    first = missing[0]
    assert isinstance(first, CaseRecord)
    first.turns = [Turn({}, acted=[{**event, "content": {"parts": [{"text": "yes"}]}}])]
    for record in missing[1:]:
        record.usage = Usage(1)  # A report has the number of calls, but not the model.
    costs.read(missing)
    assert cells(table, "cost")[:4] == ["0.250", "?", "?", "?"]
    assert costs.missing(records) == []
    go_to(table, "cost")
    table.sort_by_cursor()
    assert str(table.order) == "most expensive first"
    assert table.source.explain(table.rows[0], table.current).endswith("0.25 EUR")
    feed.start(("refunds", "unknown_order"), run_id="run-2")
    assert cells(table, "cost")[0] == "", "a new execution has its own cost"


def test_scope_stays_when_the_folder_is_read_again(tree: Tree, shop: Workspace) -> None:
    everything = table_of(tree)
    tree.marks.add([(0, 1), (1, 0)])
    marked = table_of(tree)
    tree.marks.clear()
    tree.load(replace(shop, evalsets=shop.evalsets[1:]))
    tree.cursor = tree.row_of(0, 0)
    found = everything.scope_in(tree)
    assert (name_of(found, tree), len(found)) == ("everything", 4)
    found = marked.scope_in(tree)
    assert (name_of(found, tree), list(found)) == ("1 marked", [(0, 0)])


def test_inputs_are_read_before_sorting_and_kept_while_their_cases_stay_the_same(tree: Tree, shop: Workspace) -> None:
    table = table_of(tree)
    assert table.unread() == []
    table.column = 1
    assert len(table.unread()) == len(table.rows) == 8
    table.source.cases.read(table.unread())
    assert table.unread() == []
    first, *others = shop.evalsets
    text = first.file.read_text("utf-8")
    first.file.write_text(text.replace("Where is my parcel?", "Is it late?", 1), "utf-8")
    tree.load(replace(shop, evalsets=(*others, replace(first, document=open_evalset(first.file)))))
    again = table_of(tree)
    again.adopt(table)
    assert len(again.unread()) == 1
    assert again.source.cases.input(again.unread()[0]) == "Is it late?"
    assert again.source.cases.input((0, 0)) == table.source.cases.input((1, 0)) != ""


def test_table_of_folded_cases_begins_with_their_filter(tree: Tree, feed: Feed) -> None:
    run(
        feed,
        ("refunds", "on_time", "passed", 1.0),
        ("refunds", "late_parcel", "failed", 0.5),
        ("refunds", "two_parcels", "passed", 0.9),
    )
    tree.arrange_again()
    tree.show(Row("passed", 0, 0))
    table = table_of(tree)
    assert (table.where, table.query.text, names(table)) == ("refunds", ":pass", ["on_time", "two_parcels"])

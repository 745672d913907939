"""The cases that each action acts on, and how many the footer says."""

from pathlib import Path
from typing import Any

import pytest

from tests.ui.feed import Feed
from workbench.agents.workspace import Workspace
from workbench.store.store import Store
from workbench.ui.actions import BY_ID
from workbench.ui.screen.overview_contents import Figures
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import ALL, Pair, Row
from workbench.ui.tree.query import parse_query
from workbench.ui.tree.scope import scope_at, scope_of, targets_of
from workbench.ui.tree.verdicts import Verdicts

CASE = Row("case", 0, 0, 2)
PASSED, FAILED, BROKEN, FAR = (0, 0), (0, 1), (0, 2), (2, 1)
ACTIONS = ("run", "rerun", "repeat", "score", "review", "freeze", "accept", "try_faults", "cancel")


@pytest.fixture
def tree(store: Store, shop: Workspace, feed: Feed) -> Tree:
    """Return a tree with one passed, one failed and one broken case, and one that failed in another agent."""
    verdicts = Verdicts(store)
    store.subscribe(verdicts.apply)
    model = Tree(verdicts)
    model.load(shop)
    refs = feed.start(
        ("refunds", "on_time"), ("refunds", "late_parcel"), ("refunds", "unknown_order"), ("hand_over", "to_technician")
    )
    for ref, status in zip(refs, ("passed", "failed", "error", "failed"), strict=True):
        feed.begin(ref)
        feed.end(ref, status)  # type: ignore[arg-type]
    feed.finish()
    return model


def pairs(tree: Tree, action: str, selected: tuple[Pair, ...] = ()) -> list[Pair]:
    """Return the cases of an action. Check that the footer shows their number."""
    targets = targets_of(action, tree, scope_of(selected) or None)
    assert targets.count() == len(targets.pairs())
    return targets.pairs()


def test_heading_selects_the_cases_below_it(tree: Tree) -> None:
    tree.show(ALL)
    assert {action: len(pairs(tree, action)) for action in ACTIONS} == {
        "run": 8,
        "rerun": 3,
        "repeat": 8,
        "score": 4,
        "review": 3,
        "freeze": 4,
        "accept": 2,
        "try_faults": 8,
        "cancel": 0,
    }
    tree.show(Row("agent", 1))
    assert pairs(tree, "run") == [(2, 0), FAR]
    assert pairs(tree, "rerun") == [FAR]


def test_rerun_and_review_act_on_all_shown_cases_from_a_case_row(tree: Tree) -> None:
    tree.show(Row("case", 0, *PASSED))
    for action in ("run", "repeat", "score", "freeze", "accept", "try_faults"):
        assert pairs(tree, action) == [PASSED]
    for action in ("rerun", "review"):
        assert pairs(tree, action) == [FAILED, BROKEN, FAR]
    tree.set_query(parse_query("parcel"))
    assert pairs(tree, "rerun") == [FAILED], "what a filter hides is not run"
    tree.show(ALL)
    assert pairs(tree, "run") == [FAILED, (0, 3)]
    tree.set_query(parse_query("zzz"))
    assert [pairs(tree, action) for action in ACTIONS] == [[]] * len(ACTIONS)


def test_focused_cause_selects_its_cases(tree: Tree) -> None:
    tree.show(ALL)
    for action in ("run", "rerun", "repeat", "score", "review", "freeze", "accept", "try_faults"):
        assert pairs(tree, action, (FAILED, FAR)) == [FAILED, FAR]


def test_marked_cases_take_precedence_over_every_cursor(tree: Tree) -> None:
    tree.show(CASE)
    tree.marks.toggle([FAR, PASSED])
    for selected in ((), (FAILED,)):
        for action in ("run", "repeat", "score", "freeze", "accept", "try_faults"):
            assert pairs(tree, action, selected) == [PASSED, FAR]
        for action in ("rerun", "review"):
            assert pairs(tree, action, selected) == [FAR]


def test_passed_cases_are_reviewed_only_if_nothing_else_is_marked(tree: Tree) -> None:
    tree.show(Row("evalset", 0, 1))
    assert pairs(tree, "review") == []
    tree.marks.toggle([PASSED])
    assert pairs(tree, "review") == [PASSED]
    assert pairs(tree, "rerun") == []


def test_cancel_acts_on_running_and_queued_cases(tree: Tree, feed: Feed) -> None:
    feed.start(("refunds", "late_parcel"), ("refunds", "two_parcels"), run_id="run-2")
    tree.show(ALL)
    assert pairs(tree, "cancel") == [FAILED, (0, 3)]
    assert pairs(tree, "rerun") == [BROKEN, FAR]


def test_only_the_evalset_of_a_new_verdict_is_counted_again(
    tree: Tree, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, walked = Figures(tree.verdicts), list[int]()
    walk = tree.verdicts.of_evalset

    def counted(evalset: int, cases: Any = None) -> Any:
        walked.append(evalset)
        return walk(evalset, cases)

    def failed() -> tuple[int, int]:
        scope = scope_at(tree, ALL)
        return figures.tally(scope).states["failed"], len(figures.groups(scope))

    monkeypatch.setattr(tree.verdicts, "of_evalset", counted)
    for query in ("", "o"):
        tree.set_query(parse_query(query))
        before = failed()
        walked.clear()
        assert failed() == before
        assert walked == []
    (ref,) = feed.start(("hand_over", "to_technician"), run_id="run-2")
    feed.begin(ref)
    feed.end(ref, "passed")
    assert failed()[0] == 1
    assert set(walked) == {2}


def test_screen_page_lists_how_many_cases_each_key_acts_on(tree: Tree, repository: Path) -> None:
    assert scope_table(tree) in (repository / "docs" / "screen.md").read_text(encoding="utf-8"), scope_table(tree)


def scope_table(tree: Tree) -> str:
    """Return the table of the page: the number of cases that each action acts on, by the cursor's row."""
    rows = ["| key | everything | an agent | a passed case | a cause of 2 | 2 marked |", "|---|---|---|---|---|---|"]
    for action in ("run", "repeat", "try_faults", "score", "freeze", "rerun", "review", "accept"):
        counts = []
        for row, selected, marks in (
            (ALL, (), ()),
            (Row("agent", 1), (), ()),
            (Row("case", 0, *PASSED), (), ()),
            (ALL, (FAILED, FAR), ()),
            (ALL, (FAILED, FAR), (PASSED, FAR)),
        ):
            tree.marks.clear()
            tree.marks.add(marks)
            tree.show(row)
            counts.append(str(len(pairs(tree, action, selected))))
        keys = BY_ID[action].keys
        name = f"`{keys[0]}` {BY_ID[action].label}" if keys else f"*{BY_ID[action].label}*"
        rows.append(f"| {name} | {' | '.join(counts)} |")
    return "\n".join(rows)

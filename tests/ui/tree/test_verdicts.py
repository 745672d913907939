"""The newest verdict of each case, and counts that add up."""

from collections import Counter

import pytest

from tests.ui.conftest import MakeWorkspace
from tests.ui.feed import Feed
from workbench.agents.workspace import Workspace
from workbench.events.events import CaseError, CaseFinished
from workbench.store.inputs import Change
from workbench.store.store import Store
from workbench.ui.tree.outline import WHOLE_EVALSET
from workbench.ui.tree.verdicts import Verdicts

PROMPT = Change("agent_file", "desk/prompt.txt", "desk/prompt.txt", "run")


@pytest.fixture
def verdicts(store: Store, shop: Workspace) -> Verdicts:
    found = Verdicts(store)
    found.bind(shop.evalsets)
    store.subscribe(found.apply)
    return found


def test_case_that_never_ran_has_no_record(verdicts: Verdicts) -> None:
    assert verdicts.state(0, 0) == "not_run"
    assert verdicts.record(0, 0) is None
    assert verdicts.counts == [Counter()] * 3


def test_states_and_counts_follow_the_events(verdicts: Verdicts, feed: Feed) -> None:
    one, two = feed.start(("refunds", "on_time"), ("refunds", "late_parcel"))
    assert verdicts.counts[0] == {"queued": 2}
    feed.begin(one)
    assert +verdicts.counts[0] == {"queued": 1, "running": 1}
    feed.end(one, "failed", 0.5)
    feed.begin(two)
    feed.end(two, "passed", 0.9)
    assert +verdicts.counts[0] == {"failed": 1, "passed": 1}
    assert verdicts.changed == {(0, 0), (0, 1)}


def test_later_run_replaces_only_the_verdicts_of_its_cases(verdicts: Verdicts, feed: Feed) -> None:
    for ref in feed.start(("refunds", "on_time"), ("refunds", "late_parcel")):
        feed.begin(ref)
        feed.end(ref, "failed")
    (again,) = feed.start(("refunds", "on_time"), run_id="run-2")
    feed.begin(again)
    feed.end(again)
    assert +verdicts.counts[0] == {"failed": 1, "passed": 1}


def test_repeats_show_the_worst_verdict_once_all_have_ended(verdicts: Verdicts, feed: Feed) -> None:
    refs = feed.start(("refunds", "on_time"), runs=3)
    for ref, status in zip(refs, ("passed", "failed", "passed"), strict=True):
        assert verdicts.state(0, 0) in ("queued", "running")
        feed.begin(ref)
        feed.end(ref, status)  # type: ignore[arg-type]
    verdict = verdicts.by_case[0, 0]
    assert (verdict.state, verdicts.rate(0, 0).passed, verdict.deciding.repeat) == ("failed", 2, 2)
    shown = verdicts.record(0, 0, 3)
    assert shown is not None
    assert shown.state == "passed"


def test_error_of_one_repeat_hides_no_failure_of_another(verdicts: Verdicts, feed: Feed) -> None:
    for ref, status in zip(feed.start(("refunds", "on_time"), runs=3), ("error", "failed", "passed"), strict=True):
        feed.begin(ref)
        feed.end(ref, status)  # type: ignore[arg-type]
    assert verdicts.state(0, 0) == "failed"


def test_single_execution_replaces_the_repeats_of_an_earlier_run(verdicts: Verdicts, feed: Feed) -> None:
    for ref in feed.start(("refunds", "on_time"), runs=3):
        feed.begin(ref)
        feed.end(ref, "failed")
    (again,) = feed.start(("refunds", "on_time"), run_id="run-2")
    feed.begin(again)
    feed.end(again)
    assert verdicts.state(0, 0) == "passed"
    assert verdicts.repeats(0, 0) == 1


def test_verdicts_stay_with_their_case_ids_when_cases_move(
    verdicts: Verdicts, feed: Feed, make_workspace: MakeWorkspace
) -> None:
    for ref in feed.start(("refunds", "late_parcel"), ("hand_over", "to_billing")):
        feed.begin(ref)
        feed.end(ref, "failed")
    moved = make_workspace({"order_desk": {"refunds": ["new", "on_time", "late_parcel"]}})
    verdicts.bind(moved.evalsets)
    assert verdicts.state(0, 2) == "failed"
    assert verdicts.state(0, 1) == "not_run"
    assert [+counts for counts in verdicts.counts] == [{"failed": 1}]


def test_unreadable_file_has_its_own_verdict(verdicts: Verdicts, feed: Feed) -> None:
    (ref,) = feed.start(("refunds", ""))
    feed.store.apply(CaseFinished(ref, "error", CaseError("broken_file", "not JSON"), 0.0))
    assert verdicts.by_case[0, WHOLE_EVALSET].state == "error"
    assert not +verdicts.counts[0]


def test_marks_do_not_move_to_other_cases_when_the_folder_is_read_again(verdicts: Verdicts, shop: Workspace) -> None:
    verdicts.mark_stale({(1, 0): (PROMPT,)})
    verdicts.mark_flips({(1, 0): True})
    verdicts.bind(shop.evalsets[1:])
    assert (verdicts.stale, verdicts.flips) == ({}, {})


def test_case_with_an_empty_id_counts_as_a_case(make_workspace: MakeWorkspace, store: Store) -> None:
    workspace = make_workspace({"desk": {"talk": ["", "late"]}})
    verdicts, feed = Verdicts(store), Feed(store, workspace)
    verdicts.bind(workspace.evalsets)
    store.subscribe(verdicts.apply)
    for ref in feed.start(("talk", ""), ("talk", "late")):
        feed.begin(ref)
        feed.end(ref, "failed", 0.5)
    assert +verdicts.counts[0] == {"failed": 2}
    assert [case for case, _ in verdicts.of_evalset(0)] == [0, 1]


def test_marks_of_a_deleted_evalset_are_not_painted_again(verdicts: Verdicts, shop: Workspace) -> None:
    verdicts.mark_stale({(2, 0): (PROMPT,)})
    verdicts.mark_flips({(2, 1): True})
    verdicts.bind(shop.evalsets[:2])
    assert all(evalset < 2 for evalset, _ in verdicts.changed | verdicts.just_flipped)

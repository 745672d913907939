"""Running, scoring again, resuming and cancelling, without a screen."""

import json

import pytest

from tests.ui.conftest import MakeWorkspace
from tests.ui.fake_view import Bench
from tests.ui.feed import Feed
from workbench.events.events import (
    CaseFinished,
    RepeatsDropped,
    RunFinished,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
)
from workbench.files.prices import Price, Prices
from workbench.ui.actions import BY_ID, labelled
from workbench.ui.running import dialogs
from workbench.ui.running.engine_run import RepeatOptions
from workbench.ui.running.run import Request
from workbench.ui.running.run_thread import Ended, Refused
from workbench.ui.session import relative_times
from workbench.ui.session.bar import bar_facts
from workbench.ui.tree.outline import ALL


def phase(bench: Bench) -> str:
    return bench.session.store.activity.phase


def finish(bench: Bench, number: int) -> None:
    bench.tell(RunFinished(1.0, interrupted=False), Ended(number))


async def test_r_runs_the_cases_under_the_cursor(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    bench.run.run()
    assert phase(bench) == "preparing"
    await bench.view.settled()
    assert bench.thread.built == [("run", [(0, 1)], 1)]
    assert phase(bench) == "starting"
    bench.started(("refunds", "late_parcel"))
    assert phase(bench) == "running"
    finish(bench, 1)
    assert not bench.session.store.activity.busy


async def test_marked_cases_run_instead_of_the_current_one(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    bench.view.rows.marks.add([(1, 0), (0, 3)])
    bench.run.run()
    await bench.view.settled()
    assert bench.thread.built == [("run", [(0, 3), (1, 0)], 1)]


async def test_second_run_is_refused_while_the_first_is_active(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    for key in (bench.run.run, bench.run.score, bench.run.resume):
        bench.run.run()
        key()
        assert bench.view.said[-1] == "a run is active: x cancels it"
    await bench.view.settled()
    assert len(bench.thread.built) == 1


async def test_end_of_a_run_keeps_the_next_request(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    bench.run.run()
    await bench.view.settled()
    bench.started(("refunds", "late_parcel"))
    bench.tell(RunFinished(1.0, interrupted=False))
    bench.run.run()
    bench.tell(Ended(1))
    assert phase(bench) == "preparing"
    await bench.view.settled()
    bench.tell(Ended(1))
    assert phase(bench) == "starting"
    bench.started(("refunds", "late_parcel"), run_id="run-2")
    assert phase(bench) == "running"


async def test_refused_run_ends_with_a_reason(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    bench.run.run()
    await bench.view.settled()
    bench.tell(Refused("no key", "set GOOGLE_API_KEY"), Ended(1))
    assert bench.view.notices == ["no key\nset GOOGLE_API_KEY"]
    assert not bench.session.store.activity.busy


async def test_score_actions_differ_in_their_use_of_caches(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    bench.tell(*(CaseFinished(ref, "passed", None, 0.1) for ref in bench.started(("refunds", "late_parcel"))))
    finish(bench, 0)
    for number, key in enumerate((bench.run.score, bench.run.score_afresh), 1):
        key()
        await bench.view.settled()
        (ref,) = bench.started(("refunds", "late_parcel"), run_id=f"run-{number + 1}", scored_from="run-1")
        assert bench.session.store.activity.rescoring
        bench.tell(CaseFinished(ref, "passed", None, 0.1))
        finish(bench, number)
    bench.run.score_by_new_references([(0, 1)])
    await bench.view.settled()
    assert bench.thread.built == [
        ("score", [(0, 1)], False, False),
        ("score", [(0, 1)], True, False),
        ("score", [(0, 1)], False, True),
    ]


@pytest.fixture
def repeat_dialog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the repeat dialog, which needs an app, by its question."""
    monkeypatch.setattr(dialogs, "RepeatScreen", str)


async def test_run_of_more_than_100_cases_is_confirmed_once(
    bench: Bench, make_workspace: MakeWorkspace, repeat_dialog: None
) -> None:
    names = [f"case_{number}" for number in range(101)]
    bench.view.show_workspace(make_workspace({"order_desk": {"many": names[:100], "one": names[100:]}}))
    bench.put_cursor(0)
    bench.run.run()
    await bench.view.settled()
    assert bench.view.asked == [], "100 cases"
    bench.tell(Refused("no"), Ended(1))
    bench.view.rows.show(ALL)
    bench.view.answers += [None]
    bench.run.run()
    await bench.view.settled()
    assert bench.view.asked == ["run 101 cases?"]
    assert len(bench.thread.built) == 1
    assert not bench.session.store.activity.busy
    bench.view.answers += [True]
    bench.run.run()
    await bench.view.settled()
    assert bench.thread.built[1][0] == "run"
    bench.tell(Refused("no"), Ended(2))
    bench.view.answers += [RepeatOptions(3)]
    bench.run.repeat()
    await bench.view.settled()
    assert bench.view.pushed == ["repeat 101 cases"]
    assert bench.view.asked == ["run 101 cases?"] * 2, "the dialog of repeats has said how many cases there are"
    assert bench.thread.built[2][2] == 3


@pytest.mark.parametrize(
    ("request_", "question", "label"),
    [
        (Request([(0, 0)], scoring=True), "score 1 case?", "scoring again"),
        (Request([(0, 0), (0, 1)], times=3), "run 2 cases 3 times?", "starting agents"),
    ],
)
async def test_question_and_bar_say_whether_cases_run_or_are_only_scored(
    bench: Bench, request_: Request, question: str, label: str
) -> None:
    bench.view.answers += [True]
    bench.run.start(request_, most=0)
    await bench.view.settled()
    assert bench.view.asked == [question]
    assert bench.session.starting == label
    assert len(bench.thread.built) == 1


async def test_run_of_a_high_known_cost_is_confirmed_once(bench: Bench, repeat_dialog: None) -> None:
    bench.session.prices = Prices({"flash": Price(1.0, 0.0)})
    (ref,) = bench.started(("refunds", "late_parcel"))
    spans = [{"kind": "model", "name": "flash", "id": 1, "start": 0.0, "end": 1.0, "tokens": [400_000, 0]}]
    bench.tell(
        TurnStarted(ref, 0, {}),
        SpansRecorded(ref, 0, json.dumps(spans)),
        TurnFinished(ref, 0, {}),
        CaseFinished(ref, "passed", None, 0.1, usage=Usage(model_calls=1)),
    )
    finish(bench, 1)
    bench.put_cursor(0, 1)
    bench.run.run()
    await bench.view.settled()
    assert bench.view.asked == [], "$0.40"
    bench.tell(Refused("no"), Ended(1))
    bench.view.answers += [RepeatOptions(3), True]
    bench.run.repeat()
    await bench.view.settled()
    assert bench.view.asked == ["run 1 case 3 times?"]
    bench.tell(Refused("no"), Ended(2))
    bench.put_cursor(0)
    bench.view.answers += [None]
    bench.run.run()
    await bench.view.settled()
    assert bench.view.asked[1:] == ["run 4 cases?"], "the others are assumed to cost the same"


def test_capital_f_says_why_no_case_can_be_rerun(bench: Bench) -> None:
    bench.run.rerun()
    assert bench.view.said == ["nothing has run yet"]
    bench.session.loading = "results"
    bench.run.rerun()
    assert bench.view.said[-1] == "results are still loading"


async def test_x_cancels_then_kills_and_a_new_run_starts_over(bench: Bench) -> None:
    bench.put_cursor(0, 1)
    bench.run.cancel()
    assert bench.view.said == ["nothing is running here"]
    for number in (1, 2):
        bench.run.run()
        await bench.view.settled()
        (ref,) = bench.started(("refunds", "late_parcel"), run_id=f"run-{number}")
        labels = [labelled(BY_ID["cancel"], bench.view.situation).label]
        for _ in range(2):
            bench.run.cancel()
            labels.append(labelled(BY_ID["cancel"], bench.view.situation).label)
        assert labels == ["cancel 1", "kill 1", "kill 1"], "the footer says what the next key does"
        assert bench.view.said[-2:] == ["cancelling 1 case: cancel again to kill", "killing 1 case"]
        assert bar_facts(bench.session, 1, relative_times.now()).phase == "cancelling"
        assert bench.thread.cancelled[-2:] == [([ref], False), ([ref], True)]
        bench.tell(CaseFinished(ref, "cancelled", None, 0.1))
        finish(bench, number)


async def test_cancelled_repeat_may_be_dropped_because_the_others_are_sure(bench: Bench) -> None:
    first, second = Feed(bench.session.store, bench.workspace).start(("refunds", "late_parcel"), runs=2)
    bench.run.cancel_all()
    bench.tell(CaseFinished(first, "passed", None, 0.1), RepeatsDropped((second,)))
    assert bar_facts(bench.session, 1, relative_times.now()).phase == ""


async def test_resume_needs_an_open_folder_and_no_active_run(bench: Bench) -> None:
    bench.run.resume()
    assert bench.thread.built == ["resume"]
    assert phase(bench) == "starting"
    bench.tell(Ended(1))
    bench.session.workspace = None
    bench.run.resume()
    assert bench.view.said == ["still reading the folder"]


async def test_changed_criteria_apply_to_one_run_only(bench: Bench) -> None:
    config = bench.session.entry(0).criteria.config
    draft = bench.session.draft
    draft.change(config.path, {"criteria": {"safety_v1": 0.8}}, {"criteria": {"safety_v1": 0.5}})
    bench.put_cursor(0, 1)
    bench.run.run()
    await bench.view.settled()
    bench.tell(Refused("no"), Ended(1))
    assert not draft.empty, "nothing ran with them"
    bench.run.run()
    await bench.view.settled()
    bench.started(("refunds", "late_parcel"))
    assert draft.empty

import json
from collections import Counter
from dataclasses import replace

import pytest

from tests.cli.stores import PASSED as ON_TIME
from tests.cli.stores import case_events
from tests.cli.stores import started as started_run
from workbench.events.event_json import from_json, to_json
from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    JudgeWaits,
    MetricResult,
    MetricScored,
    Noticed,
    OutputCaptured,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.store.details import read_details
from workbench.store.history.summary import summarize_events
from workbench.store.rates import rate_of
from workbench.store.store import Store
from workbench.store.transcripts import collect, stored_case

ONE = CaseRef("desk", "desk/r.evalset.json", "r", "one")
TWO = CaseRef("desk", "desk/r.evalset.json", "r", "two")


def started(*refs: CaseRef, run_id: str = "run-1") -> RunStarted:
    return RunStarted(
        run_id, "/root", "2026-01-01T00:00:00Z", tuple(PlannedCase(ref, None, "defaults") for ref in refs)
    )


def whole_case(ref: CaseRef, status: CaseStatus = "passed") -> list[Event]:
    user = {"role": "user", "parts": [{"text": "hi"}]}
    metric = MetricResult("response_match_score", "passed", 1.0, 0.8)
    return [
        CaseStarted(ref, 0.1, ({"user_content": user},), {"response_match_score": 0.8}),
        TurnStarted(ref, 0, user),
        AgentActed(ref, 0, {"author": "desk"}),
        OutputCaptured(ref, "stdout", "a"),
        OutputCaptured(ref, "stdout", "b"),
        TurnFinished(ref, 0, {"user_content": user, "final_response": None}, note="MAX_TOKENS"),
        MetricScored(ref, metric, (metric,)),
        CaseFinished(ref, status, None, 1.5),
    ]


def apply(store: Store, *events: Event) -> None:
    for event in events:
        store.apply(event)


def test_case_goes_from_queued_to_passed() -> None:
    store = Store()
    apply(store, started(ONE, TWO))
    assert store.counts() == {"queued": 2}
    apply(store, *whole_case(ONE))
    record = store.records[ONE]
    assert record.finished
    assert read_details(record).output == {"stdout": "ab"}
    assert read_details(record).turns[0].note == "MAX_TOKENS"
    assert read_details(record).turns[0].metrics["response_match_score"].score == 1.0
    assert read_details(record).metrics["response_match_score"].status == "passed"
    assert store.counts() == {"passed": 1, "queued": 1}


def test_states_are_counted_with_each_event() -> None:
    """Whatever came, the counts are what a look at every record would give."""
    store = Store()
    cut = [event for event in whole_case(TWO) if not isinstance(event, CaseFinished)]
    restart = [
        started(TWO),
        *whole_case(TWO, "error"),
        RunFinished(1.0),
        RunResumed("2026-01-01T00:00:00Z"),
        *whole_case(TWO),
    ]
    for event in (started(ONE, TWO), *whole_case(ONE, "failed"), *cut, *whole_case(ONE), *restart):
        store.apply(event)
        assert store.counts() == Counter(record.state for record in store.current_records())
    apply(store, started(TWO, run_id="run-2"))
    assert store.reinstate([TWO]) == [TWO]
    assert store.counts() == {"passed": 1}
    assert store.records[TWO].run_id == "run-1"


def test_new_run_replaces_only_the_cases_that_it_runs() -> None:
    store = Store()
    apply(store, started(ONE, TWO), *whole_case(ONE, "failed"), *whole_case(TWO), RunFinished(2.0))
    assert [record.ref for record in store.problems()] == [ONE]
    apply(store, started(ONE, run_id="run-2"))
    assert store.run.run_id == "run-2"
    assert store.records[ONE].state == "queued"
    assert store.records[TWO].state == "passed"
    assert store.counts() == {"queued": 1}


CANCELLED = CaseError("cancelled", "cancelled before it started")


def test_cancelled_case_is_neither_error_nor_problem() -> None:
    store = Store()
    apply(store, started(ONE, TWO), CaseFinished(ONE, "cancelled", CANCELLED, 0.0), RunFinished(1.0, True))
    assert store.counts() == {"cancelled": 2}
    assert not list(store.problems())
    assert [record.has_verdict for record in store.current_records()] == [False, False]
    error = store.records[TWO].error
    assert error is not None
    assert (error.kind, error.message) == ("cancelled", "the run ended before this case started")


def test_cancelled_case_replaces_no_earlier_verdict() -> None:
    store = Store()
    apply(store, started(ONE, TWO), *whole_case(ONE, "failed"), *whole_case(TWO), RunFinished(2.0))
    apply(store, started(ONE, TWO, run_id="run-2"), CaseFinished(ONE, "cancelled", CANCELLED, 0.0))
    assert (store.records[ONE].state, store.records[ONE].run_id) == ("failed", "run-1")
    assert store.reinstated == {(ONE.evalset_file, ONE.eval_id): [ONE]}
    apply(store, RunFinished(2.0, True))
    assert (store.records[TWO].state, store.records[TWO].run_id) == ("passed", "run-1")
    # The run itself decided nothing.
    assert store.counts() == {"cancelled": 2}
    assert [record.state for record in store.current_records()] == ["cancelled", "cancelled"]
    apply(store, started(ONE, run_id="run-3"))
    assert (ONE.evalset_file, ONE.eval_id) not in store.reinstated


def test_cancelled_repeats_leave_the_verdict_of_the_others() -> None:
    refs = [replace(ONE, repeat=number) for number in (1, 2, 3)]
    store = Store()
    apply(store, started(*refs), *(event for ref in refs for event in whole_case(ref, "failed")), RunFinished(2.0))
    apply(store, started(*refs, run_id="run-2"), *whole_case(refs[0]), RunFinished(2.0, True))
    assert {ref: store.records[ref].run_id for ref in refs} == dict.fromkeys(refs, "run-2")
    assert rate_of(store.records[ref] for ref in refs).rate == 1.0
    # Without any verdict the earlier ones stand again, all of them.
    apply(store, started(*refs, run_id="run-3"), RunFinished(2.0, True))
    assert [store.records[ref].state for ref in refs] == ["passed", "cancelled", "cancelled"]
    apply(store, started(refs[0], run_id="run-4"), RunFinished(2.0, True))
    assert store.reinstated == {(ONE.evalset_file, ONE.eval_id): [refs[0]]}


def test_verdict_of_a_later_repeat_stays_however_often_the_first_is_cancelled() -> None:
    refs = [replace(ONE, repeat=number) for number in (1, 2)]
    store = Store()
    ended = CaseFinished(refs[0], "cancelled", CANCELLED, 0.0)
    apply(store, started(*refs), ended, *whole_case(refs[1], "failed"), RunFinished(2.0, True))
    for number in (2, 3):
        apply(store, started(refs[0], run_id=f"run-{number}"), RunFinished(2.0, True))
        assert store.reinstated == {(ONE.evalset_file, ONE.eval_id): [refs[1]]}
        assert [(one.ref, one.state) for one in store.latest_verdicts()] == [(refs[1], "failed")]


def test_cancelled_cases_of_older_journals_are_read_as_cancelled() -> None:
    data = to_json(CaseFinished(ONE, "cancelled", CANCELLED, 0.0)) | {"status": "error"}
    event = from_json(data)
    assert isinstance(event, CaseFinished)
    assert event.status == "cancelled"
    (found,) = summarize_events([started(ONE), event]).executions.values()
    assert found.state == "cancelled"


def test_listeners_are_called_after_the_state_is_updated() -> None:
    store = Store()
    heard: list[tuple[Event, str]] = []
    end = store.subscribe(lambda event: heard.append((event, store.run.run_id)))
    apply(store, started(ONE), Noticed("info", "no fork here"))
    end()
    apply(store, RunFinished(1.0, interrupted=True))
    assert [run_id for _, run_id in heard] == ["run-1", "run-1"]
    assert store.run.interrupted
    assert store.notices[0].message == "no fork here"


def test_second_attempt_discards_the_first() -> None:
    store = Store()
    apply(store, started(ONE), *whole_case(ONE)[:4], *whole_case(ONE))
    assert len(read_details(store.records[ONE]).turns) == 1
    assert read_details(store.records[ONE]).output == {"stdout": "ab"}


def test_transcript_of_this_session_still_says_which_inputs_were_not_seen() -> None:
    store = Store()
    end = CaseFinished(ONE, "passed", None, 1.5, unseen=("child programs",))
    apply(store, started(ONE), *whole_case(ONE)[:-1], end)
    finished = stored_case(read_details(store.records[ONE])).finished
    assert finished is not None
    assert finished.unseen == ("child programs",)


def test_only_the_end_of_long_output_is_kept() -> None:
    store = Store()
    apply(store, started(ONE), OutputCaptured(ONE, "stderr", "x" * 500_000), OutputCaptured(ONE, "stderr", "end"))
    assert len(read_details(store.records[ONE]).output["stderr"]) == 200_000
    assert read_details(store.records[ONE]).output["stderr"].endswith("xend")


def test_event_of_an_unknown_case_raises() -> None:
    with pytest.raises(KeyError):
        Store().apply(CaseFinished(ONE, "passed", None, 1.0))


def test_verdicts_are_in_the_order_of_the_criteria() -> None:
    store = Store()
    criteria = {"judged": 0.5, "computed": 1.0}
    user = {"role": "user", "parts": [{"text": "hi"}]}
    apply(store, started(ONE), CaseStarted(ONE, 0.1, None, criteria), TurnStarted(ONE, 0, user))
    for name in ("computed", "measured besides", "judged"):
        result = MetricResult(name, "passed", 1.0, 0.5)
        store.apply(MetricScored(ONE, result, (result,)))
    record = store.records[ONE]
    assert (
        list(read_details(record).metrics)
        == list(read_details(record).turns[0].metrics)
        == ["judged", "computed", "measured besides"]
    )


def test_dropped_repeats_are_removed() -> None:
    refs = [CaseRef("agent", "file", "set", "case", repeat) for repeat in range(1, 5)]
    planned = tuple(PlannedCase(ref, None, "") for ref in refs)
    events: list[Event] = [
        RunStarted("run", "/", "2026-01-01T00:00:00Z", planned, until_sure=0.9),
        CaseStarted(refs[0], 0.0, (), {}),
        RepeatsDropped(tuple(refs[2:])),
    ]
    assert [from_json(json.loads(json.dumps(to_json(event)))) for event in events] == events
    store = Store()
    for event in events:
        store.apply(event)
    assert (store.current, store.run.until_sure) == (refs[:2], 0.9)
    assert list(store.records) == refs[:2]
    assert list(collect(events).cases) == refs[:2]
    assert list(summarize_events(events).executions) == refs[:2]


def test_case_dropped_from_a_run_gets_its_earlier_verdict_back() -> None:
    store = Store()
    apply(store, started_run([ON_TIME]), *case_events(ON_TIME, "passed"), RunFinished(1.0))
    dropped = RepeatsDropped((ON_TIME,), ONE)
    assert from_json(json.loads(json.dumps(to_json(dropped)))) == dropped
    apply(store, replace(started_run([ONE, ON_TIME]), run_id="later"), dropped, *case_events(ONE, "failed"))
    assert (store.current, store.run.cut_short_by, store.counts()) == ([ONE], ONE, {"failed": 1})
    assert {record.ref: record.state for record in store.latest_verdicts()} == {ONE: "failed", ON_TIME: "passed"}


def test_case_whose_other_repeats_are_dropped_after_one_is_cancelled_keeps_its_earlier_verdict() -> None:
    again = replace(ONE, repeat=2)
    store = Store()
    apply(store, started(ONE), *whole_case(ONE), RunFinished(1.0))
    apply(store, started(ONE, again, TWO, run_id="run-2"))
    apply(store, CaseFinished(ONE, "cancelled", CaseError("cancelled", "x"), 0.0), *whole_case(TWO, "failed"))
    apply(store, RepeatsDropped((again,), TWO), RunFinished(1.0))
    assert {(one.run_id, one.state) for one in store.latest_verdicts()} == {("run-1", "passed"), ("run-2", "failed")}
    assert store.counts() == Counter(cancelled=1, failed=1)


def test_only_verdicts_of_the_last_owner_count() -> None:
    store, late = Store(), replace(ON_TIME, agent="?")
    error = CaseError("no_agent", "the evalset belongs to no agent")
    apply(store, started_run([late]), CaseFinished(late, "error", error, 0.0), RunFinished(1.0))
    assert [record.state for record in store.latest_verdicts()] == ["error"]
    apply(store, replace(started_run([ON_TIME]), run_id="later"), *case_events(ON_TIME, "passed"), RunFinished(1.0))
    assert [(record.ref.agent, record.state) for record in store.latest_verdicts()] == [("desk", "passed")]


def test_cancelled_run_with_a_new_owner_keeps_the_old_verdict() -> None:
    store, late = Store(), replace(ON_TIME, agent="?")
    error = CaseError("no_agent", "the evalset belongs to no agent")
    apply(store, started_run([late]), CaseFinished(late, "error", error, 0.0), RunFinished(1.0))
    apply(store, replace(started_run([ON_TIME]), run_id="later"), RunFinished(1.0, interrupted=True))
    assert [(record.ref.agent, record.state) for record in store.latest_verdicts()] == [("?", "error")]


def test_activity_follows_a_run_from_request_to_end() -> None:
    store = Store()
    assert (store.activity.phase, store.activity.busy) == ("idle", False)
    store.request_run()
    assert (store.activity.phase, store.activity.starting, store.activity.busy) == ("preparing", True, True)
    store.hand_over(1)
    assert (store.activity.phase, store.activity.starting) == ("starting", True)
    ref = CaseRef("desk", "f.evalset.json", "f", "one")
    store.apply(RunStarted("run-1", "/", "2026-11-21T10:30:00Z", (PlannedCase(ref, None, "defaults"),)))
    assert (store.activity.phase, store.activity.starting, store.activity.unfinished) == ("running", False, 1)
    store.apply(JudgeWaits("gemini-2.5-flash", 0.0, 12.0, "quota"))
    assert [wait.model for wait in store.activity.waits] == ["gemini-2.5-flash"]
    store.apply(RunFinished(1.0, interrupted=False))
    assert (store.activity.phase, store.activity.unfinished, store.activity.waits) == ("idle", 0, ())


def test_number_of_another_run_does_not_drop_a_run_request() -> None:
    store = Store()
    store.request_run()
    store.drop_request(1)
    assert store.activity.starting
    store.hand_over(2)
    store.drop_request(1)
    assert store.activity.starting
    store.drop_request(2)
    assert not store.activity.busy
    store.request_run("score")
    assert store.activity.watch_job == "score"
    store.drop_request()
    assert not store.activity.busy

import json
from collections import Counter

import pytest

from workbench.engine.transcripts import collect
from workbench.event_json import from_json, to_json
from workbench.events import (
    AgentActed,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
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
from workbench.history.summary import gather
from workbench.store import CaseRecord, Store

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


def test_a_case_from_queued_to_passed() -> None:
    store = Store()
    apply(store, started(ONE, TWO))
    assert store.counts() == {"queued": 2}
    apply(store, *whole_case(ONE))
    record = store.records[ONE]
    assert record.finished
    assert record.output == {"stdout": "ab"}
    assert record.turns[0].note == "MAX_TOKENS"
    assert record.turns[0].metrics["response_match_score"].score == 1.0
    assert record.metrics["response_match_score"].status == "passed"
    assert store.counts() == {"passed": 1, "queued": 1}


def test_states_are_counted_along() -> None:
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
    store.put_back(CaseRecord(store.records[TWO].planned, state="failed"))
    assert store.counts() == {"failed": 1}


def test_a_new_run_forgets_only_what_it_runs_again() -> None:
    store = Store()
    apply(store, started(ONE, TWO), *whole_case(ONE, "failed"), *whole_case(TWO), RunFinished(2.0))
    assert [record.ref for record in store.problems()] == [ONE]
    apply(store, started(ONE, run_id="run-2"))
    assert store.run.run_id == "run-2"
    assert store.records[ONE].state == "queued"
    assert store.records[TWO].state == "passed"
    assert store.counts() == {"queued": 1}


def test_listeners_hear_each_event_after_it_is_true() -> None:
    store = Store()
    heard: list[tuple[Event, str]] = []
    end = store.subscribe(lambda event: heard.append((event, store.run.run_id)))
    apply(store, started(ONE), Noticed("info", "no fork here"))
    end()
    apply(store, RunFinished(1.0, interrupted=True))
    assert [run_id for _, run_id in heard] == ["run-1", "run-1"]
    assert store.run.interrupted
    assert store.notices[0].message == "no fork here"


def test_a_case_that_starts_again_forgets_its_first_start() -> None:
    store = Store()
    apply(store, started(ONE), *whole_case(ONE)[:4], *whole_case(ONE))
    assert len(store.records[ONE].turns) == 1
    assert store.records[ONE].output == {"stdout": "ab"}


def test_a_flood_of_output_keeps_its_end() -> None:
    store = Store()
    apply(store, started(ONE), OutputCaptured(ONE, "stderr", "x" * 500_000), OutputCaptured(ONE, "stderr", "end"))
    assert len(store.records[ONE].output["stderr"]) == 200_000
    assert store.records[ONE].output["stderr"].endswith("xend")


def test_an_event_about_an_unannounced_case_is_a_fault() -> None:
    with pytest.raises(KeyError):
        Store().apply(CaseFinished(ONE, "passed", None, 1.0))


def test_verdicts_stand_in_the_order_of_the_criteria_whichever_comes_first() -> None:
    store = Store()
    criteria = {"judged": 0.5, "computed": 1.0}
    user = {"role": "user", "parts": [{"text": "hi"}]}
    apply(store, started(ONE), CaseStarted(ONE, 0.1, None, criteria), TurnStarted(ONE, 0, user))
    for name in ("computed", "measured besides", "judged"):
        result = MetricResult(name, "passed", 1.0, 0.5)
        store.apply(MetricScored(ONE, result, (result,)))
    record = store.records[ONE]
    assert list(record.metrics) == list(record.turns[0].metrics) == ["judged", "computed", "measured besides"]


def test_executions_that_are_not_needed_any_more_are_gone_from_everywhere() -> None:
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
    assert [row["ref"][-1] for row in gather(map(to_json, events)).rows.values()] == [1, 2]

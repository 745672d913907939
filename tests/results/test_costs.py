"""The cost of executions: known as a whole or not at all."""

import json

from workbench.events.events import (
    CaseRef,
    FaultHandling,
    MetricResult,
    PlannedCase,
    SpansRecorded,
    Usage,
    UserSimulated,
)
from workbench.files.prices import Price, Prices, case_cost
from workbench.results.costs import conversation_cost, costs, not_known
from workbench.results.document import Subject
from workbench.results.lines import View
from workbench.results.trace import build
from workbench.store.execution import CaseRecord, Turn


def paid(name: str, model: str, *, told: bool = True) -> CaseRecord:
    """Build a case in which the agent called `model` once.

    If `told`, the model reported a thousand tokens in and out.
    """
    made = CaseRecord(PlannedCase(CaseRef("desk", "desk/talk.evalset.json", "talk", name), None, ""), "passed")
    made.usage = Usage(1, 10, 0, judge_output_tokens=1)
    tokens = {"usage_metadata": {"prompt_token_count": 1000, "candidates_token_count": 1000}} if told else {}
    event = {"author": "desk", "model_version": model, "content": {"parts": [{"text": "yes"}]}, **tokens}
    made.turns = [Turn({}, acted=[event])]
    return made


def test_cost_without_a_price_is_unknown_and_names_the_model() -> None:
    assert costs([paid("a", "m")], None) is None
    assert costs([paid("a", "m")], Prices()) is None
    records = [paid("cheap", "m"), paid("dear", "l"), paid("unpriced", "x"), paid("silent", "m", told=False)]
    records += [paid("judged", "m"), paid("of_a_report", "m")]
    tally = {"calls": 1, "input_tokens": 1000, "output_tokens": 0}
    details = {"judge": {"model": "judge"}, "tally": tally}
    records[4].metrics["match"] = MetricResult("match", "passed", 1.0, 0.8, "", details)
    records[5].turns = []
    found = costs(records, Prices({"m": Price(1.0, 1.0), "l": Price(5.0, 5.0)}, "EUR"))
    assert found is not None
    assert {ref.eval_id: amount for ref, amount in found.amounts.items()} == {"cheap": 0.002, "dear": 0.01}
    assert (found.unknown, found.missing) == (4, ("judge", "m", "the agent's model", "x"))
    assert not_known(found) == "unknown for 4 executions: no price or token count for judge, m, the agent's model, x"


def test_judging_how_a_fault_was_handled_is_part_of_the_cost() -> None:
    record, prices = paid("a", "m"), Prices({"m": Price(1.0, 1.0), "judge": Price(1.0, 1.0)})
    replies = [{"input_tokens": 1000, "output_tokens": 0}, {"input_tokens": 500, "output_tokens": 0, "cached": True}]
    record.handling = FaultHandling("silent", "", {"questions": [{"judge": {"model": "judge"}, "replies": replies}]})
    found = costs([record], prices)
    assert found is not None
    assert found.amounts[record.ref] == 0.003
    assert case_cost([], (), record.handling, prices) == 0.001
    assert case_cost([], (), record.handling, Prices({"m": Price(1.0, 1.0)})) is None


def test_transcript_that_is_scored_again_costs_only_its_judges() -> None:
    record, prices = paid("a", "m"), Prices({"m": Price(1.0, 1.0), "judge": Price(1.0, 1.0)})
    reply = {"input_tokens": 1000, "output_tokens": 0}
    record.simulated = [UserSimulated(record.ref, 0, "", {"judge": {"model": "judge"}, "replies": [reply]})]
    record.usage, record.rescored = Usage(judge_calls=1), True
    details = {"judge": {"model": "judge"}, "tally": {"calls": 1, **reply}}
    record.metrics["match"] = MetricResult("match", "passed", 1.0, 0.8, "", details)
    found = costs([record], prices)
    assert found is not None
    assert found.amounts[record.ref] == 0.001


def test_cost_is_unknown_if_the_trace_lacks_some_model_calls() -> None:
    record = paid("a", "m")
    record.usage = Usage(2, 2000, 2000)
    found = costs([record], Prices({"m": Price(1.0, 1.0)}))
    assert found is not None
    assert (dict(found.amounts), found.unknown, found.missing) == ({}, 1, ("the agent's model",))


def test_cost_of_an_agent_in_plain_python_is_unknown_unless_it_reports_a_call() -> None:
    prices = Prices({"": Price(1.0, 1.0)})
    agent, call = {"id": 1, "kind": "agent", "name": "desk", "start": 0.0}, {"id": 2, "kind": "model", "start": 0.0}
    silent, telling, adk = paid("silent", "m"), paid("telling", "m"), paid("adk", "m")
    for record, spans in (
        (silent, [agent]),
        (telling, [agent, {**call, "name": "", "tokens": [1000, 0]}]),
        (adk, [{**agent, "type": "LlmAgent"}]),
    ):
        record.usage = Usage(len(spans) - 1)
        record.turns = [Turn({}, spans=SpansRecorded(record.ref, 0, json.dumps(spans), {}))]
    found = costs([silent, telling, adk], prices)
    assert found is not None
    assert {ref.eval_id: amount for ref, amount in found.amounts.items()} == {"telling": 0.001, "adk": 0.0}
    assert not_known(found) == "unknown for 1 execution: no price or token count for the agent's model"


def test_replayed_model_calls_cost_nothing() -> None:
    record = paid("a", "m")
    record.usage = Usage(2, 2000, 2000)
    calls = [{"id": number, "kind": "model", "name": "m", "start": 0.0, "tokens": [1000, 1000]} for number in (1, 2)]
    spans = json.dumps([{**calls[0], "frozen": True}, calls[1]])
    record.turns = [Turn({}, spans=SpansRecorded(record.ref, 0, spans, {}))]
    prices = Prices({"m": Price(1.0, 1.0)})
    found = costs([record], prices)
    assert found is not None
    assert found.amounts[record.ref] == 0.002
    pane = [line.plain for line in build(Subject(record, prices=prices), View(100)).lines]
    assert "2 model calls · $0.0020" in pane[0]
    again = conversation_cost([turn.spans for turn in record.turns], prices)
    assert again.cost == 0.004, "an estimate of a live run counts all calls"

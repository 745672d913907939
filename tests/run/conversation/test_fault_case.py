"""What an agent did about a fault, from the events of its conversation and at most one question to a judge."""

import json
from collections.abc import Sequence
from typing import Any

from workbench.criteria.base import Scored
from workbench.events.events import CallsRecorded, CaseError, CaseRef, FaultHandling, MetricResult, ToolFault
from workbench.files.criteria import CriteriaConfig, default_config
from workbench.files.evalset import EvalCase
from workbench.run.conversation.transcript import Transcript, Verdicts, fault_handling

REF = CaseRef("desk", "a.evalset.json", "a", "one")
FAULT = ToolFault("find", "timeout")
CASE = EvalCase("one", (), None, None, (), None, {})
INJECTED = {"kind": "tool", "tool": "find", "args": "a", "order": 0, "from": "injected", "error": {}}


def calls(turn: int, *items: dict[str, Any]) -> CallsRecorded:
    return CallsRecorded(REF, turn, json.dumps(items))


def answer(text: str) -> dict[str, Any]:
    return {"final_response": {"parts": [{"text": text}]}}


class Judge:
    """A judge whose result is `scored`, or that was stopped if there is none. `asked` are the turns it got."""

    def __init__(self, *scored: Scored) -> None:
        self.scored = list(scored)
        self.asked: list[Sequence[dict[str, Any]]] = []

    async def ask(self, config: CriteriaConfig, turns: Sequence[dict[str, Any]]) -> Verdicts:
        self.asked.append(turns)
        return Verdicts("error", CaseError("cancelled", "stopped"), self.scored)


async def handled(transcript: Transcript, judge: Judge, *events: CallsRecorded) -> FaultHandling:
    config = default_config()
    return await fault_handling(FAULT, config, events, transcript, CASE, judge.ask)


async def test_judge_gets_the_turn_with_the_fault() -> None:
    rows = [
        {"rubric_id": "reports_it", "verdict": "yes", "rationale": "it says so"},
        {"rubric_id": "invents_nothing", "verdict": "yes", "rationale": ""},
    ]
    name = "rubric_based_final_response_quality_v1"
    turn = MetricResult(name, "passed", 1.0, 1.0, "", {"rubrics": rows})
    judge = Judge(Scored(MetricResult("other", "passed")), Scored(MetricResult(name, "passed", 1.0, 1.0), (turn,)))
    transcript = Transcript([answer("one"), answer("no luck"), answer("three")])
    found = await handled(transcript, judge, calls(0), calls(1, INJECTED))
    assert (found.outcome, found.reason) == ("reported", "it says so")
    assert judge.asked == [[answer("no luck")]]


async def test_judge_is_not_asked_if_rules_decide() -> None:
    judge = Judge()
    found = await handled(Transcript([answer("On 12 May")]), judge, calls(0, INJECTED))
    assert (found.outcome, found.facts_without_source) == ("made_up", ("12 May",))
    assert not judge.asked


async def test_judge_that_was_stopped_decides_nothing() -> None:
    found = await handled(Transcript([answer("hm")]), Judge(), calls(0, INJECTED))
    assert (found.outcome, found.reason) == ("not_evaluated", "stopped")


async def test_crash_in_the_middle_of_the_turn_with_the_fault_is_noticed() -> None:
    transcript = Transcript([answer("one")], CaseError("agent_raised", "KeyError: 'x'"))
    found = await handled(transcript, Judge(), calls(1, INJECTED))
    assert (found.outcome, found.reason) == ("crashed", "KeyError: 'x'")

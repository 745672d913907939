"""The request to the service for a whole conversation, and the result of its rating."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, call, event, request, result, said, turn, verdicts
from tests.services.scripted_vertex import ScriptedVertex, rated
from workbench.criteria.base import NotScorableError
from workbench.criteria.judged.agents_cli import conversation_sent
from workbench.criteria.registry import descriptions, score_with_bench

NAMES = [name for name in descriptions() if name.startswith("multi_turn_")]
DESK = {
    "name": "desk",
    "instructions": "Be kind.",
    "tool_declarations": [{"function_declarations": [{"name": "find"}]}],
}
TURNS = (
    turn(
        "It is late.",
        event("desk", said("I look."), call("find", {"id": 7}, "call_1")),
        event("desk", result("find", {"state": "late"}, "call_1")),
        {"author": "desk"},
        user="Where is it?",
        invocation_id="turn_1",
        app_details={"agent_details": {"desk": DESK}},
    ),
    turn(None, user="Thanks", invocation_id="turn_2", intermediate_data={"tool_uses": [{"name": "f", "args": {}}]}),
)
RUBRICS = [
    {"id": "r1", "text": "The state is told.", "met": True, "reasoning": "It is."},
    {"id": "r2", "text": "The user is thanked.", "met": False, "reasoning": "Nobody did."},
]


def bench(rating: dict[str, Any], sent: list[Any] | None = None) -> Bench:
    def rate(metric: str, instance: Any) -> Any:
        if sent is not None:
            sent.append((metric, instance))
        return rating

    return Bench(verdicts(), ratings=rate)


@pytest.mark.parametrize("name", NAMES)
async def test_conversation_is_rated_once_and_its_last_turn_shows_the_score(name: str) -> None:
    sent: list[Any] = []
    scored = await score_with_bench(
        request(name, *TURNS, expected=None), bench({"score": 0.5, "rubrics": RUBRICS}, sent)
    )
    assert [metric for metric, _ in sent] == [name]
    assert (scored.result.status, scored.result.score) == ("passed", 0.5)
    assert [(each.status, each.score) for each in scored.turns] == [("not_applicable", None), ("passed", 0.5)]
    assert scored.result.reason == (
        "rated 0.5: 1 of 2 rubrics of the service met, not: The user is thanked. (Nobody did.)"
    )
    found = [(each["rubric_id"], each["verdict"], each["score"]) for each in scored.result.details["rubrics"]]
    assert found == [("The state is told.", "yes", 1.0), ("The user is thanked.", "no", 0.0)]
    assert scored.result.details["rubrics"][1]["rationale"] == "Nobody did."
    assert scored.result.details["rubrics"] == scored.turns[1].details["rubrics"]


async def test_scenario_is_rated_but_not_a_conversation_without_turns() -> None:
    scenario = {"starting_prompt": "Where is it?", "conversation_plan": "Find it."}
    scored = await score_with_bench(request(NAMES[0], *TURNS, expected=None, scenario=scenario), bench({"score": 1.0}))
    assert scored.result.status == "passed"
    assert (await score_with_bench(request(NAMES[0], expected=None), bench({}))).result.status == "not_applicable"


async def test_reference_of_another_length_is_refused() -> None:
    with pytest.raises(NotScorableError, match="expected 1 turn, got 2"):
        await score_with_bench(request(NAMES[0], *TURNS, expected=TURNS[:1]), bench({"score": 1.0}))


FAILED = {"score": None, "error": {"kind": "http", "code": "500", "message": "it broke"}}


@pytest.mark.parametrize("rating", [FAILED, {"score": None, "rubrics": RUBRICS}, {"score": float("nan")}])
async def test_missing_score_is_an_error_that_keeps_the_rubrics(rating: dict[str, Any]) -> None:
    scored = await score_with_bench(request(NAMES[0], *TURNS, expected=None), bench(rating))
    assert (scored.result.status, scored.result.score) == ("error", None)
    assert len(scored.result.details["rubrics"]) == len(rating.get("rubrics", ()))


async def test_missing_project_gives_not_evaluated() -> None:
    scored = await score_with_bench(request(NAMES[0], *TURNS, expected=None), Bench(verdicts()))
    assert (scored.result.status, scored.turns) == ("not_evaluated", ())


def test_random_ids_do_not_change_the_question() -> None:
    other = json.loads(json.dumps(TURNS).replace("call_1", "adk-4711").replace("turn_1", "e-4712"))
    assert conversation_sent(other) == conversation_sent(TURNS)


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("google.adk", "agentplatform", "pandas")), reason="needs google-adk[eval]"
)
def test_request_equals_adks(repository: Path, tmp_path: Path) -> None:
    given = {"turns": TURNS, "sent": conversation_sent(TURNS)}
    with ScriptedVertex(lambda asked: rated(0.5)) as service:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.criteria.judged.adk_conversation", service.url, *NAMES],
            cwd=repository,
            input=json.dumps(given),
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    requests = [asked.request.body for asked in service.asked]
    assert len(NAMES) == 3
    assert len(requests) == 6
    assert requests[:3] == requests[3:]

"""Problems of a case under its criteria."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.declared_tools import ArgumentType, DeclaredTool, DeclaredTools
from workbench.editing.check.criteria_rules import case_problems, history_problem
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.evalset import EvalCase, open_evalset

TEXT = {"order_id": ArgumentType(frozenset({"text"}))}
FIND = DeclaredTool("find", ("order_id", "exact"), frozenset({"order_id"}), types=TEXT)
TOOLS = DeclaredTools({"find": FIND}, complete=True)
COMPARING = ("tool_trajectory_avg_score",)
OPEN = DeclaredTools(TOOLS.tools, complete=False)
USER = {"parts": [{"text": "hello"}]}
ANSWER = {"parts": [{"text": "hi"}]}


def _case(*turns: dict[str, Any], **fields: Any) -> EvalCase:
    values = {"scenario": None, "session_input": None, "rubrics": (), "final_session_state": None, "raw": {}, **fields}
    return EvalCase(eval_id="a", turns=turns, **values)


def _criteria(*names: str, **options: Any) -> CriteriaConfig:
    return CriteriaConfig(None, tuple(Criterion(name, 1.0, 1.0, options) for name in names))


def _found(case: EvalCase, *names: str, tools: DeclaredTools = TOOLS) -> list[tuple[str, tuple[str | int, ...]]]:
    return [(rule, breach.location) for rule, breach in case_problems(case, _criteria(*names), tools)]


def _calling(name: str, **args: Any) -> dict[str, Any]:
    return {
        "user_content": USER,
        "final_response": ANSWER,
        "intermediate_data": {"tool_uses": [{"name": name, "args": args}]},
    }


def test_good_case_has_no_problems() -> None:
    case = _case(_calling("find", order_id="A-1"))
    assert _found(case, "response_match_score", "tool_trajectory_avg_score") == []


def test_empty_reference_matters_only_if_it_is_compared() -> None:
    case = _case({"user_content": USER})
    assert _found(case, "tool_trajectory_avg_score") == []
    assert _found(case, "response_match_score") == [("empty-reference", ("conversation", 0, "final_response"))]


@pytest.mark.parametrize(
    ("call", "rule", "ending"),
    [
        (_calling("fnd", order_id="A"), "unknown-tool", "name"),
        (_calling("find", order="A", order_id="A"), "unknown-argument", "order"),
        (_calling("find", exact=True), "unknown-argument", "args"),
    ],
)
def test_calls_of_undeclared_tools_and_arguments_are_found(call: dict[str, Any], rule: str, ending: str) -> None:
    ((found, location),) = _found(_case(call), *COMPARING)
    assert (found, location[-1]) == (rule, ending)
    assert location[:4] == ("conversation", 0, "intermediate_data", "tool_uses")


def test_problems_of_recorded_calls_have_the_place_of_their_part() -> None:
    part = {"function_call": {"name": "nope", "args": {}}}
    events = [{"author": "a", "content": {"parts": [{"text": "so"}, part]}}]
    turn = {"user_content": USER, "final_response": ANSWER, "intermediate_data": {"invocation_events": events}}
    ((rule, location),) = _found(_case(turn), *COMPARING)
    assert rule == "unknown-tool"
    assert location[3:] == ("invocation_events", 0, "content", "parts", 1, "function_call", "name")


def test_unknown_tools_are_accepted_if_the_agent_may_have_more() -> None:
    assert _found(_case(_calling("nope")), *COMPARING, tools=OPEN) == []
    assert _found(_case(_calling("transfer_to_agent", agent_name="x")), *COMPARING) == []


def test_calls_are_checked_only_if_a_criterion_compares_them() -> None:
    case = _case(_calling("nope"), _calling("find", nope=1, order_id=[]))
    assert _found(case, "response_match_score", "hallucinations_v1") == []
    assert [rule for rule, _ in _found(case, *COMPARING)] == ["unknown-tool", "unknown-argument", "argument-type"]


@pytest.mark.parametrize(("value", "odd"), [(2.5, False), (2, False), ("two", True), (None, True), ([2], True)])
def test_argument_must_have_its_declared_type(value: object, odd: bool) -> None:
    tool = DeclaredTool(
        "pay", ("amount",), frozenset({"amount"}), types={"amount": ArgumentType(frozenset({"number"}))}
    )
    found = _found(_case(_calling("pay", amount=value)), *COMPARING, tools=DeclaredTools({"pay": tool}, complete=True))
    place = ("conversation", 0, "intermediate_data", "tool_uses", 0, "args", "amount")
    assert found == ([("argument-type", place)] if odd else [])


@pytest.mark.parametrize("kind", [None, "tool_use_quality", "FINAL_RESPONSE_QUALITY"])
def test_rubric_that_no_criterion_uses_is_found(kind: str | None) -> None:
    rubric = {"rubric_id": "r", "rubric_content": {"text_property": "polite"}, **({"type": kind} if kind else {})}
    case = _case(_calling("find", order_id="A"), rubrics=(rubric,))
    wanted = [] if kind == "FINAL_RESPONSE_QUALITY" else [("untyped-rubric", ("rubrics", 0))]
    assert _found(case, "rubric_based_final_response_quality_v1") == wanted
    assert _found(case, "rubric_based_tool_use_quality_v1") == [("untyped-rubric", ("rubrics", 0))]


def test_expected_end_state_that_no_criterion_compares_is_found() -> None:
    case = _case(_calling("find", order_id="A"), final_session_state={})
    assert _found(case, "response_match_score") == [("unused", ("final_session_state",))]
    assert _found(case, "response_match_score", "session_state_match") == []


def test_expected_texts_that_no_criterion_compares_are_found() -> None:
    turn = _calling("find", order_id="A")
    turn["intermediate_data"]["intermediate_responses"] = [["desk", [{"text": "looking"}]]]
    case, name = _case(turn), "final_response_match_v2"
    place = ("conversation", 0, "intermediate_data", "intermediate_responses")
    assert _found(case, name) == [("unused", place)]
    reading = _criteria(name, include_intermediate_responses_in_final=True)
    assert list(case_problems(case, reading, TOOLS)) == []
    custom = replace(_criteria("mine"), custom_metrics={"mine": {}})
    assert list(case_problems(case, custom, TOOLS)) == []


@pytest.mark.parametrize(
    ("adk", "said"),
    [
        ("1.18.0", "refuses the file"),
        ("2.2.0", "refuses the file"),
        ("2.3.0", "ignores them"),
        ("2.13.0", "ignores them"),
        (None, "2.2 and older refuse"),
    ],
)
def test_use_of_a_history_by_adk_depends_on_its_version(tmp_path: Path, adk: str | None, said: str) -> None:
    file = tmp_path / "a.evalset.json"
    session = {"app_name": "desk", "user_id": "u", "events": [{"author": "user"}]}
    cases = [{"eval_id": name, "conversation": [], "session_input": session} for name in "ab"]
    file.write_text(json.dumps({"eval_set_id": "a", "eval_cases": cases}, indent=1))
    fault = history_problem(open_evalset(file), [1], adk).fault
    assert (fault.severity, fault.json_path) == ("note", "eval_cases[1].session_input.events")
    assert said in fault.message


def test_app_name_that_is_a_path_is_found() -> None:
    case = _case(session_input={"app_name": "a/b", "user_id": "u"})
    assert [rule for rule, _ in case_problems(case, _criteria(), TOOLS)] == ["set-id"]

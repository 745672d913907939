"""Datasets of google-agents-cli are read as evalsets are."""

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from workbench.files import dataset
from workbench.files.case_index import index_cases
from workbench.files.evalset import BrokenCaseError, EvalsetDocument, open_evalset
from workbench.files.faults import Breach

SCAFFOLDED = {
    "eval_cases": [
        {"eval_case_id": "greeting", "prompt": {"role": "user", "parts": [{"text": "Hello"}]}},
        {
            "eval_case_id": "capital",
            "prompt": {"role": "user", "parts": [{"text": "Capital of France?"}]},
            "reference": {"response": {"role": "model", "parts": [{"text": "Paris"}]}},
        },
    ]
}


def _content(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def _turn(text: str) -> dict[str, Any]:
    """Return a turn that expects nothing. Nulls say so."""
    return {"user_content": _content(text), "final_response": None, "intermediate_data": None}


def _open(tmp_path: Path, *cases: Any, **frame: Any) -> EvalsetDocument:
    path = tmp_path / "datasets" / "basic-dataset.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"eval_cases": list(cases), **frame}, indent=2))
    return open_evalset(path)


def _said(document: EvalsetDocument) -> list[tuple[str, str]]:
    return [(fault.severity, fault.message) for fault in document.check()]


def test_scaffolded_dataset_opens_without_a_fault(tmp_path: Path) -> None:
    document = _open(tmp_path, *SCAFFOLDED["eval_cases"])
    assert (document.format, document.eval_set_id, document.faults) == ("dataset", "basic-dataset", ())
    assert [case.eval_id for case in document.cases] == ["greeting", "capital"]
    assert document.case(0).turns == (_turn("Hello"),)
    turns = document.case(1).turns
    assert turns is not None
    assert turns[0]["final_response"] == _content("Paris", "model")


def test_camel_case_is_read_as_well(tmp_path: Path) -> None:
    document = _open(tmp_path, {"evalCaseId": "a", "agentData": {"turns": [{"events": [_event("user", "hi")]}]}})
    assert (document.format, document.faults, document.cases[0].eval_id) == ("dataset", (), "a")


def test_frame_may_be_in_camel_case(tmp_path: Path) -> None:
    path = tmp_path / "camel.json"
    path.write_text(json.dumps({"evalCases": [{"evalCaseId": "a", "prompt": _content("hi")}], "candidateName": "c"}))
    document = open_evalset(path)
    assert (document.format, document.faults, document.cases[0].eval_id) == ("dataset", (), "a")


def test_case_without_an_id_gets_its_position(tmp_path: Path) -> None:
    document = _open(
        tmp_path, {"prompt": _content("a")}, {"eval_case_id": "b", "prompt": _content("b")}, SCAFFOLDED["eval_cases"][0]
    )
    assert [case.eval_id for case in document.cases] == ["1", "b", "greeting"]
    assert document.case(0).eval_id == "1"


def _event(author: str, text: str = "", **other: Any) -> dict[str, Any]:
    content = {"content": _content(text, "user" if author == "user" else "model")} if text else {}
    return {"author": author, **content, **other}


def test_earlier_turns_seed_the_session_and_the_last_user_event_is_sent(tmp_path: Path) -> None:
    turns = [
        {
            "turn_index": 0,
            "events": [_event("user", state_delta={"vip": True}), _event("user", "one"), _event("model", "two")],
        },
        {"turn_index": 1, "events": [_event("user", "three", state_delta={"step": 2})]},
    ]
    document = _open(tmp_path, {"eval_case_id": "a", "agent_data": {"turns": turns}})
    case = document.case(0)
    assert document.faults == ()
    assert case.turns == (_turn("three"),)
    assert case.session_input == {
        "user_id": "eval-cli-user",
        "events": [
            {"author": "user", "actions": {"state_delta": {"vip": True}}},
            {"author": "user", "content": _content("one")},
            {"author": "model", "content": _content("two", "model")},
            {"author": "user", "actions": {"state_delta": {"step": 2}}},
        ],
    }


def test_conversation_history_seeds_the_session_with_a_note(tmp_path: Path) -> None:
    history = [{"content": _content("one")}, {"content": _content("two", "model"), "author": "helper"}]
    document = _open(tmp_path, {"eval_case_id": "a", "prompt": _content("three"), "conversation_history": history})
    session = document.case(0).session_input
    assert session is not None
    assert [event["author"] for event in session["events"]] == ["user", "helper"]
    assert _said(document) == [
        ("note", "`agents-cli eval generate` ignores `conversation_history`; here it is the session's history")
    ]


def test_rubric_groups_become_rubrics_of_the_case(tmp_path: Path) -> None:
    rubrics = [
        {"rubric_id": "r", "content": {"property": {"description": "Is polite."}}},
        {"content": {"property": {"description": "Is short."}}},
    ]
    document = _open(tmp_path, {"prompt": _content("a"), "rubric_groups": {"tone": {"rubrics": rubrics}}})
    found = [(each["rubric_id"], each["rubric_content"]["text_property"]) for each in document.case(0).rubrics]
    assert (found, document.faults) == ([("r", "Is polite."), ("tone_2", "Is short.")], ())


@pytest.mark.parametrize(
    ("given", "used"), [(None, "FINAL"), ("CONTENT:LANGUAGE", "FINAL"), ("TOOL_USE_QUALITY", "TOOL")]
)
def test_rubric_of_any_other_type_judges_the_answer(tmp_path: Path, given: str | None, used: str) -> None:
    rubric = {"rubric_id": "r", "content": {"property": {"description": "Is polite."}}, "type": given}
    document = _open(tmp_path, {"prompt": _content("a"), "rubric_groups": {"tone": {"rubrics": [rubric]}}})
    assert document.case(0).rubrics[0]["type"].startswith(used)


def test_user_scenario_becomes_the_scenario_of_the_case(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask for a room.", "test_case_title": "room"}
    case = _open(tmp_path, {"eval_case_id": "a", "user_scenario": scenario}).case(0)
    assert (case.turns, case.scenario) == (None, {"starting_prompt": "Hi", "conversation_plan": "Ask for a room."})


def test_agent_workbench_key_has_expected_calls_and_the_end_state(tmp_path: Path) -> None:
    own = {"tool_uses": [{"name": "find", "args": {"id": 1}}], "final_session_state": {"done": True}}
    document = _open(tmp_path, {"eval_case_id": "a", "prompt": _content("a"), "agent_workbench": own})
    case = document.case(0)
    assert case.turns is not None
    assert (case.turns[0]["intermediate_data"], case.final_session_state) == (
        {"tool_uses": own["tool_uses"]},
        {"done": True},
    )
    assert document.faults == ()


SCENARIO = {"starting_prompt": "x", "conversation_plan": "y"}


def _ending(*events: dict[str, Any]) -> dict[str, Any]:
    return {"agent_data": {"turns": [{"events": list(events)}]}}


@pytest.mark.parametrize(
    ("case", "severity", "said"),
    [
        ({"prompt": _content("a"), **_ending(_event("user", "b"))}, "error", "both `prompt` and `agent_data.turns`"),
        ({"agent_data": {"turns": []}}, "error", "this case has none"),
        (_ending(_event("model", "b")), "error", "the last event is not the user's"),
        (_ending(_event("user")), "error", "has no content"),
        ({"prompt": "Hello"}, "error", "`prompt` must be an object"),
        ({"prompt": _content("a"), "references": {}}, "warning", "nothing reads it"),
        ({"prompt": _content("a"), "agent_workbench": {"tools": []}}, "error", "unknown key `tools`"),
        ({"user_scenario": {"starting_prompt": "x"}}, "error", "`conversation_plan` is missing"),
        ({"prompt": _content("a"), "responses": [{}]}, "note", "nothing compares them"),
        ({"prompt": _content("a"), **_ending()}, "error", "both `prompt` and `agent_data.turns`"),
        ({"prompt": _content("a"), "user_scenario": SCENARIO}, "warning", "only `agents-cli eval generate` sends"),
        ({"user_scenario": SCENARIO}, "note", "refuses a case without a message"),
    ],
)
def test_wrong_case_is_named_and_the_others_stay(tmp_path: Path, case: Any, severity: str, said: str) -> None:
    document = _open(tmp_path, {"eval_case_id": "fine", "prompt": _content("a")}, {"eval_case_id": "a", **case})
    (found,) = document.check()
    assert (found.severity, said in found.message, found.line > 0) == (severity, True, True), found.message
    assert document.case(0).eval_id == "fine"
    if severity == "error":
        with pytest.raises(BrokenCaseError):
            document.case(1)


def test_evalset_with_a_prompt_key_stays_an_evalset() -> None:
    index = index_cases(b'{"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "prompt": {}, "conversation": []}]}')
    assert index is not None
    assert not index.is_dataset


def test_fault_of_a_check_is_at_its_place_in_the_dataset(tmp_path: Path) -> None:
    own = {"tool_uses": [{"name": "find", "args": {}}]}
    document = _open(tmp_path, {"eval_case_id": "a", "prompt": _content("a"), "agent_workbench": own})
    breach = Breach(("conversation", 0, "intermediate_data", "tool_uses", 0, "name"), "unknown tool")
    assert document.fault(0, breach).json_path == "eval_cases[0].agent_workbench.tool_uses[0].name"


def test_duplicate_ids_are_an_error_of_the_file(tmp_path: Path) -> None:
    document = _open(tmp_path, {"eval_case_id": "2", "prompt": _content("a")}, {"prompt": _content("b")})
    assert [fault.message.startswith("duplicate case ID `2`") for fault in document.faults] == [True]


def _googles_fields() -> dict[str, set[str]]:
    """Read the fields of Google's types from their source, because importing them takes half a minute."""
    spec = find_spec("agentplatform")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("google-cloud-aiplatform is not installed")
    folder = Path(next(iter(spec.submodule_search_locations))) / "_genai" / "types"
    found: dict[str, set[str]] = {}
    for name in ("common.py", "evals.py"):
        for node in ast.parse((folder / name).read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                fields = (item for item in node.body if isinstance(item, ast.AnnAssign))
                found[node.name] = {item.target.id for item in fields if isinstance(item.target, ast.Name)}
    return found


def test_schema_has_the_fields_of_googles_types() -> None:
    theirs = _googles_fields()
    ours = {
        "EvaluationDataset": dataset.Dataset,
        "EvalCase": dataset.DatasetCase,
        "ResponseCandidate": dataset.ResponseCandidate,
        "AgentData": dataset.AgentData,
        "ConversationTurn": dataset.ConversationTurn,
        "AgentEvent": dataset.AgentEvent,
        "AgentConfig": dataset.AgentConfig,
        "Message": dataset.Message,
        "Event": dataset.IntermediateEvent,
        "RubricGroup": dataset.RubricGroup,
        "Rubric": dataset.Rubric,
        "RubricContent": dataset.RubricContent,
        "RubricContentProperty": dataset.RubricProperty,
        "UserScenario": dataset.UserScenario,
    }
    assert {name: set(each.__annotations__) - {dataset.OWN_KEY} for name, each in ours.items()} == {
        name: theirs[name] for name in ours
    }

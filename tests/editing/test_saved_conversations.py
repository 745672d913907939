"""Sessions of `adk test` and conformance test cases become cases with recordings."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import python_path, run_here
from workbench.editing.adk_session import NoSessionError, case_from_session
from workbench.editing.capture import Captured, Choice, recording_of
from workbench.editing.migration import convert_conversations, read_conversation, saved_conversations
from workbench.editing.whole_cases import kept_contents
from workbench.files.json_text.text_file import YamlError, yaml_data
from workbench.run.recordings.frozen_file import read_frozen
from workbench.run.recordings.recording import Recording, ToolCall

Json = dict[str, Any]


def event(author: str, *parts: Json, turn: str = "i-1", **more: Any) -> Json:
    role = "user" if author == "user" or "functionResponse" in parts[0] else "model"
    return {"author": author, "invocationId": turn, "content": {"role": role, "parts": list(parts)}, **more}


def call(name: str, number: int, **args: Any) -> Json:
    return {"functionCall": {"name": name, "id": f"fc-{number}", "args": args}}


def answer(name: str, number: int, **response: Any) -> Json:
    return {"functionResponse": {"name": name, "id": f"fc-{number}", "response": response}}


def recorded(*events: Json) -> tuple[Recording, str]:
    captured = case_from_session({"events": [event("user", {"text": "Hi"}), *events]}, app_name="desk")
    assert captured.recording is not None
    return captured.recording, "\n".join(captured.notes)


PARALLEL = (
    event("desk", call("find", 1, order="A"), call("price", 2, order="A")),
    event(
        "desk",
        answer("price", 2, result="12 EUR"),
        answer("find", 1, status="late"),
        actions={"stateDelta": {"last": "A"}, "artifactDelta": {"Label-1.pdf": 0}},
    ),
    event("desk", {"text": "It is late."}),
)


def test_calls_of_tools_and_models_are_read_from_a_session_of_adk_test() -> None:
    recording, _ = recorded(*PARALLEL)
    assert [(one.tool, one.args, one.answer) for one in recording.calls] == [
        ("find", {"order": "A"}, {"status": "late"}),
        ("price", {"order": "A"}, {"result": "12 EUR"}),
    ]
    assert [one.asked for one in recording.models] == ["", ""]
    assert recording.models[1].responses[0]["content"]["parts"] == [{"text": "It is late."}]


def test_merged_effects_of_parallel_calls_go_to_one_call_and_are_named() -> None:
    recording, notes = recorded(*PARALLEL)
    assert [dict(one.effects.state) for one in recording.calls] == [{"last": "A"}, {}]
    assert "price, find ran in parallel" in notes
    assert "saved Label-1.pdf, but a session does not have its content" in notes


def test_requests_of_a_call_keep_no_id_of_the_old_conversation() -> None:
    asks = {"requestedToolConfirmations": {"fc-1": {"hint": "sure?"}}, "skipSummarization": True}
    recording, _ = recorded(
        event("desk", call("pay", 1)),
        event("desk", call("adk_request_confirmation", 7)),
        event("desk", answer("pay", 1, error="wait"), actions=asks),
    )
    (one,) = recording.calls
    assert one.effects.actions == {
        "requested_tool_confirmations": {"$call": {"hint": "sure?"}},
        "skip_summarization": True,
    }
    assert len(recording.models) == 1


def test_calls_of_adk_itself_are_not_replayed() -> None:
    recording, _ = recorded(
        event("desk", call("transfer_to_agent", 1, agent_name="clerk")),
        event("desk", answer("transfer_to_agent", 1, result=None), actions={"transferToAgent": "clerk"}),
        event("clerk", call("set_model_response", 2, text="done")),
        event("clerk", answer("set_model_response", 2, text="done")),
        event("clerk", {"text": '{"text": "done"}'}),
    )
    assert recording.calls == ()
    assert [one.agent for one in recording.models] == ["desk", "clerk"]


def test_call_without_an_answer_is_lost() -> None:
    recording, _ = recorded(event("desk", call("wait", 1)), event("desk", {"text": "Later."}))
    assert recording.calls[0].lost == "the session has no answer to it"


def test_calls_of_dropped_turns_are_dropped_and_the_rest_is_counted_again() -> None:
    calls = tuple(ToolCall(turn, "desk", "find", {"turn": turn}) for turn in (1, 2, 3))
    captured = Captured("desk", "u", ({}, {}, {}), {}, recording=Recording("", "", calls=calls))
    kept = recording_of(captured, Choice("mine", frozenset({0, 2})))
    assert kept is not None
    assert kept.eval_id == "mine"
    assert [(one.turn, one.args["turn"]) for one in kept.calls] == [(1, 1), (2, 3)]
    assert recording_of(captured, Choice("mine", frozenset({0}), frozen=False)) is None


SPEC = """
description: Finds a late parcel
agent: desk
initial_state: {since: 2026-01-02}
user_messages:
  - text: Where is A?
    state_delta: {mood: bad}
"""
RECORDINGS = """
recordings:
  - user_message_index: 0
    agent_name: desk
    llm_recording:
      llm_request: {model: m}
      llm_responses:
        - partial: true
          content: {parts: [{text: It}], role: model}
        - content: {parts: [{function_call: {id: adk-1, name: find, args: {order: A}}}], role: model}
  - user_message_index: 0
    agent_name: desk
    tool_recording:
      tool_call: {id: adk-1, name: find, args: {order: A}}
      tool_response: {id: adk-1, name: find, response: {status: late}}
  - user_message_index: 0
    agent_name: desk
    llm_recording:
      llm_request: {model: m}
      llm_responses: [{content: {parts: [{text: It is late.}], role: model}}]
"""
SESSION = """
id: s
app_name: desk
user_id: u
events:
  - {author: user, invocation_id: e, content: {role: user, parts: [{text: Where is A?}]}}
  - author: desk
    invocation_id: e
    branch: desk.clerk
    content: {role: model, parts: [{function_call: {id: adk-1, name: find, args: {order: A}}}]}
  - author: desk
    invocation_id: e
    content: {role: user, parts: [{function_response: {id: adk-1, name: find, response: {changed: by a callback}}}]}
    actions: {state_delta: {last: A}}
  - {author: desk, invocation_id: e, content: {role: model, parts: [{text: It is late.}]}}
"""


def conformance(folder: Path, **files: str) -> Path:
    case = folder / "core" / "late_001"
    case.mkdir(parents=True)
    for name, text in {"spec": SPEC, "generated-recordings": RECORDINGS, **files}.items():
        (case / f"{name.replace('_', '-')}.yaml").write_text(text, "utf-8")
    return case


@pytest.mark.parametrize(
    ("files", "branch", "state"), [({}, None, {}), ({"generated_session": SESSION}, "desk.clerk", {"last": "A"})]
)
def test_conformance_test_case_has_raw_answers_and_effects_of_its_session(
    tmp_path: Path, files: dict[str, str], branch: str | None, state: Json
) -> None:
    saved = read_conversation(conformance(tmp_path, **files))
    captured = saved.captured
    assert (saved.name, captured.app_name, captured.state) == ("late_001", "desk", {"since": "2026-01-02"})
    assert captured.turns[0]["final_response"]["parts"] == [{"text": "It is late."}]
    assert captured.recording is not None
    (one,) = captured.recording.calls
    assert (one.answer, one.branch, one.effects.state) == ({"status": "late"}, branch, state)
    assert [len(model.responses) for model in captured.recording.models] == [1, 1]
    assert any("also sets state, which a case cannot: mood" in note for note in captured.notes)


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"spec": "agent: [\n"}, "spec.yaml: line 2"),
        ({"spec": "description: x"}, "spec.yaml: it must have `agent` and `user_messages`"),
        ({"generated_recordings": "recordings: 3"}, "`recordings` must be a list"),
        ({"generated_recordings": "recordings: [{user_message_index: x}]"}, "must be a number from 0"),
        ({"spec": "!!python/object/apply:os.system [true]"}, "spec.yaml: line 1"),
    ],
)
def test_damaged_conformance_files_are_refused_with_their_place(
    tmp_path: Path, files: dict[str, str], place: str
) -> None:
    case = conformance(tmp_path)
    for name, text in files.items():
        (case / f"{name.replace('_', '-')}.yaml").write_text(text, "utf-8")
    with pytest.raises(NoSessionError) as refused:
        read_conversation(case / "spec.yaml")
    assert place in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &a [x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]", "aliases"),
        ("a: &a [*a]", "aliases"),
        ("a: .nan", "no number nan"),
        ("a: !!binary aGk=", "bytes is not JSON data"),
        ("a: !!set {x}", "set is not JSON data"),
        ("[" * 100_000, "nest"),
    ],
)
def test_yaml_that_is_not_plain_data_is_refused(text: str, why: str) -> None:
    with pytest.raises(YamlError, match=why):
        yaml_data(text)


def test_written_case_has_its_recording_beside_it(tmp_path: Path) -> None:
    evalset = tmp_path / "mine.evalset.json"
    contents = kept_contents(evalset, None, [({"eval_id": "A b", "conversation": []}, recorded(*PARALLEL)[0])])
    assert list(contents)[-1] == evalset
    for path, (before, content) in contents.items():
        assert before is None
        assert content is not None
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (frozen,) = tmp_path.rglob("*.frozen.json")
    assert read_frozen(frozen).eval_set_id == "mine"
    assert frozen.parent.name == "mine.evalset.frozen"


def test_conversations_are_found_if_the_tests_folder_is_named_not_if_the_agent_is(tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    (desk / "tests").mkdir(parents=True)
    (desk / "agent.py").write_text("root_agent = 1\n")
    (desk / "tests" / "late.json").write_text(json.dumps({"events": [event("user", {"text": "Hi"})]}))
    (desk / "tests" / "other.json").write_text("{}")
    conformance(desk / "tests")
    late, case = desk / "tests" / "late.json", desk / "tests" / "core" / "late_001"
    assert saved_conversations([desk / "tests"]) == ([late, case], [])
    assert saved_conversations([desk, late, case / "spec.yaml"]) == ([late, case / "spec.yaml"], [desk])
    converted = convert_conversations([late, case], None)
    assert [one.file for one in converted] == [
        desk / "adk_tests.evalset.json",
        desk / "tests" / "core" / "core.evalset.json",
    ]
    assert convert_conversations([late, case], None) == converted


AGENT = """
from pathlib import Path
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.tools import ToolContext

def find(order: str, tool_context: ToolContext) -> dict:
    Path(__file__).with_name("called").touch()
    tool_context.state["last"] = order
    return {"status": "late"}

def price(order: str) -> str:
    Path(__file__).with_name("called").touch()
    return "12 EUR"

class Gone(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        raise ConnectionError("no model here")
        yield

root_agent = LlmAgent(name="desk", model=Gone(model="gone"), tools=[find, price])
"""


@pytest.mark.usefixtures("warm_scorers")
def test_migrated_session_of_adk_test_runs_frozen_with_a_real_agent(tmp_path: Path) -> None:
    pytest.importorskip("google.adk")
    desk = tmp_path / "desk"
    (desk / "tests").mkdir(parents=True)
    (desk / "agent.py").write_text(AGENT)
    events = [event("user", {"text": "Where is A, and its price?"}), *PARALLEL]
    (desk / "tests" / "late.json").write_text(json.dumps({"events": events}))

    environment = {"PYTHONPATH": python_path()}
    done = run_here(tmp_path, ["migrate", "desk/tests"], environment)
    assert done.returncode == 0, done.stderr
    assert "desk/adk_tests.evalset.json (1 case, 1 turn) written, 2 tool calls and 2 model calls frozen" in done.stderr
    assert "late: turn 1: price, find ran in parallel" in done.stderr
    done = run_here(tmp_path, ["run", "desk", "--frozen=all", "--plain"], environment)
    assert done.stdout.startswith("PASS desk/adk_tests/late "), done.stdout + done.stderr
    assert not (desk / "called").exists()

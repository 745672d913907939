"""Random events of google-adk. A module of its own, because the import takes seconds."""

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from hypothesis import strategies as st

USER = types.Content(role="user", parts=[types.Part(text="hello")])

_PARTS = st.sampled_from(
    [
        types.Part(text=""),
        types.Part(text="a"),
        types.Part(text="thinking", thought=True),
        types.Part(function_call=types.FunctionCall(id="1", name="f", args={"n": None, "list": [1, {"k": 2.5}]})),
        types.Part(function_call=types.FunctionCall(name="g", args={})),
        types.Part(function_response=types.FunctionResponse(id="1", name="f", response={"ok": True})),
        types.Part(inline_data=types.Blob(data=b"\xff\xfe\x00", mime_type="image/png")),
        types.Part(file_data=types.FileData(file_uri="gs://x", mime_type="image/png")),
        types.Part(executable_code=types.ExecutableCode(code="1 + 1", language=types.Language.PYTHON)),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")),
    ]
)
_CONTENTS = st.none() | st.builds(
    lambda role, parts: types.Content(role=role, parts=parts),
    st.sampled_from(["model", "user", None]),
    st.none() | st.lists(_PARTS, max_size=3),
)
_USAGES = st.none() | st.builds(
    types.GenerateContentResponseUsageMetadata,
    prompt_token_count=st.none() | st.just(5),
    candidates_token_count=st.none() | st.just(2),
)
_GROUNDINGS = st.none() | st.just(types.GroundingMetadata(web_search_queries=["why"]))
EVENTS = st.builds(
    Event,
    invocation_id=st.just("i-1"),
    author=st.sampled_from(["desk", "clerk", "user", "User", ""]),
    content=_CONTENTS,
    partial=st.sampled_from([None, False, True]),
    error_code=st.sampled_from([None, None, "SAFETY"]),
    long_running_tool_ids=st.sampled_from([None, None, {"1"}]),
    actions=st.builds(EventActions, skip_summarization=st.sampled_from([None, None, True])),
    grounding_metadata=_GROUNDINGS,
    usage_metadata=_USAGES,
    model_version=st.sampled_from([None, "m-1"]),
)

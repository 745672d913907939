"""Evalset content that uses every key ADK knows, and ways to make it slightly wrong."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies
from pydantic.alias_generators import to_camel

CONTENT: dict[str, Any] = {
    "role": "user",
    "parts": [
        {"text": "Where is it?", "thought": True, "thought_signature": "YQ=="},
        {
            "function_call": {
                "id": "1",
                "name": "find",
                "args": {"a": [1, None]},
                "partial_args": [
                    {
                        "bool_value": True,
                        "json_path": "$.a",
                        "null_value": "NULL_VALUE",
                        "number_value": 1.5,
                        "string_value": "s",
                        "will_continue": False,
                    }
                ],
                "will_continue": False,
            }
        },
        {
            "function_response": {
                "id": "1",
                "name": "find",
                "response": {"late": True},
                "scheduling": "SILENT",
                "will_continue": True,
                "parts": [
                    {
                        "inline_data": {"mime_type": "a/b", "data": "YQ==", "display_name": "n"},
                        "file_data": {"file_uri": "u", "mime_type": "a/b", "display_name": "n"},
                        "media_processing": "x",
                    }
                ],
            }
        },
        {"inline_data": {"data": "YQ", "mime_type": "image/png", "display_name": "n"}},
        {"file_data": {"file_uri": "u", "mime_type": "a/b", "display_name": "n"}},
        {"executable_code": {"code": "1", "language": "python", "id": "3"}},
        {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "1", "id": "3"}},
        {
            "video_metadata": {"fps": 1.0, "start_offset": "1s", "end_offset": "2s"},
            "media_resolution": {"level": "MEDIA_RESOLUTION_LOW", "num_tokens": 3},
        },
        {
            "tool_call": {"id": "a", "tool_type": "X", "args": {}},
            "tool_response": {"id": "a", "tool_type": "X", "response": {}},
        },
        {
            "part_metadata": {"k": 1},
            "audio_transcription": {
                "text": "t",
                "finished": True,
                "language_code": "de",
                "speaker_label": "s",
                "words": [{"word": "w", "start_offset": "1s", "end_offset": "2s"}],
            },
            "speech_metadata": {"speaker": "a", "style": "b"},
            "media_processing": "y",
        },
    ],
}
GROUNDING: dict[str, Any] = {
    "image_search_queries": ["a"],
    "web_search_queries": ["a"],
    "grounding_chunks": [
        {
            "web": {"uri": "u", "title": "t", "domain": "d"},
            "image": {"source_uri": "s"},
            "maps": {
                "place_id": "p",
                "route": {"distance_meters": 3, "duration": "1s"},
                "place_answer_sources": {"review_snippets": [{"review": "r", "author_attribution": {"uri": "u"}}]},
            },
            "retrieved_context": {
                "uri": "u",
                "rag_chunk": {"text": "t", "page_span": {"first_page": 1, "last_page": 2}},
                "custom_metadata": [{"key": "k", "numeric_value": 1.5, "string_list_value": {"values": ["a"]}}],
                "page_number": 3,
            },
        }
    ],
    "grounding_supports": [
        {
            "confidence_scores": [0.5],
            "grounding_chunk_indices": [0],
            "segment": {"start_index": 1, "end_index": 2, "text": "x"},
            "rendered_parts": [1],
        }
    ],
    "retrieval_metadata": {"google_search_dynamic_retrieval_score": 0.3},
    "search_entry_point": {"rendered_content": "r", "sdk_blob": "YQ=="},
    "source_flagging_uris": [{"source_id": "s"}],
}
USAGE = {
    "prompt_token_count": 1,
    "prompt_tokens_details": [{"modality": "TEXT", "token_count": 3}],
    "traffic_type": "ON_DEMAND",
    "total_token_count": 4,
}
RUBRICS = [{"rubric_id": "r", "rubric_content": {"text_property": "t"}, "description": "d", "type": "X"}]
WRITTEN_TURN: dict[str, Any] = {
    "invocation_id": "i",
    "user_content": CONTENT,
    "final_response": CONTENT,
    "intermediate_data": {
        "tool_uses": [{"name": "f", "args": {}}],
        "tool_responses": [{"name": "f", "response": {}}],
        "intermediate_responses": [["checker", [{"text": "x"}]]],
    },
    "creation_timestamp": 1.5,
    "duration": 1,
    "model_duration": None,
    "tool_duration": 0.5,
    "rubrics": RUBRICS,
    "app_details": {"agent_details": {"x": {"name": "x", "instructions": "i", "tool_declarations": [{"a": 1}]}}},
}
RECORDED_TURN: dict[str, Any] = {
    "user_content": {"parts": [{"text": "hi"}]},
    "intermediate_data": {
        "invocation_events": [
            {
                "author": "desk",
                "content": CONTENT,
                "grounding_metadata": GROUNDING,
                "usage_metadata": USAGE,
                "model_version": "m",
                "unknown": 1,
            }
        ]
    },
}
CASE: dict[str, Any] = {
    "eval_id": "late",
    "conversation": [WRITTEN_TURN, RECORDED_TURN],
    "session_input": {"app_name": "a", "user_id": "u", "session_id": "s", "state": {"k": 1}, "extra": 1},
    "creation_timestamp": 0,
    "rubrics": RUBRICS,
    "final_session_state": {"a": 1},
    "extra": 5,
}
PERSONA: dict[str, Any] = {
    "id": "p",
    "description": "d",
    "behaviors": [
        {"name": "n", "description": "d", "behavior_instructions": ["i"], "violation_rubrics": ["v"], "unknown": 1}
    ],
    "unknown": 2,
}
SCENARIO: dict[str, Any] = {
    "eval_id": "e",
    "conversation_scenario": {"starting_prompt": "s", "conversation_plan": "c", "user_persona": PERSONA},
}
NAMED_PERSONA: dict[str, Any] = {
    "eval_id": "e",
    "conversation_scenario": {"starting_prompt": "s", "conversation_plan": "c", "user_persona": "EXPERT"},
}
EVALSET: dict[str, Any] = {
    "eval_set_id": "s",
    "name": "n",
    "description": None,
    "eval_cases": [],
    "creation_timestamp": 1,
    "unknown": 1,
}
_MODEL = {
    "temperature": 0.5,
    "top_k": 3,
    "max_output_tokens": 3,
    "stop_sequences": ["a"],
    "labels": {"a": "b"},
    "response_modalities": ["TEXT"],
    "seed": 1,
    "media_resolution": "X",
}
CONFIG: dict[str, Any] = {
    "criteria": {
        "a": 1,
        "b": "0.5",
        "c": {"threshold": 1, "include_intermediate_responses_in_final": True, "extra": 1},
    },
    "custom_metrics": {
        "c": {
            "code_config": {"name": "x"},
            "description": "d",
            "metric_info": {
                "metric_name": "m",
                "metric_value_info": {"interval": {"min_value": 0, "max_value": 1, "open_at_min": True}},
                "requires_threshold": True,
            },
            "unknown": 1,
        }
    },
    "user_simulator_config": {
        "type": "llm_backed",
        "model": "m",
        "model_configuration": _MODEL,
        "max_allowed_invocations": 3,
        "custom_instructions": "{{ stop_signal }} {{ conversation_plan }} {{conversation_history}}",
        "include_function_calls": False,
        "extra": 1,
    },
    "live_model_config": {"timeout_seconds": 3, "unknown": 1},
    "zebra": 1,
}
AUDIO_CONFIG: dict[str, Any] = {
    "criteria": {},
    "user_simulator_config": {
        "type": "llm_audio",
        "audio_model": "m",
        "audio_model_configuration": _MODEL,
        "include_text_with_audio": True,
    },
}
OLD_TURN: dict[str, Any] = {
    "query": "q",
    "reference": "r",
    "expected_tool_use": [{"tool_name": "t", "tool_input": {"a": 1}, "mock_tool_output": "x"}],
    "expected_intermediate_agent_responses": [{"author": "a", "text": "t"}],
}
OLD_EVALSET: list[dict[str, Any]] = [
    {
        "name": "n",
        "data": [OLD_TURN, {"query": "z"}],
        "initial_session": {"state": {"k": 1}, "app_name": "x", "user_id": "u"},
    },
    {"name": "m", "data": []},
]
OLD_TEST: list[dict[str, Any]] = [OLD_TURN, {"query": "b"}]

_WRONG: list[Any] = [
    *(None, 0, 1, -1, 1.0, 1.5, "x", "1", "1.5", "true", "yes", "", True, False, [], {}, [1], ["a"], {"a": 1}, [{}]),
    *([[]], [["a", []]], "EXPERT", "expert", "NULL_VALUE", {"text": "x"}, {"parts": []}, 2**70, "YQ", "!", [None]),
    *({"a": None}, "a_-b", "é"),
]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inner:
        yield from _paths(item, (*path, step))


@strategies.composite
def slightly_wrong(draw: strategies.DrawFn, *originals: Any) -> Any:
    """Draw an original with up to three changes: values swapped; keys dropped, misspelt, doubled or invented."""
    content = copy.deepcopy(draw(strategies.sampled_from(originals)))
    for _ in range(draw(strategies.sampled_from([1, 1, 1, 2, 3]))):
        paths = list(_paths(content))
        if not paths:
            break
        *above, step = draw(strategies.sampled_from(paths))
        parent = content
        for outer in above:
            parent = parent[outer]
        change = draw(strategies.sampled_from(["exchange", "exchange", "drop", "camel", "double", "respell"]))
        if change == "drop":
            del parent[step]
        elif change == "exchange" or isinstance(parent, list):
            parent[step] = copy.deepcopy(draw(strategies.sampled_from(_WRONG)))
        elif change == "camel":
            parent[to_camel(step)] = parent.pop(step)
        else:
            other = draw(strategies.sampled_from([f"{step}x", step.upper(), to_camel(step), step.title(), "foo"]))
            parent[other] = parent[step] if change == "double" else parent.pop(step)
    return content


def written(content: Any) -> str:
    """Return content in the form of an evalset file."""
    return json.dumps(content, indent=2)

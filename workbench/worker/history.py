"""The history of a session: `session_input.events` of a case. They are ADK's events as JSON, before its first turn."""

from __future__ import annotations

import uuid
from typing import Any, Dict, Iterable, Iterator, List

Json = Dict[str, Any]

MODEL = "model"
"""The author that stands for the root agent."""


def turns_of(events: Iterable[Json], agent: str) -> Iterator[Json]:
    """Yield the turns as in `session.history` of a plain-Python agent.

    A message of the user begins a turn. Its answer is the last text of the agent.
    """
    turn: List[Json] = []
    for event in events:
        if not _parts(event):
            continue
        if _is_message(event) and turn:
            yield _turn(turn, agent)
            turn = []
        turn.append(event)
    if turn:
        yield _turn(turn, agent)


def state_of(events: Iterable[Json]) -> Json:
    """Return the changes that the events make to the state."""
    changed: Json = {}
    for event in events:
        changed.update((event.get("actions") or {}).get("state_delta") or {})
    return changed


def text_of(content: Json) -> str:
    """Return the text of a Content, one line for each of its parts."""
    return "\n".join(part["text"] for part in content.get("parts") or [] if part.get("text"))


def _turn(events: List[Json], agent: str) -> Json:
    message = events[0]["content"] if _is_message(events[0]) else {"role": "user", "parts": []}
    steps = [
        {**event, "author": agent if event["author"] == MODEL else event["author"]}
        for event in events[int(_is_message(events[0])) :]
    ]
    answer = next((step for step in reversed(steps) if _says(step)), None)
    kept = ("author", "content", "grounding_metadata", "usage_metadata", "model_version")
    invocation: Json = {"invocation_id": events[0].get("invocation_id") or str(uuid.uuid4()), "user_content": message}
    if answer is not None:
        invocation["final_response"] = answer["content"]
    recorded = [{key: step[key] for key in kept if key in step} for step in steps if step is not answer]
    invocation["intermediate_data"] = {"invocation_events": recorded}
    said = "" if answer is None else text_of(answer["content"])
    return {"user": text_of(message), "answer": said, "invocation": invocation}


def _is_message(event: Json) -> bool:
    return event["author"] == "user" and not any(part.get("function_response") for part in _parts(event))


def _says(event: Json) -> bool:
    return event["author"] != "user" and any(part.get("text") and not part.get("thought") for part in _parts(event))


def _parts(event: Json) -> List[Json]:
    return (event.get("content") or {}).get("parts") or []

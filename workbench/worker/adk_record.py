"""The events of a turn as ADK's evaluation records them: one invocation, as JSON data.

The rules of google-adk 2.13 apply, also for older versions. The last final response wins, but one without text does
not replace one with text. Its event is stored without the content (unless it also calls functions). So its cost is kept
and its text is not counted twice.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from .usage import Usage, usage_of

Json = Dict[str, Any]
_CUT = "MAX_TOKENS"
_MORE_TOKENS = "raise max_output_tokens in the agent's generate_content_config"


class Turn:
    """The events of an agent after one user message."""

    def __init__(self, user: Json, now: float) -> None:
        self._user = user
        self._timestamp = now
        self._recorded: List[Tuple[Any, Json]] = []
        """The recorded events, each with its JSON form."""
        self._final: Any = None
        self._final_content: Any = None
        self._final_shown: Json = {}
        self.invocation_id = ""
        self.authors: List[str] = []
        self.notes: List[str] = []
        self.usage = Usage()

    @property
    def recorded(self) -> int:
        """Number of events recorded so far."""
        return len(self._recorded)

    @property
    def is_empty(self) -> bool:
        """Whether no event occurred."""
        return not self.authors

    def add(self, event: Any) -> Any:
        """Add an event. Return its JSON form if it is recorded, else None."""
        self.invocation_id = self.invocation_id or event.invocation_id
        self.authors.append(event.author)
        content = event.content
        if (event.author or "agent").lower() == "user":
            if content is not None:
                self._user = dump(content)
                self._timestamp = event.timestamp
            return None
        self._note(event)
        parts = _parts(content)
        shown = None
        if event.grounding_metadata is not None or any(_counts(part) for part in parts):
            shown = self._record(event)
        if parts and event.is_final_response() and (_has_text(parts) or not _has_text(_parts(self._final_content))):
            self._final, self._final_content = event, content
            self._final_shown = shown["content"] if shown is not None else dump(content)
        return shown

    def invocation(self, app_details: Json, durations: Json) -> Json:
        """Return the finished turn without unset keys. `durations` holds the `…duration` fields."""
        events = [
            {key: value for key, value in shown.items() if key != "content" or not self._is_answer(event)}
            for event, shown in self._recorded
        ]
        invocation: Json = {"invocation_id": self.invocation_id, "user_content": self._user}
        if self._final_content is not None:
            invocation["final_response"] = self._final_shown
        invocation["intermediate_data"] = {"invocation_events": events}
        invocation["creation_timestamp"] = self._timestamp
        invocation.update({name: value for name, value in durations.items() if value is not None})
        invocation["app_details"] = app_details
        return invocation

    @property
    def note(self) -> str:
        """A remark about the turn for the user."""
        notes = list(dict.fromkeys(self.notes))
        if self._final_content is None and not notes:
            notes.append("the agent gave no final answer")
        return "; ".join(notes)

    def _is_answer(self, event: Any) -> bool:
        return event is self._final and not event.get_function_calls()

    def _note(self, event: Any) -> None:
        code = getattr(event, "error_code", None)
        reason = getattr(event, "finish_reason", None)
        reason = getattr(reason, "value", reason)
        if code:
            message = getattr(event, "error_message", None)
            note = f"the model answered with error code {code}{f': {message}' if message else ''}"
            self.notes.append(f"{note}; {_MORE_TOKENS}" if getattr(code, "value", code) == _CUT else note)
        elif reason == _CUT and not getattr(event, "partial", None):
            self.notes.append(f"the model's answer was cut ({_CUT}); {_MORE_TOKENS}")

    def _record(self, event: Any) -> Json:
        shown: Json = {"author": event.author}
        for name in ("content", "grounding_metadata", "usage_metadata", "model_version"):
            value = getattr(event, name, None)
            if value is not None:
                shown[name] = dump(value) if hasattr(value, "model_dump") else value
        if "usage_metadata" in shown or "model_version" in shown:
            self.usage = self.usage.plus(Usage(1)).plus(usage_of(event.usage_metadata))
        self._recorded.append((event, shown))
        return shown


def dump(model: Any) -> Json:
    """Return a google-genai model with snake_case keys, without unset fields.

    Bytes and other values without a JSON form stay unchanged; `jsonable` writes them like pydantic.
    """
    dumped: Json = model.model_dump(exclude_none=True)
    return dumped


def _parts(content: Any) -> Sequence[Any]:
    return (content.parts or []) if content is not None else []


def _has_text(parts: Sequence[Any]) -> bool:
    return any(part.text for part in parts)


def _counts(part: Any) -> bool:
    return bool(part.function_call or part.function_response or part.text or part.inline_data)

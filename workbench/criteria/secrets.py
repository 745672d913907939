"""Removal of passwords and keys from all stored and shown data.

`workbench.judges.secret_forms` defines secrets and their spellings. The value of an authorization header is a secret
too. Scoring sees the agent's original words. Everything that leaves the engine has passed through `Secrets.clean`.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from workbench.criteria.base import Scored, unscored_result
from workbench.criteria.description import Part
from workbench.criteria.registry import descriptions
from workbench.criteria.trajectory import includes_agent_tools
from workbench.events.events import CaseRef, Event, PlannedCase
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.invocation import Invocation, content_text, tool_calls
from workbench.judges.secret_forms import (
    HEADER_PAIR,
    HEADER_TEXT,
    REPLACED,
    URL_PASSWORD,
    SecretForms,
    named_secrets,
    with_capitals,
    without_headers,
)
from workbench.store.transcripts import StoredCase

_HEADER_KEYS = frozenset({"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key"})
_NAME_KEYS = frozenset({"name", "key", "header"})
_VALUE_KEYS = frozenset({"value", "values"})
_HEADER_HINTS = ("uthorization", "UTHORIZATION", "pi-key", "PI-KEY", "pi-Key", "PI-Key", "PI-key", "pi-KEY")

# Fields with the workbench's own words, which are not cleaned.
_KEPT_FIELDS = frozenset({"run_id", "root", "started", "kind", "name", "status", "stream", "level"})

EventT = TypeVar("EventT", bound=Event)


class Secrets:
    """The secrets of one run, and their removal from events.

    `environments` are all environments that agents of the run may see: the process's own and each agent's.
    """

    def __init__(self, environments: Iterable[Mapping[str, str]]) -> None:
        named = {value: name for values in environments for value, name in named_secrets(values).items()}
        self._forms = SecretForms(named)
        written = {json.dumps(form)[1:-1] for form in self._forms.texts}
        self.markers = (*written, *_HEADER_HINTS)
        """Each line of ASCII JSON with a known secret contains one of these texts, if URL escapes are upper case."""

    def may_contain(self, line: str) -> bool:
        """Return whether `line`, an event as ASCII JSON, may hold a secret. This quick check never misses one."""
        if any(map(line.__contains__, self.markers)):
            return True
        if "%" in line and any(map(with_capitals(line).__contains__, self.markers)):
            return True
        return "://" in line and URL_PASSWORD.search(line) is not None

    def clean(self, event: EventT) -> EventT:
        """Return an event with secrets replaced by `[secret NAME]`, except in names of cases and our own words."""
        changes = {}
        for item in dataclasses.fields(event):
            if item.name not in _KEPT_FIELDS:
                old = getattr(event, item.name)
                new = self._clean_field(old)
                if new is not old:
                    changes[item.name] = new
        return dataclasses.replace(event, **changes) if changes else event

    def clean_text(self, text: str) -> str:
        """Return `text` with each secret replaced."""
        if any(hint in text for hint in _HEADER_HINTS):
            text = without_headers(text)
        return self._forms.replace(text)

    def clean_data(self, value: Any) -> Any:
        """Return JSON data with each secret replaced, also in numbers (such as a PIN in a tool's arguments)."""
        if isinstance(value, str):
            return self.clean_text(value)
        if isinstance(value, dict):
            names = (str(item).lower() for key, item in value.items() if key.lower() in _NAME_KEYS)
            secret = _HEADER_KEYS if _HEADER_KEYS.isdisjoint(names) else _HEADER_KEYS | _VALUE_KEYS
            return {
                self.clean_text(key): self._clean_header(item) if key.lower() in secret else self.clean_data(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            if (
                len(value) == 2
                and all(isinstance(item, str) for item in value)
                and HEADER_PAIR.search('", "'.join(value))
            ):
                return [self.clean_text(value[0]), HEADER_TEXT]
            return [self.clean_data(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = json.dumps(value)
            cleaned = self.clean_text(written)
            return value if cleaned == written else cleaned
        return value

    def _clean_header(self, value: Any) -> Any:
        """Return the value of a header, or a list of its values, with each text replaced."""
        if isinstance(value, list):
            return [self._clean_header(item) for item in value]
        return HEADER_TEXT if isinstance(value, str) else self.clean_data(value)

    def _clean_field(self, value: Any) -> Any:
        if isinstance(value, CaseRef | PlannedCase):
            return value
        if dataclasses.is_dataclass(value):
            return self.clean(value)  # type: ignore[type-var]
        if isinstance(value, tuple):
            return tuple(self._clean_field(item) for item in value)
        if isinstance(value, str | dict | list):
            return self.clean_data(value)
        return value


_PARTS: Mapping[Part, Callable[[Invocation], object]] = {
    "message": lambda turn: turn.get("user_content"),
    "answer": lambda turn: content_text(turn.get("final_response")),
    "calls": tool_calls,
}


def holds_secrets(conversation: object) -> bool:
    """Return whether a secret was replaced anywhere in JSON data, or in dataclasses with such data."""
    return REPLACED in repr(conversation)


def not_scored_again(stored: StoredCase, config: CriteriaConfig) -> tuple[Scored, ...]:
    """Return `not_evaluated` for each criterion of `config` that would see a replaced secret.

    The transcript of the case must be complete.
    """
    started = stored.started
    assert started is not None  # The transcript is complete.
    turns = [*(started.expected or ()), *(turn.actual for turn in stored.turns)]
    states = [started.final_session_state, *(turn.state for turn in stored.turns[-1:])]
    inner_calls = [turn.inner_calls for turn in stored.turns]
    conversation = [turns, started.scenario, started.rubrics]
    if not holds_secrets([conversation, states, inner_calls]):
        return ()

    def sees_secrets(item: Criterion) -> bool:
        info = descriptions().get(item.name)
        if info is None or item.name in config.custom_metrics:
            return True
        if info.compares_end_state:
            return holds_secrets(states)
        if info.asks is not None or not info.looks_at:
            return holds_secrets(conversation)
        inside = inner_calls if includes_agent_tools([item]) else None
        return holds_secrets([inside, *(_PARTS[part](turn) for part in info.looks_at for turn in turns)])

    return tuple(
        Scored(unscored_result(item, "not_evaluated", _REASON)) for item in config.criteria if sees_secrets(item)
    )


_REASON = "a secret was removed from the stored transcript, so the agent's words are incomplete: run the case again"

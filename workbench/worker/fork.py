"""The beginning of a forked conversation, which repeats a recorded one up to a point.

Until the point, calls are answered from the recording by position. The first call that the recording does not answer
ends the beginning: everything before it must equal the recorded conversation, or the case ends. Later calls are made as
in any other conversation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import faults
from .jsonable import dumps
from .matching import Recorded, canonical, difference_text, differences, shown_call
from .spans import plain_digest

Json = dict[str, Any]
_HINT = "fork at an earlier turn or call, or run the case again and fork the new run"
_REQUESTED = "adk_request_"
"""The beginning of the names of calls by which ADK asks the user. Their arguments hold IDs of other calls."""
_CODE_RUNS = ("_code_execution_context", "_code_execution_results", "_code_executor_error_counts")
"""Keys of the state in which ADK's code executors keep times and IDs. These differ in each conversation."""


class Change(NamedTuple):
    """A change of one agent that applies from the point on. `kind` is `instruction` or `model`, `text` is the new one.

    With `whole`, the text replaces all instructions of a request, else only those of the agent itself.
    """

    kind: str
    agent: str
    text: str
    whole: bool = False


class Asked(NamedTuple):
    """A call that is about to be made.

    `kind` is `tool` or `model`. For a model, `tool` and `args` are empty. `state` is a digest of the session's state,
    or None if it is not known.
    """

    kind: str
    agent: str
    branch: str
    tool: str
    args: Any
    state: str | None


class Fork:
    """A fork of one conversation. Its methods may be called from any thread.

    `settings` are the `fork` in the case's `calls` (`docs/worker-protocol.md`).
    """

    def __init__(self, settings: Json) -> None:
        self._lock = threading.Lock()
        self._calls: list[Recorded] = []
        self._expected: dict[int, list[Json]] = {}
        self._acted: dict[int, list[Json]] = {}
        self._turn = 0
        self.passed = False
        """Whether the conversation has passed the point."""
        self.point: int = settings["turn"]
        """The turn of the point, from 0."""
        self.artifacts: dict[str, str] = settings.get("artifacts", {})
        """Name → digest of the newest version of each artifact that tools saved before the point."""
        self._next: list[Json] = settings.get("next", [])
        """The calls that may be the first live one, or empty if any may."""
        self.tools: dict[str, list[Json]] = settings.get("tools", {})
        """The recorded declarations of tools, by agent."""
        self.change = Change(**settings["change"]) if settings.get("change") else None

    def load(self, recorded: Recorded) -> None:
        """Add a recorded call from before the point. The calls must be added in recorded order."""
        self._calls.append(recorded)

    def expect(self, turn: int, acted: Json) -> None:
        """Add an event that the conversation must repeat."""
        self._expected.setdefault(turn, []).append(_plain(acted))

    def begin_turn(self, turn: int) -> faults.Fault | None:
        """Record that a turn begins. At the turn of the point, return why the turns before it differ, or None."""
        self._turn = turn
        return self._differing(turn) if turn == self.point else None

    def end_turn(self, turn: int) -> faults.Fault | None:
        """Record that a turn ended. If it is the turn of the point, return the difference from the recording, or None.

        Without a difference, the point is passed. Models of plain-Python agents are live even before the point, so
        these agents may skip calls.
        """
        with self._lock:
            if self.passed or turn != self.point:
                return None
            sees_models = any(not call.tool for call in self._calls) or any(
                call.get("kind") == "model" for call in self._next
            )
            fault = self._ended_early() if sees_models else None
            self.passed = fault is None
            return fault

    def note(self, turn: int, acted: Json) -> None:
        """Record an event of the agent, unless the point has been passed."""
        if not self.passed:
            self._acted.setdefault(turn, []).append(_plain(acted))

    def recorded(self, asked: Asked) -> Recorded | None:
        """Return the recorded call that answers `asked`, or None if `asked` is at or after the point."""
        with self._lock:
            return None if self.passed else self._find(asked)

    def take(self, asked: Asked) -> Recorded | None:
        """Return the recorded call that answers `asked`, marked as used, or None as in `recorded`."""
        with self._lock:
            found = None if self.passed else self._find(asked)
            if found is not None:
                found.used = True
            return found

    def check(self, asked: Asked, artifacts: dict[str, str] | None = None) -> faults.Fault | None:
        """Compare the conversation with the recording before a call. Return the difference, or None.

        Before the point, only the state is compared. At the point, events and `artifacts` (digests by name) are
        compared, too. If nothing differs, the point is passed.
        """
        with self._lock:
            if self.passed:
                return None
            found = self._find(asked)
            if found is not None:
                return self._other_state(found.state, asked)
            fault = self._at_point(asked, artifacts or {})
            self.passed = fault is None
            return fault

    def changes(self, kind: str, agent: str) -> Change | None:
        """Return the change of an agent's instruction or model if it applies to the agent's next request, else None."""
        change = self.change
        if change is None or (change.kind, change.agent) != (kind, agent):
            return None
        with self._lock:
            coming = not self.passed and any(self._open("model", agent))
        return None if coming else change

    def _find(self, asked: Asked) -> Recorded | None:
        """Return the recorded call of this turn, agent, branch and tool that comes next, or None.

        Of several tool calls, the first with equal arguments is preferred.
        """
        waiting = [call for call in self._open(asked.kind, asked.agent) if call.branch in (None, asked.branch)]
        waiting = [call for call in waiting if call.tool == asked.tool and call.turn == self._turn]
        if asked.kind == "tool" and len(waiting) > 1:
            args = canonical(asked.args)
            return next((call for call in waiting if canonical(call.args) == args), waiting[0])
        return waiting[0] if waiting else None

    def _open(self, kind: str, agent: str) -> Iterator[Recorded]:
        return (
            call
            for call in self._calls
            if not call.used and call.agent == agent and bool(call.tool) == (kind == "tool")
        )

    def _at_point(self, asked: Asked, artifacts: dict[str, str]) -> faults.Fault | None:
        fault = self._differing(self._turn)
        if fault is not None:
            return fault
        did = f"called {shown_call(asked.tool, asked.args)}" if asked.tool else "asked its model"
        now = f"{asked.agent} {did}"
        if self._turn < self.point:
            return self._diverged(self._turn, f"{now}, which it did not in the recording")
        fault = self._differing_here(asked.agent)
        if fault is not None:
            return fault
        kind = (asked.kind, asked.agent, asked.tool)
        alike = [
            call
            for call in self._next
            if (call.get("kind"), call.get("agent"), call.get("tool") or "") == kind
            and call.get("branch") in (None, asked.branch)
        ]
        if self._next and not alike:
            return self._another_call(self._next[0], now)
        for name, digest in self.artifacts.items():
            if name in artifacts and artifacts[name] != digest:
                missing = artifacts[name] == ""
                return self._diverged(self._turn, f"the artifact {name} {'is missing' if missing else 'differs'}")
        states = [call.get("state") for call in alike]
        return self._other_state(None if None in states else states[0], asked) if states else None

    def _ended_early(self) -> faults.Fault | None:
        """Return the difference of a turn that ended before the point from the recorded one, or None."""
        fault = self._differing_here(None)
        if fault is not None:
            return fault
        unused = [call for call in self._calls if not call.used and call.turn == self._turn]
        left = [{"agent": call.agent, "tool": call.tool} for call in unused] or self._next
        return self._another_call(left[0], "the turn ended") if left else None

    def _another_call(self, then: Json, now: str) -> faults.Fault:
        was = f"called {then.get('tool')}" if then.get("tool") else "asked its model"
        return self._diverged(self._turn, f"then {then.get('agent')} {was}, now {now}")

    def _other_state(self, then: str | None, asked: Asked) -> faults.Fault | None:
        if not then or asked.state is None or asked.state == then:
            return None
        what = f"{asked.agent} calls {asked.tool}" if asked.tool else f"{asked.agent} asks its model"
        return self._diverged(self._turn, f"the session's state differs when {what}")

    def _differing(self, before: int) -> faults.Fault | None:
        """Return the first difference in the turns before the turn `before`, or None."""
        for turn in range(before):
            then, now = self._expected.get(turn, []), self._acted.get(turn, [])
            for number, (old, new) in enumerate(zip(then, now)):  # noqa: B905 (not in Python 3.9)
                fault = self._event(turn, number, old, new)
                if fault is not None:
                    return fault
            if len(then) != len(now):
                what = "is missing" if len(now) < len(then) else "is new"
                return self._diverged(turn, what, min(len(then), len(now)))
        return None

    def _differing_here(self, agent: str | None) -> faults.Fault | None:
        """Return the first difference in the turn of the point, or None.

        Parallel agents may be ahead or behind, so the events of each author are compared separately. Only the events of
        `agent` must be complete, or those of each author if it is None.
        """
        turn = self._turn
        for author in dict.fromkeys(map(_author, self._expected.get(turn, []))):
            then = [pair for pair in enumerate(self._expected[turn]) if _author(pair[1]) == author]
            now = [event for event in self._acted.get(turn, []) if _author(event) == author]
            for (number, old), new in zip(then, now):  # noqa: B905 (not in Python 3.9)
                fault = self._event(turn, number, old, new)
                if fault is not None:
                    return fault
            if len(now) < len(then) and agent in (None, author):
                return self._diverged(turn, "is missing", then[len(now)][0])
        return None

    def _event(self, turn: int, number: int, then: Json, now: Json) -> faults.Fault | None:
        for path, old, new in differences(then, now, ""):
            return self._diverged(turn, difference_text(path.lstrip("."), old, new), number)
        return None

    def _diverged(self, turn: int, what: str, event: int | None = None) -> faults.Fault:
        place = f"turn {turn + 1}" if event is None else f"turn {turn + 1}, event {event + 1}"
        return faults.fault("fork_diverged", f"not as recorded before the fork: {place}: {what}", _HINT)


def state_digest(state: Any) -> str:
    """Return a digest of a session's state that another conversation with an equal state has, too."""
    if isinstance(state, dict):
        state = {name: value for name, value in state.items() if name not in _CODE_RUNS}
    return plain_digest(dumps(state))


def _author(event: Json) -> str:
    return str(event.get("author") or "")


def _plain(acted: Json) -> Json:
    """Return an event without the IDs of its calls, which differ in each conversation."""
    content = acted.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(parts, list):
        return acted
    return {**acted, "content": {**content, "parts": [_plain_part(part) for part in parts]}}


def _plain_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    plain = dict(part)
    for name in ("function_call", "function_response"):
        inner = plain.get(name)
        if isinstance(inner, dict):
            inner = {key: value for key, value in inner.items() if key != "id"}
            if str(inner.get("name")).startswith(_REQUESTED):
                inner = _without_ids(inner)
            plain[name] = inner
    return plain


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(item) for key, item in value.items() if key not in ("id", "function_call_id")}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value

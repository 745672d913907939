"""A fork of a recorded conversation: a point, and one change from there on."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from workbench.events.events import ForkChange, ForkOf
from workbench.files.invocation import content_text
from workbench.run.forking.original import AnyCall, CannotForkError, Json, Original, OriginalCall
from workbench.run.recordings.recording import ModelCall, Recording, ToolCall, digest
from workbench.text.json_values import parts_of


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a fork.

    `value` is the new text of a message or instruction, the name of a model, or an answer as JSON data. `agent` is the
    agent whose instruction or model is changed. With `whole`, the instruction replaces everything that the agent's
    requests instruct, also what ADK and its toolsets add.
    """

    kind: ForkChange = "nothing"
    value: Any = None
    agent: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork of `original` at a turn (from 0), or before one of its calls (an index, or None).

    With `frozen`, tools are answered from the recording after the point, too.

    Raises:
        CannotForkError: there is no such point, or the change does not fit it.
    """

    original: Original
    turn: int
    call: int | None = None
    change: Change = Change()
    frozen: bool = False

    def __post_init__(self) -> None:
        why = self._why_not()
        if why:
            raise CannotForkError(why)

    def _why_not(self) -> str:
        original, kind = self.original, self.change.kind
        if not 0 <= self.turn < len(original.turns):
            return f"there is no turn {self.turn + 1}"
        if self.call is not None and not original.has_models:
            return "a plain Python agent can be forked at turns only, because its calls of models are not seen"
        if self.call is not None and self.call not in original.calls_of(self.turn):
            return f"there is no such call in turn {self.turn + 1}"
        lost = next((number for number, call in enumerate(self._before()) if call.call.lost), None)
        if lost is not None:
            return f"the outcome of call {lost + 1} was not recorded: {original.calls[lost].call.lost}"
        if kind == "message" and self.call is not None:
            return "a message can be changed at its turn only"
        if kind == "answer" and self._changed_call() is None:
            return "an answer can be changed at the call of a tool only"
        if kind in ("instruction", "model") and not original.has_models:
            return f"the {kind} of a plain Python agent is not known"
        agents = dict.fromkeys(call.call.agent for call in original.calls if isinstance(call.call, ModelCall))
        if kind in ("instruction", "model") and self.change.agent not in agents:
            named = f"no agent {self.change.agent} asked its model" if self.change.agent else "the agent is not named"
            return f"{named}; agents of the conversation: {', '.join(agents)}"
        return ""

    def origin(self) -> ForkOf:
        """Return the fork as runs store it."""
        change, text = self.change, ""
        if change.kind != "nothing":
            text = json.dumps(change.value, ensure_ascii=False) if change.kind == "answer" else str(change.value)
        number = 0 if self.call is None else self.call + 1
        run, repeat = self.original.run_id, self.original.ref.repeat
        return ForkOf(run, repeat, self.turn, number, change.kind, change.agent, text)

    # For the worker (docs/worker-protocol.md)

    def settings(self) -> Json:
        """Return `fork` of the case's `calls`."""
        change, tools = self.change, self.original.recording.tools
        settings: Json = {
            "turn": self.turn,
            "change": None,
            "artifacts": self._artifacts(),
            "next": list(self._next()),
            "tools": {agent: [tool.as_json() for tool in declared] for agent, declared in tools.items()},
        }
        if change.kind in ("instruction", "model"):
            settings["change"] = {"kind": change.kind, "agent": change.agent, "text": change.value}
            settings["change"]["whole"] = change.whole
        return settings

    def frames(self) -> Iterator[Json]:
        """Yield the messages that precede the first turn: expected events, and calls from before the point."""
        for turn, event in self._expected():
            yield {"op": "expected", "turn": turn, "acted": event}
        for order, call in enumerate(self._before()):
            yield {"op": "recorded", "call": call.call.wire(order), "before_fork": True}

    def rest(self) -> Recording | None:
        """Return the recording of the tools after the point, or None if they are live."""
        if not self.frozen:
            return None
        after = self.original.calls[len(self._before()) :]
        calls = tuple(call.call for call in after if isinstance(call.call, ToolCall))
        return replace(self.original.recording, calls=calls, ended=())  # Which names calls before the point, too.

    # The user

    def messages(self) -> tuple[Json, ...]:
        """Return the user's messages up to the turn of the point, as contents."""
        contents = [turn.user for turn in self.original.turns[: self.turn + 1]]
        if self.change.kind == "message":
            contents[-1] = with_text(contents[-1], str(self.change.value))
        return tuple(contents)

    # The parts

    def _limit(self) -> int:
        return self.call if self.call is not None else self.original.calls_of(self.turn).start

    def _changed_call(self) -> ToolCall | None:
        call = self.original.calls[self.call].call if self.call is not None else None
        return call if isinstance(call, ToolCall) else None

    def _before(self) -> list[OriginalCall]:
        """Return the calls that the recording answers. A changed answer is the last one."""
        before = list(self.original.calls[: self._limit()])
        changed = self._changed_call()
        if self.change.kind == "answer" and changed is not None and self.call is not None:
            answered: AnyCall = replace(changed, answer=self.change.value, error=None, lost="")
            before.append(replace(self.original.calls[self.call], call=answered))
        return before

    def _expected(self) -> Iterator[tuple[int, Json]]:
        for number, turn in enumerate(self.original.turns[: self.turn]):
            yield from ((number, event) for event in turn.events)
        if self.change.kind != "message" and self._limit() in self.original.calls_of(self.turn):
            before = self.original.calls[self._limit()].before
            yield from ((self.turn, event) for event in self.original.turns[self.turn].events[:before])

    def _next(self) -> Iterator[Json]:
        """Yield the calls of which the first live one must be one. After a changed text, it may be any."""
        if self.change.kind in ("message", "answer"):
            return
        for index in self.original.calls_of(self.turn):
            if index >= self._limit():
                call = self.original.calls[index].call
                kind = "tool" if isinstance(call, ToolCall) else "model"
                named = {"tool": call.tool} if isinstance(call, ToolCall) else {}
                state = {"state": call.state} if call.state else {}
                yield {"kind": kind, "agent": call.agent, "branch": call.branch, **named, **state}

    def _artifacts(self) -> dict[str, str]:
        """Return digests of the artifacts that tools saved before the point, by name."""
        calls = [call.call for call in self._before()]
        saved = [artifact for call in calls if not isinstance(call, ModelCall) for artifact in call.effects.artifacts]
        return {artifact.name: digest(dict(artifact.content)) for artifact in saved}


def with_text(content: Json, text: str) -> Json:
    """Return a user's message with another text. Its files stay."""
    if text == content_text(content):
        return content
    files = [part for part in parts_of(content) if "text" not in part]
    return {**content, "parts": [{"text": text}, *files]}

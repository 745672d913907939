"""The drift of a recording: the calls in which a live run differs from it, and which differences are accepted.

A live call is compared with the recorded call of the same agent, tool and arguments. With other arguments it is another
call.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from workbench.run.recordings.from_run import Taken
from workbench.run.recordings.merging import matched_calls, merged
from workbench.run.recordings.recording import Declaration, ModelCall, Recording, ToolCall
from workbench.text.counting import counted, few
from workbench.worker.matching import differences

DriftKind: TypeAlias = Literal["same", "changed", "gone", "new", "unknown"]
"""The recorded outcome, another one, a call that is not made any more, or one that is not recorded.

It is `unknown` if the live run ended before the call.
"""
_PLACES = 20
"""Maximum number of places that a changed call names."""


class Missing:
    """Type of `MISSING`, the marker for a side without a value."""


MISSING: Final = Missing()


@dataclass(frozen=True, eq=False, slots=True)
class Drift:
    """A recorded call compared with the live one. Objects are equal only if they are the same one.

    `about` is a call of a tool, the declaration of a tool, or all calls of models together. `then` and `now` are the
    recorded and the live one, or None on a side without it.
    """

    kind: DriftKind
    about: Literal["call", "declaration", "models"]
    agent: str = ""
    then: ToolCall | Declaration | Sequence[ModelCall] | None = None
    now: ToolCall | Declaration | Sequence[ModelCall] | None = None

    @property
    def tool(self) -> str:
        """The name of the tool, raw, or "" for models."""
        one = self._either
        return one.tool if isinstance(one, ToolCall) else one.name if isinstance(one, Declaration) else ""

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments of the call."""
        return one.args if isinstance(one := self._either, ToolCall) else {}

    @property
    def turn(self) -> int | None:
        """The turn of the call, counted from 1, or None for declarations and models."""
        return one.turn if isinstance(one := self._either, ToolCall) else None

    @property
    def values(self) -> tuple[Any, Any]:
        """The recorded and the live outcome as JSON data, or `MISSING`."""
        return _value(self.then), _value(self.now)

    @property
    def where(self) -> list[tuple[str, Any, Any]]:
        """The first places at which a changed outcome differs: path, recorded and live value, or `MISSING`."""
        found: list[tuple[str, Any, Any]] = []
        if self.kind == "changed":
            places: Iterable[tuple[str, Any, Any]] = differences(*self.values, "")
            if self.about == "models":  # Digests of requests say less than answers.
                places = sorted(places, key=lambda place: place[0].endswith("].asked"))
            for path, then, now in places:
                # The marker of the worker for an absent value is a bare object.
                then, now = (MISSING if type(value) is object else value for value in (then, now))
                found.append((path.removeprefix("."), then, now))
                if len(found) == _PLACES:
                    break
        return found

    @property
    def why_not(self) -> str:
        """The reason why it cannot be accepted, or ""."""
        if self.kind in ("same", "unknown"):
            return "nothing changed" if self.kind == "same" else "the run ended before it"
        return self.now.lost if isinstance(self.now, ToolCall) else ""

    @property
    def _either(self) -> ToolCall | Declaration | Sequence[ModelCall] | None:
        return self.then if self.now is None else self.now


@dataclass(frozen=True)
class Thaw:
    """A recording and a live run of its case. If the run is not `complete`, calls that it lacks are unknown.

    The outcome of a call is its answer or error, and its effects if both sides know them.
    """

    old: Recording
    live: Recording
    complete: bool = True
    drifts: tuple[Drift, ...] = field(init=False)
    """Calls in recorded order, then declarations and models. The last two are there only if they differ."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "drifts", tuple(self._found()))

    def count(self, kind: DriftKind) -> int:
        """Return the number of tool calls of a kind."""
        return sum(drift.kind == kind and drift.about == "call" for drift in self.drifts)

    @property
    def changes(self) -> list[Drift]:
        """All that can be accepted."""
        return [drift for drift in self.drifts if not drift.why_not]

    def accepted(self, chosen: Collection[Drift]) -> Recording:
        """Return the recording with some of the changes.

        With all of them, it is the recording of the live run, with its time.
        """
        if all(drift.kind == "same" or drift in chosen for drift in self.drifts):
            return merged(self.old, Taken(self.live), models=bool(self.old.models), prune=False)
        result, live = self.old, self.live
        calls: list[ToolCall] = []
        tools = {agent: _by_place(declared) for agent, declared in result.tools.items()}
        for drift in self.drifts:
            kept = drift.now if drift in chosen else drift.then
            if isinstance(kept, ToolCall):
                calls.append(kept)
            elif drift in chosen and drift.about == "models":
                result = replace(result, models=live.models, parts={**result.parts, **live.parts})
            elif isinstance(drift.then, Declaration) and kept is None:
                del tools[drift.agent][_place(drift.then)]
            elif isinstance(kept, Declaration):
                tools.setdefault(drift.agent, {})[_place(kept)] = kept
        declared = {agent: tuple(named.values()) for agent, named in tools.items() if named}
        origin = replace(result.origin, effects=result.origin.effects and live.origin.effects)
        return replace(result, calls=tuple(calls), tools=declared, origin=origin)

    def _found(self) -> Iterator[Drift]:
        for then, now in matched_calls(self.old, self.live):
            if then is not None and now is not None:
                if not (self.old.origin.effects and self.live.origin.effects):
                    now = replace(now, effects=then.effects)
                same = not any(differences(_value(then), _value(now), ""))
                yield Drift("same" if same else "changed", "call", then.agent, then, now)
            elif now is not None:
                yield Drift("new", "call", now.agent, None, now)
            elif then is not None:
                yield Drift("gone" if self.complete else "unknown", "call", then.agent, then)
        yield from self._declarations()
        if self.old.models and self.live.models:
            models = Drift("changed", "models", "", self.old.models, self.live.models)
            if models.where:
                yield models

    def _declarations(self) -> Iterator[Drift]:
        for agent in dict.fromkeys((*self.old.tools, *self.live.tools)):
            old, new = (_by_place(side.tools.get(agent, ())) for side in (self.old, self.live))
            if agent not in self.live.tools or not self.old.tools:
                continue  # The tools of an agent that did not run are unknown, and older runs recorded none.
            for place in dict.fromkeys((*old, *new)):
                then, now = old.get(place), new.get(place)
                if now is None and self.live.origin.framework == "python":
                    continue  # Plain Python declares a tool only by calling it, and the call itself is gone.
                if then is not None and now is not None:
                    now = replace(now, source=then.source)  # A changed answer says more than changed code.
                if then != now:
                    kind: DriftKind = "new" if then is None else "gone" if now is None else "changed"
                    yield Drift(kind, "declaration", agent, then, now)


def _by_place(declared: Iterable[Declaration]) -> dict[tuple[str, int], Declaration]:
    return {_place(tool): tool for tool in declared}


def _place(tool: Declaration) -> tuple[str, int]:
    """Return what identifies a tool of an agent. Toolsets themselves have no names."""
    return tool.name, tool.toolset


def _value(side: ToolCall | Declaration | Sequence[ModelCall] | None) -> Any:
    """Return what is compared, as JSON data."""
    if side is None:
        return MISSING
    if isinstance(side, ToolCall):
        return side.outcome() | ({"effects": side.effects.as_json()} if side.effects else {})
    if isinstance(side, Declaration):
        return side.as_json()
    return [{"agent": model.agent, "asked": model.asked, **model.outcome()} for model in side]


# What a user must know about a recording before relying on it


def remarks(recording: Recording) -> Iterator[str]:
    """Yield remarks about a new recording: one sentence each, as raw text without a full stop."""
    if not recording.origin.effects and recording.calls:
        yield "effects of tools (state, artifacts, actions) are not known: the run has no recorded calls"
    for call in recording.calls:
        if call.lost:
            yield f"{call.tool} in turn {call.turn} has no recorded outcome: {call.lost}"
    for tool in dict.fromkeys(call.tool for call in recording.calls if call.streams):
        yield f"{tool} is a generator: only what the framework made of its values is replayed, not each of them"
    for model in recording.models:
        if model.lost:
            yield f"a model call of {model.agent} in turn {model.turn} has no recorded outcome: {model.lost}"
    if secrets := sum(call.secret for call in recording.calls) + sum(model.secret for model in recording.models):
        yield f"{counted(secrets, 'answer')} held a secret, which was replaced"
    if names := [f"{name} of {tool}" for tool, ignored in recording.ignore.items() for name in ignored]:
        yield f"ignored when calls are looked up: {few(names)}"

"""A recording compared with a live run: the calls that differ, which of them are accepted, and the new recording."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias, TypeVar

from workbench.run.recordings.from_run import Taken
from workbench.run.recordings.recording import Declaration, Ended, ModelCall, Recording, ToolCall
from workbench.run.recordings.requests import text_parts
from workbench.text.counting import counted, few
from workbench.worker.matching import canonical, differences, plain_branch

DriftKind: TypeAlias = Literal["same", "changed", "gone", "new", "unknown"]
"""The result of a comparison: the same outcome, a changed one, a call that is gone, or a new call.

It is `unknown` if the live run ended before the call.
"""
_PLACES = 20
"""Maximum number of differing places that are listed for a call."""
CallT = TypeVar("CallT", ToolCall, ModelCall)


class Missing:
    """Type of `MISSING`, the marker for a side without a value."""


MISSING: Final = Missing()


@dataclass(frozen=True, eq=False, slots=True)
class Drift:
    """A recorded call compared with the live one. Two objects are equal only if they are identical.

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
        """The arguments of the call, or {} for declarations and models."""
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
        """The first places at which a changed outcome differs: path, recorded and live value, or `MISSING`.

        It is empty unless `kind` is `changed`.
        """
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
        if isinstance(self.now, ToolCall):
            return self.now.lost
        models = () if isinstance(self.now, Declaration) else self.now or ()
        return next((model.lost for model in models if model.lost), "")

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

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        """Calls in recorded order, then declarations and models. The last two are there only if they differ."""
        return tuple(self._found())

    def count(self, kind: DriftKind) -> int:
        """Return the number of tool calls of a kind."""
        return sum(drift.kind == kind and drift.about == "call" for drift in self.drifts)

    @property
    def changes(self) -> list[Drift]:
        """All differences that can be accepted."""
        return [drift for drift in self.drifts if not drift.why_not]

    def accepted(self, chosen: Collection[Drift]) -> Recording:
        """Return the recording with the chosen changes. If these are all, merge the whole live recording (`merged`)."""
        if self.complete and all(drift.kind == "same" or drift in chosen for drift in self.drifts):
            return merged(self.old, Taken(self.live), models=bool(self.old.models), prune=False)
        result, live = self.old, self.live
        calls: list[ToolCall] = []
        orders: dict[int, list[int | None]] = defaultdict(list)  # Turn → live orders of its calls; None: not as live.
        tools = {agent: _by_place(declared) for agent, declared in result.tools.items()}
        for drift in self.drifts:
            kept = drift.now if drift in chosen else drift.then
            if isinstance(kept, ToolCall):
                calls.append(kept)
                is_live = drift.kind == "same" or drift in chosen
                orders[kept.turn].append(drift.now.order if is_live and isinstance(drift.now, ToolCall) else None)
            elif drift in chosen and drift.about == "models":
                result = replace(result, models=live.models, parts={**result.parts, **live.parts})
            elif isinstance(drift.then, Declaration) and kept is None:
                del tools[drift.agent][_place(drift.then)]
            elif isinstance(kept, Declaration):
                tools.setdefault(drift.agent, {})[_place(kept)] = kept
        declared = {agent: tuple(named.values()) for agent, named in tools.items() if named}
        origin = replace(result.origin, effects=result.origin.effects and live.origin.effects)
        taken = {drift.tool for drift in chosen if isinstance(drift.now, ToolCall)}
        ignore = _union(result.ignore, {tool: names for tool, names in live.ignore.items() if tool in taken})
        ended = self._ended(orders, chosen)
        return replace(result, ignore=ignore, calls=tuple(calls), tools=declared, origin=origin, ended=ended)

    def _ended(self, orders: Mapping[int, Sequence[int | None]], chosen: Collection[Drift]) -> tuple[Ended, ...]:
        """Return the order of ends: that of the live run in changed turns whose calls are now all as in that run."""
        old, live = self.old.ended, self.live.ended
        if not self.complete or any(one.about == "models" and one not in chosen for one in self.drifts):
            return old
        changed = {one.turn for drift in chosen for one in (drift.then, drift.now) if isinstance(one, ToolCall)}
        began = {turn: [call.order for call in self.live.calls if call.turn == turn] for turn in changed}
        fresh = {turn for turn in changed if began[turn] == orders.get(turn, [])}
        ended = [*(one for one in old if one.turn not in fresh), *(one for one in live if one.turn in fresh)]
        return tuple(sorted(ended, key=attrgetter("turn")))

    def _found(self) -> Iterator[Drift]:
        old, live = self.old.calls, self.live.calls
        ignore = _union(self.old.ignore, self.live.ignore)
        places = _places(old, live, lambda call: _tool_key(call, ignore))
        for one, other in _woven(len(old), places):
            then, now = None if one is None else old[one], None if other is None else live[other]
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
        if self.complete and self.old.models and self.live.models:
            models = Drift("changed", "models", "", self.old.models, self.live.models)
            if models.where:
                yield models

    def _declarations(self) -> Iterator[Drift]:
        for agent in dict.fromkeys((*self.old.tools, *self.live.tools)):
            old, new = (_by_place(side.tools.get(agent, ())) for side in (self.old, self.live))
            if agent not in self.live.tools or not self.old.tools:
                continue  # The tools of an agent that did not run are unknown, and JSON reports record none.
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
    """Return the name and the toolset of a tool, which identify it within its agent."""
    return tool.name, tool.toolset


def _value(side: ToolCall | Declaration | Sequence[ModelCall] | None) -> Any:
    """Return the compared data of one side, or `MISSING`."""
    if side is None:
        return MISSING
    if isinstance(side, ToolCall):
        return side.outcome() | ({"effects": side.effects.as_json()} if side.effects else {})
    if isinstance(side, Declaration):
        return side.as_json()
    return [{"agent": model.agent, "asked": model.asked, **model.outcome()} for model in side]


def remarks(recording: Recording) -> Iterator[str]:
    """Yield remarks about a new recording: one sentence each, as raw text without a full stop."""
    if not recording.origin.effects and recording.calls:
        yield "effects of tools (state, artifacts, actions) are not known: the run has no recorded calls"
    for call in recording.calls:
        if call.lost:
            yield f"{call.tool} in turn {call.turn} has no recorded outcome: {call.lost}"
    for tool in dict.fromkeys(call.tool for call in recording.calls if call.streams):
        yield f"{tool} is a generator: the answer that the framework made of its values is replayed, not each value"
    for model in recording.models:
        if model.lost:
            yield f"a model call of {model.agent} in turn {model.turn} has no recorded outcome: {model.lost}"
    if secrets := sum(call.secret for call in recording.calls) + sum(model.secret for model in recording.models):
        yield f"{counted(secrets, 'answer')} held a secret, which was replaced"
    if names := [f"{name} of {tool}" for tool, ignored in recording.ignore.items() for name in ignored]:
        yield f"ignored when calls are looked up: {few(names)}"


def merged(old: Recording | None, taken: Taken, *, models: bool, prune: bool) -> Recording:
    """Return the recording to keep.

    With `models`, answers of models are kept. They are also kept if `old` has some, because the old ones would not
    match the new calls. With `prune`, recorded calls that a frozen run did not use are left out. If only times changed,
    return `old`.
    """
    new = taken.recording
    models = models or (old is not None and bool(old.models))
    if not models:
        new = replace(new, models=(), parts={})
    if old is None:
        return new
    ignore = _union(old.ignore, new.ignore)
    calls = _together(old.calls, new.calls, taken.replayed, lambda call: _tool_key(call, ignore), prune=prune)
    answers: tuple[ModelCall, ...] = ()
    if models:
        replayed = taken.replayed_models
        answers = _together(old.models, new.models, replayed, lambda call: (call.agent, call.asked), prune=prune)
    result = replace(new, ignore=ignore, calls=calls, models=answers, parts=_parts(answers, {**old.parts, **new.parts}))
    if taken.replayed or taken.replayed_models:
        # Most of it is as old as before, and effects of the old calls are as little known.
        origin = replace(old.origin, effects=old.origin.effects and new.origin.effects)
        fresh = Counter((call.agent, call.tool) for n, call in enumerate(new.calls) if n not in taken.replayed)
        kept = Counter((call.agent, call.tool) for call in calls) - fresh
        ended = old.ended if calls == old.calls else new.ended
        result = replace(result, tools=_tools(old.tools, new.tools, kept), origin=origin, ended=ended)
        return old if result == old else result
    return old if replace(result, origin=old.origin) == old else result


def _together(
    old: Sequence[CallT],
    new: Sequence[CallT],
    replayed: Collection[int],
    key_of: Callable[[CallT], Hashable],
    *,
    prune: bool,
) -> tuple[CallT, ...]:
    """Return the new calls. One that was replayed, or differs only in its seconds, is replaced by its old call.

    A replayed call keeps its new turn and branch. If calls were replayed, unused old calls keep their positions, unless
    `prune` is set.
    """
    places = _places(old, new, key_of)
    found: list[CallT] = []
    for number, (place, call) in enumerate(zip(places, new, strict=True)):
        if place is not None and number in replayed:
            call = replace(old[place], turn=call.turn, branch=call.branch)
        elif place is not None and replace(old[place], seconds=call.seconds) == call:
            call = old[place]
        found.append(call)
    if not replayed or prune:
        return tuple(found)
    return tuple(_each(old, found, _woven(len(old), places)))


def _each(
    old: Sequence[CallT], new: Sequence[CallT], pairs: Iterable[tuple[int | None, int | None]]
) -> Iterator[CallT]:
    """Yield the new call of each pair, or the old one if there is no new one."""
    for one, other in pairs:
        if other is not None:
            yield new[other]
        elif one is not None:
            yield old[one]


def _places(old: Sequence[CallT], new: Sequence[CallT], key_of: Callable[[CallT], Hashable]) -> list[int | None]:
    """Return for each new call the index of the old call that it replaces, or None.

    Both have the same branch (if known) and key, and the same number among such calls.
    """
    branched = all(call.branch is not None for call in old)

    def key(call: CallT) -> Hashable:
        return plain_branch(call.branch) if branched else None, key_of(call)

    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number, call in enumerate(old):
        waiting[key(call)].append(number)
    found: list[int | None] = []
    for call in new:
        numbers = waiting[key(call)]
        found.append(numbers.pop(0) if numbers else None)
    return found


def _woven(count: int, places: Sequence[int | None]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of the indexes of an old and a new call (None: no partner), in the order of the `count` old calls.

    `places` has the index of the old call for each new call. A new call without one follows the new call before it.
    """
    partner = {place: number for number, place in enumerate(places) if place is not None}
    added: dict[int, list[int]] = defaultdict(list)
    after = -1
    for number, place in enumerate(places):
        if place is None:
            added[after].append(number)
        else:
            after = place
    for place in range(-1, count):
        if place >= 0:
            yield place, partner.get(place)
        yield from ((None, number) for number in added[place])


def _tool_key(call: ToolCall, ignore: Mapping[str, Collection[str]]) -> Hashable:
    ignored = ignore.get(call.tool, ())
    return call.agent, call.tool, canonical({name: value for name, value in call.args.items() if name not in ignored})


def _parts(models: Sequence[ModelCall], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the requests of `models`, in the order of their first use."""
    requests = [model.request for model in models if model.request is not None]
    return {name: parts[name] for request in requests for name in text_parts(request) if name in parts}


def _union(old: Mapping[str, tuple[str, ...]], new: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    more = {tool: [name for name in names if name not in old.get(tool, ())] for tool, names in new.items()}
    return {tool: (*old.get(tool, ()), *more.get(tool, ())) for tool in (*old, *more)}


def _tools(
    old: Mapping[str, tuple[Declaration, ...]],
    new: Mapping[str, tuple[Declaration, ...]],
    kept: Collection[tuple[str, str]],
) -> dict[str, tuple[Declaration, ...]]:
    """Return the tools of each agent. New ones replace old ones of the same toolset and name.

    A tool with old answers (agent and name in `kept`) keeps its old declaration.
    """
    found: dict[str, dict[tuple[str, int], Declaration]] = {agent: {} for agent in (*old, *new)}
    for agent, tools in (*old.items(), *new.items()):
        for tool in tools:
            if _place(tool) not in found[agent] or (agent, tool.name) not in kept:
                found[agent][_place(tool)] = tool
    return {agent: tuple(tools.values()) for agent, tools in found.items()}

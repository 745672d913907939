"""A new recording of a case that already has one.

A live run replaces the recording. A frozen run only adds the calls that it made live, such as the one after a miss.
What did not change stays as it was, so that the difference of both files shows what did.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from workbench.run.recordings.from_run import Taken
from workbench.run.recordings.recording import Declaration, ModelCall, Recording, ToolCall
from workbench.run.recordings.requests import text_parts
from workbench.worker.matching import canonical, plain_branch

CallT = TypeVar("CallT", ToolCall, ModelCall)


def merged(old: Recording | None, taken: Taken, *, models: bool, prune: bool) -> Recording:
    """Return the recording to keep.

    With `models`, answers of models are kept. They are also kept if `old` has some, so that they fit to the calls. With
    `prune`, recorded calls that a frozen run did not use are left out. If nothing changed but times, return `old`.
    """
    new = taken.recording
    models = models or (old is not None and bool(old.models))
    if not models:
        new = replace(new, models=(), parts={})
    if old is None:
        return new
    ignore = _union(old.ignore, new.ignore)
    calls = _together(old.calls, new.calls, taken.replayed, lambda call: _tool_key(call, ignore), prune=prune)
    answers = _together(old.models, new.models, taken.replayed_models, _model_key, prune=prune) if models else ()
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
    """Return the new calls, with the old ones for those that were replayed or are equal.

    If some were replayed, the old calls that were not used stay at their places.
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


def matched_calls(old: Recording, new: Recording) -> list[tuple[ToolCall | None, ToolCall | None]]:
    """Return the tool calls of both recordings in pairs, in the order of the old ones.

    A pair has the same agent, tool and arguments, at the same repetition. A new call without an old one comes after
    the call before it.
    """
    ignore = _union(old.ignore, new.ignore)
    places = _places(old.calls, new.calls, lambda call: _tool_key(call, ignore))
    return [
        (None if one is None else old.calls[one], None if other is None else new.calls[other])
        for one, other in _woven(len(old.calls), places)
    ]


def _places(old: Sequence[CallT], new: Sequence[CallT], key_of: Callable[[CallT], Hashable]) -> list[int | None]:
    """Return the number of the old call in the place of each new one, or None."""
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
    """Yield the numbers of old and new calls that belong together, in the order of the `count` old ones.

    `places` are those of the new calls. A call without a place comes after the call before it.
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


def _model_key(call: ModelCall) -> Hashable:
    return call.agent, call.asked


def _parts(models: Sequence[ModelCall], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts that requests name, in the order in which they do."""
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

    A tool with old answers (agent and name in `kept`) stays as it was when it gave them.
    """
    found: dict[str, dict[tuple[str, int], Declaration]] = {agent: {} for agent in (*old, *new)}
    for agent, tools in (*old.items(), *new.items()):
        for tool in tools:
            place = tool.name, tool.toolset
            if place not in found[agent] or (agent, tool.name) not in kept:
                found[agent][place] = tool
    return {agent: tuple(tools.values()) for agent, tools in found.items()}

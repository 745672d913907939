"""A new recording of a case that already has one.

A live run replaces the recording. A frozen run only adds the calls that it made live, such as the one after a miss.
What did not change stays as it was, so that the difference of both files shows what did.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from workbench.agents.worker.matching import canonical, plain_branch
from workbench.recordings.from_run import Taken
from workbench.recordings.recording import Declaration, ModelCall, Recording, ToolCall

_SINGLE = ("system", "tools", "config")
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
        return replace(result, tools=_tools(old.tools, new.tools), origin=origin)
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
    branched = all(call.branch is not None for call in old)

    def key(call: CallT) -> Hashable:
        return plain_branch(call.branch) if branched else None, key_of(call)

    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number, call in enumerate(old):
        waiting[key(call)].append(number)
    found: list[tuple[int | None, CallT]] = []
    """Each call with the number of the old one in its place."""
    for number, call in enumerate(new):
        places = waiting[key(call)]
        place = places.pop(0) if places else None
        if place is not None and number in replayed:
            call = replace(old[place], turn=call.turn, branch=call.branch)
        elif place is not None and replace(old[place], seconds=call.seconds) == call:
            call = old[place]
        found.append((place, call))
    if not replayed or prune:
        return tuple(call for _, call in found)
    return tuple(_woven(old, found))


def _woven(old: Sequence[CallT], found: Sequence[tuple[int | None, CallT]]) -> list[CallT]:
    """Return the old calls in their order, with new ones after the call before them."""
    taken_over = {place: call for place, call in found if place is not None}
    added: dict[int, list[CallT]] = defaultdict(list)
    after = -1
    for place, call in found:
        if place is None:
            added[after].append(call)
        else:
            after = place
    result = list(added[-1])
    for number, call in enumerate(old):
        result.append(taken_over.get(number, call))
        result.extend(added[number])
    return result


def _tool_key(call: ToolCall, ignore: Mapping[str, Collection[str]]) -> Hashable:
    ignored = ignore.get(call.tool, ())
    return call.agent, call.tool, canonical({name: value for name, value in call.args.items() if name not in ignored})


def _model_key(call: ModelCall) -> Hashable:
    return call.agent, call.asked


def _parts(models: Sequence[ModelCall], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts that requests name, in the order in which they do."""
    requests = [model.request for model in models if model.request is not None]
    names = [name for request in requests for name in (*map(request.get, _SINGLE), *request["contents"])]
    return {name: parts[name] for name in names if name in parts}


def _union(old: Mapping[str, tuple[str, ...]], new: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    more = {tool: [name for name in names if name not in old.get(tool, ())] for tool, names in new.items()}
    return {tool: (*old.get(tool, ()), *more.get(tool, ())) for tool in (*old, *more)}


def _tools(
    old: Mapping[str, tuple[Declaration, ...]], new: Mapping[str, tuple[Declaration, ...]]
) -> dict[str, tuple[Declaration, ...]]:
    """Return the tools of each agent. New ones replace old ones of the same name."""
    named = {agent: {tool.name: tool for tool in (*old.get(agent, ()), *new.get(agent, ()))} for agent in (*old, *new)}
    return {agent: tuple(tools.values()) for agent, tools in named.items()}

"""Toolsets of a frozen conversation: their tools come from the recording, and none of them connects.

Agents are shared by conversations, so nothing in their tree is replaced. The methods that ADK calls are intercepted in
the classes of the toolsets instead. Plugins cannot do this: ADK calls none of them when it lists or closes toolsets,
asks for their credentials, or lets tools change a request.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import inspect
import itertools
import sys
from collections.abc import Iterator
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from .adk_gate import AdkGate, check_tool, current_gate, in_turn, patch_classes
from .calls import TooLargeError
from .declared import source_digest
from .error_forms import decoded_error, encoded_error
from .faults import hinting
from .gate import Live, inside
from .jsonable import digest, dumps
from .matching import BrokenRecordingError
from .value_forms import imported_class

Json = dict[str, Any]
_DECLARES = BaseTool.process_llm_request
"""The method by which a tool declares itself, if its class has no other one."""
_asked_outside_turns: dict[str, None] = {}
"""Classes of toolsets that were asked for their tools outside of a turn."""
_asking: contextvars.ContextVar[bool] = contextvars.ContextVar("agent_workbench_asking", default=False)
"""Whether a real toolset is listing its tools. Its calls of its own methods and of other toolsets are real, too."""


class FrozenTool(BaseTool):  # type: ignore[misc]
    """A tool of a toolset, made from its recorded declaration.

    Its calls are answered by the gate. If the gate lets one through, the toolset is opened for this call only. Its
    `__class__` is the recorded one, so `isinstance` accepts it as such a tool. ADK 2.13 treats some classes differently
    (it reads the picture in the answer of a ComputerUseTool, and names McpTools in traces), and so may the callbacks of
    an agent. A real subclass would inherit methods that need the state of a connected tool.
    """

    def __init__(self, toolset: Any, declared: Json, context: Any) -> None:
        self.recorded_types: list[str] = declared["types"]
        """The names of the recorded class and its bases."""
        known = (imported_class(name, BaseTool) for name in self.recorded_types)
        self._kind: Any = next((kind for kind in known if kind is not None), FrozenTool)
        declaration = declared.get("declaration")
        self._declaration = None if declaration is None else types.FunctionDeclaration.model_validate(declaration)
        description = getattr(self._declaration, "description", None) or ""
        BaseTool.__init__(
            self, name=declared["name"], description=description, is_long_running=declared["long_running"]
        )
        self._toolset = toolset
        self._context = context
        self._instruction: str = declared["instruction"]
        self._confirmation: bool = declared["confirmation"]
        self._hidden: bool = declared["hidden"]

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The recorded class or its first base that is imported, else `FrozenTool`."""
        return self.__dict__.get("_kind", FrozenTool)

    def renamed(self, name: str) -> FrozenTool:
        """Return a copy of the tool with another name."""
        declared = self._declaration and self._declaration.model_copy(update={"name": name})
        made = copy.copy(self)
        made.name, made._declaration = name, declared
        return made

    def _get_declaration(self) -> Any:
        return None if self._declaration is None else self._declaration.model_copy(deep=True)

    async def process_llm_request(self, *, tool_context: Any, llm_request: Any) -> None:
        """Declare the tool, unless it was hidden, and add the instruction that the recorded tool added."""
        if self._hidden:
            llm_request.tools_dict[self.name] = self
        else:
            await BaseTool.process_llm_request(self, tool_context=tool_context, llm_request=llm_request)
        if self._instruction:
            llm_request.append_instructions([self._instruction])

    async def check_require_confirmation(self, args: Json, tool_context: Any) -> bool:
        """Return whether the user must confirm the call: as recorded, or as the toolset's own function decides."""
        decide = getattr(self._toolset, "_require_confirmation", None)
        if not callable(decide):
            return self._confirmation
        known = inspect.signature(decide).parameters
        given = {name: value for name, value in {**args, "tool_context": tool_context}.items() if name in known}
        decided = decide(**given)
        return bool(await decided if inspect.isawaitable(decided) else decided)

    async def run_async(self, *, args: Json, tool_context: Any) -> Any:
        """Call the real tool, and close its toolset. Raise LookupError if the toolset no longer lists the tool."""
        try:
            method = type(self._toolset).get_tools_with_prefix  # The toolset's own, not our wrapper of it.
            for tool in await getattr(method, "__wrapped__", method)(self._toolset, self._context):
                if tool.name == self.name:
                    return await tool.run_async(args=args, tool_context=tool_context)
            raise LookupError(f"{type(self._toolset).__name__} has no tool {self.name}")
        finally:
            await self._toolset.close()


class Toolsets:
    """The tools of one conversation's agents: those that are listed now, and those of its recording.

    `agent` is the conversation's agent. If code of the agent asks a toolset for its tools, the toolset is searched for
    in the tree of `agent`.
    """

    def __init__(self, gate: AdkGate, agent: Any = None) -> None:
        self._gate = gate
        self._agent = agent
        self._listed: dict[tuple[str, int], list[Any]] = {}
        """(agent, position of the toolset) → its tools."""
        self._listings: dict[tuple[str, int], int] = {}
        """(agent, position of the toolset) → how often it listed its tools."""
        self._since: dict[tuple[str, int, str], int] = {}
        """(agent, position of the toolset, tool) → the number of the listing in which it came, from 1."""
        self._failed: dict[tuple[str, int], Json] = {}
        """(agent, position of the toolset) → why it could not list its tools."""
        self._places: dict[int, tuple[Any, str, int]] = {}
        """`id` of a toolset → the toolset, its agent and its position."""
        self._instructions: dict[tuple[str, str], str] = {}
        """(agent, tool) → the instruction that the tool added to a request."""
        self._config: dict[tuple[str, int], list[Json]] = {}
        """(agent, position of the toolset) → the entries that the toolset itself added to the tools of a request."""
        self._hidden: set[tuple[str, str]] = set()
        """(agent, tool) of the tools that did not declare themselves."""
        self._reported: dict[str, str] = {}
        """Agent → digest of its reported tools."""
        self._sent: dict[str, str] = {}
        """Agent → digest of the declarations in its newest request."""

    def place(self, toolset: Any, context: Any) -> tuple[str, int]:
        """Return the agent of a toolset, and the toolset's position in the agent's tools from 1 (0: not there)."""
        agent: Any = getattr(getattr(context, "_invocation_context", None), "agent", None)
        for position, tool in enumerate(getattr(agent, "tools", None) or (), 1):
            if tool is toolset:
                self._places[id(toolset)] = toolset, agent.name, position
        if id(toolset) not in self._places:
            for agent_of, position in _owners(self._agent, toolset):
                self._places[id(toolset)] = toolset, agent_of, position
                break
        _, name, position = self._places.get(id(toolset), (None, str(getattr(agent, "name", "")), 0))
        return name, position

    def listed(self, agent: str, position: int, tools: list[Any]) -> None:
        """Record the tools that a toolset listed, unless it is in no agent's tools."""
        if position:
            number = self._listings[agent, position] = self._next_listing(agent, position)
            for tool in tools:
                self._since.setdefault((agent, position, tool.name), number)
            self._listed[agent, position] = list(tools)
            self._failed.pop((agent, position), None)

    def _next_listing(self, agent: str, position: int) -> int:
        return self._listings.get((agent, position), 0) + 1

    def failed(self, agent: str, position: int, error: Exception) -> None:
        """Record that a toolset could not list its tools. Some versions of ADK continue without them."""
        if position and (agent, position) not in self._listed:
            self._failed[agent, position] = encoded_error(error)

    def instructed(self, agent: str, tool: str, instruction: str) -> None:
        """Record the text that a tool, or the toolset at `#position`, added to the instructions of a request."""
        if instruction:
            self._instructions[agent, tool] = instruction

    def configured(self, agent: str, position: int, before: list[Any], request: Any) -> None:
        """Record what a toolset added to the tools of a request. `before` are the tools without these entries."""
        known = [id(tool) for tool in before]
        added = [tool for tool in _config_tools(request) if id(tool) not in known and isinstance(tool, types.Tool)]
        if added:
            self._config[agent, position] = [tool.model_dump(mode="json", exclude_none=True) for tool in added]

    def hid(self, agent: str, tool: str, hidden: bool) -> None:
        """Record whether a tool did not declare itself."""
        (self._hidden.add if hidden else self._hidden.discard)((agent, tool))

    def sent(self, agent: str, request: Any, declared: str) -> None:
        """Report the tools of a request if they are new. `declared` is a digest of all declarations, or ""."""
        if self._gate.gate.calls is None or (declared and self._sent.get(agent) == declared):
            return
        self._sent[agent] = declared
        positions = self._positions(agent)
        entries: list[Json] = []
        for group in getattr(request.config, "tools", None) or []:
            for function in getattr(group, "function_declarations", None) or []:
                tool = request.tools_dict.get(function.name)
                entries.append(self._entry(agent, function.name, tool, positions.get(function.name, 0), function))
        self._report(agent, entries, positions)

    def finish(self) -> None:
        """Report the toolsets of agents that sent no request."""
        if self._gate.gate.calls is not None:
            for agent in {agent for agent, _ in (*self._listed, *self._failed)} - self._reported.keys():
                self._report(agent, [], self._positions(agent))

    def _positions(self, agent: str) -> dict[str, int]:
        return {
            tool.name: position for (name, position), tools in self._listed.items() if name == agent for tool in tools
        }

    def _report(self, agent: str, entries: list[Json], positions: dict[str, int]) -> None:
        known = {entry["name"] for entry in entries}
        own: Json = {"name": "", "long_running": False, "declaration": None}
        for (name, position), tools in self._listed.items():
            if name != agent:
                continue
            for tool in tools:
                if tool.name not in known:
                    entries.append(self._entry(agent, tool.name, tool, position, tool._get_declaration()))
            # The toolset itself, so that one without tools is known, too.
            entries.append({**own, "toolset": position})
            if instruction := self._instructions.get((agent, f"#{position}")):
                entries[-1]["instruction"] = instruction
            if config := self._config.get((agent, position)):
                entries[-1]["config"] = config
        for (name, position), error in self._failed.items():
            if name == agent:
                entries.append({**own, "toolset": position, "error": error})
        text = dumps(entries)
        if entries and self._reported.get(agent) != digest(text):
            self._reported[agent] = digest(text)
            assert self._gate.gate.calls is not None
            self._gate.gate.calls.add({"kind": "tools", "agent": agent, "tools": entries})

    def _entry(self, agent: str, name: str, tool: Any, position: int, declaration: Any) -> Json:
        """Return the wire form of a tool."""
        calls = self._gate.gate.calls
        assert calls is not None
        entry: Json = {"name": name, "toolset": position, "long_running": bool(getattr(tool, "is_long_running", False))}
        try:
            given = None if declaration is None else declaration.model_dump(mode="json", exclude_none=True)
            entry["declaration"] = None if given is None else calls.piece(given)
        except (TooLargeError, ValueError) as error:
            entry.update({"declaration": None, "lost": str(error)})
        entry["source"] = self._source(agent, tool, position)
        instruction = self._instructions.get((agent, name))
        if instruction and position:
            entry["instruction"] = instruction
        if position and (agent, name) in self._hidden:
            entry["hidden"] = True
        since = self._since.get((agent, position, name), 1)
        if since > 1:
            entry["since"] = since
        if position and (kinds := _types(tool)):
            entry["types"] = kinds
        if position and getattr(tool, "_require_confirmation", False) is True:
            entry["confirmation"] = True
        return entry

    def _source(self, agent: str, tool: Any, position: int) -> str:
        """Return the digest of the source of a tool's function, its class, or the class of its toolset, or ""."""
        if not position:
            node = getattr(tool, "node", tool)
            function = getattr(node, "func", None) or getattr(node, "_func", None)
            return "" if tool is None else source_digest(function or type(tool))
        owners = (toolset for toolset, *place in self._places.values() if place == [agent, position])
        toolset = next(owners, None)
        return "" if toolset is None else source_digest(type(toolset))

    async def frozen(self, toolset: Any, agent: str, position: int, context: Any) -> list[Any] | None:
        """Return the recorded tools of a toolset, or None if the toolset itself must be asked. Never returns on a miss.

        Raises:
            Exception: the recorded one, if the toolset could not list its tools.
        """
        declared = self._declared(agent, position)
        if declared is not None:
            for entry in declared:
                if entry["error"] is not None:
                    raise decoded_error(entry["error"])
            number = self._next_listing(agent, position)
            listed = [entry for entry in declared if entry["name"] and entry["since"] <= number]
            return [FrozenTool(toolset, entry, context) for entry in listed]
        decision = self._gate.gate.no_toolset(agent, type(toolset).__name__)
        if isinstance(decision, Live):
            return None
        await self._gate.miss(decision)
        return None

    def process(self, agent: str, position: int, request: Any) -> bool:
        """Add to a request what the recorded toolset had added. Return False if the recording lacks the toolset."""
        declared = self._declared(agent, position)
        if declared is None:
            return False
        own = next((entry for entry in declared if not entry["name"]), None)
        if own is not None and own["instruction"]:
            request.append_instructions([own["instruction"]])
        for data in () if own is None else own["config"]:
            tool = types.Tool.model_validate(data)
            if tool not in _config_tools(request):
                request.config.tools = [*_config_tools(request), tool]
        return True

    def _declared(self, agent: str, position: int) -> list[Json] | None:
        known = self._gate.gate.declarations.get(agent, ()) if position else ()
        return [_whole(entry) for entry in known if entry.get("toolset") == position] or None


def _owners(root: Any, toolset: Any) -> Iterator[tuple[str, int]]:
    """Yield the agents below `root` that have a toolset in their tools, with its position there."""
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        agent = waiting.pop()
        if agent is None or id(agent) in seen:
            continue
        seen[id(agent)] = agent
        waiting += getattr(agent, "sub_agents", None) or ()
        for position, tool in enumerate(getattr(agent, "tools", None) or (), 1):
            waiting.append(getattr(tool, "agent", None))
            if tool is toolset:
                yield agent.name, position


def _types(tool: Any) -> list[str]:
    """Return the names of a tool's class and its bases, without BaseTool, or [] for a tool that runs an agent."""
    kind = type(tool)
    if kind is FrozenTool:
        return list(tool.recorded_types)
    # ADK reads the agent in such a tool, and a replayed tool has none.
    if any(base.__name__ in ("AgentTool", "NodeTool") for base in kind.__mro__):
        return []
    bases = [base for base in kind.__mro__ if issubclass(base, BaseTool) and base is not BaseTool]
    return [f"{base.__module__}.{base.__qualname__}" for base in bases]


def _whole(entry: Json) -> Json:
    """Return a recorded declaration with defaults for missing fields."""
    usual: Json = {"long_running": False, "instruction": "", "confirmation": False, "hidden": False, "since": 1}
    return {**usual, "config": [], "types": [], "declaration": None, "error": None, **entry}


def check_declarations(gate: Any) -> None:
    """Raise BrokenRecordingError if google-genai cannot read the recorded declaration of a tool."""
    for entry in map(_whole, itertools.chain.from_iterable(gate.declarations.values())):
        try:
            if entry["declaration"] is not None:
                types.FunctionDeclaration.model_validate(entry["declaration"])
            for tool in entry["config"]:
                types.Tool.model_validate(tool)
        except ValueError as error:
            raise BrokenRecordingError(f"the declaration of {entry['name']}: {error}") from None


def intercept_toolsets() -> None:
    """Let the gate list the tools of each toolset in this process, and note what tools and toolsets add to requests."""
    patch_classes(BaseToolset, {"get_tools_with_prefix": _listing, "get_auth_config": _authorizing})
    patch_classes(BaseToolset, {"get_tools": _naming, "__init__": _constructing}, subclasses_only=True)
    # Their own implementations do nothing that could be noted.
    patch_classes(BaseToolset, {"process_llm_request": _processing}, subclasses_only=True)
    patch_classes(BaseTool, {"process_llm_request": _declaring})


def warn_of_early_toolsets() -> None:
    """Print a warning for each class of toolsets that listed its tools outside of a turn: it cannot be frozen."""
    for name in _asked_outside_turns:
        print(f"warning: {_not_frozen(name)}", file=sys.stderr)


def _not_frozen(name: str) -> str:
    return (
        f"{name} connects while the agent is made, so it cannot be frozen; "
        "put the toolset itself into the agent's tools: it then lists its tools in each turn"
    )


def _naming(method: Any) -> Any:
    @functools.wraps(method)
    async def get_tools(self: Any, *rest: Any, **named: Any) -> Any:
        if inside.get() or _asking.get():
            return await method(self, *rest, **named)
        gate = current_gate()
        if gate is not None and gate.gate.lists_recorded_tools:
            # Code of the agent asks, because ADK does so with the prefix.
            context = named.get("readonly_context", rest[0] if rest else None)
            tools = await gate.toolsets.frozen(self, *gate.toolsets.place(self, context), context)
            if tools is None:
                return await _really(method, self, *rest, **named)
            return [_without_prefix(tool, self) for tool in tools]
        if in_turn():
            return await method(self, *rest, **named)
        _asked_outside_turns.setdefault(type(self).__name__)
        with hinting(_not_frozen(type(self).__name__)):
            return await method(self, *rest, **named)

    return get_tools


async def _really(method: Any, *rest: Any, **named: Any) -> Any:
    before = _asking.get()
    _asking.set(True)
    try:
        return await method(*rest, **named)
    finally:
        _asking.set(before)


def _without_prefix(tool: FrozenTool, toolset: Any) -> FrozenTool:
    prefix = f"{getattr(toolset, 'tool_name_prefix', None) or ''}_"
    return tool.renamed(tool.name[len(prefix) :]) if len(prefix) > 1 and tool.name.startswith(prefix) else tool


def _constructing(method: Any) -> Any:
    @functools.wraps(method)
    def __init__(self: Any, *rest: Any, **named: Any) -> None:  # noqa: N807
        with contextlib.nullcontext() if in_turn() else hinting(_not_frozen(type(self).__name__)):
            method(self, *rest, **named)

    return __init__


def _listing(method: Any) -> Any:
    @functools.wraps(method)
    async def get_tools_with_prefix(self: Any, readonly_context: Any = None) -> Any:
        gate = None if inside.get() else current_gate()
        if gate is None:
            return await method(self, readonly_context)
        agent, position = gate.toolsets.place(self, readonly_context)
        if gate.gate.lists_recorded_tools:
            tools = await gate.toolsets.frozen(self, agent, position, readonly_context)
            tools = await _really(method, self, readonly_context) if tools is None else tools
        else:
            try:
                tools = await method(self, readonly_context)
            except Exception as error:
                gate.toolsets.failed(agent, position, error)
                raise
        gate.toolsets.listed(agent, position, tools)
        return tools

    return get_tools_with_prefix


def _authorizing(method: Any) -> Any:
    @functools.wraps(method)
    def get_auth_config(self: Any) -> Any:
        gate = None if inside.get() else current_gate()
        return None if gate is not None and gate.gate.lists_recorded_tools else method(self)

    return get_auth_config


def _processing(method: Any) -> Any:
    @functools.wraps(method)
    async def process_llm_request(self: Any, *, tool_context: Any, llm_request: Any) -> None:
        gate = current_gate()
        if gate is None:
            await method(self, tool_context=tool_context, llm_request=llm_request)
            return
        agent, position = gate.toolsets.place(self, tool_context)
        before, tools = _instruction(llm_request), list(_config_tools(llm_request))
        if not (gate.gate.lists_recorded_tools and gate.toolsets.process(agent, position, llm_request)):
            await method(self, tool_context=tool_context, llm_request=llm_request)
        gate.toolsets.configured(agent, position, tools, llm_request)
        gate.toolsets.instructed(agent, f"#{position}", _added(before, llm_request))

    return process_llm_request


def _declaring(method: Any) -> Any:
    @functools.wraps(method)
    async def process_llm_request(self: Any, *, tool_context: Any, llm_request: Any) -> None:
        gate = current_gate(tool_context)
        if gate is not None:
            check_tool(self)
        before = _instruction(llm_request)
        await method(self, tool_context=tool_context, llm_request=llm_request)
        if gate is not None:
            agent = str(getattr(tool_context, "agent_name", ""))
            gate.toolsets.instructed(agent, self.name, _added(before, llm_request))
            if method is not _DECLARES:
                groups = (getattr(one, "function_declarations", None) or () for one in _config_tools(llm_request))
                is_declared = any(function.name == self.name for group in groups for function in group)
                gate.toolsets.hid(agent, self.name, not is_declared)

    return process_llm_request


def _config_tools(request: Any) -> list[Any]:
    return getattr(getattr(request, "config", None), "tools", None) or []


def _instruction(request: Any) -> Any:
    return getattr(getattr(request, "config", None), "system_instruction", None)


def _added(before: Any, request: Any) -> str:
    """Return the text that was appended to a request's instruction, or "" after any other change."""
    after = _instruction(request)
    if not isinstance(after, str) or after == before:
        return ""
    return after[len(before) :].lstrip("\n") if isinstance(before, str) and after.startswith(before) else ""

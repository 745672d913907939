"""Interception of an ADK agent's tool calls, which pass the gate.

The outermost `run_async` of a tool is intercepted, in the tool's class. A plugin or callback could not do this, because
callbacks, confirmations, error handlers and retries must run around a replayed call exactly as around a live one. Some
calls have no plugin at all: those of an agent tool that includes no plugins.

Control tools of ADK, and tools that run an agent or a workflow, do not count as calls. They run, and the calls that
they make pass the gate.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from . import faults
from .adk_effects import Effects, artifact_digests
from .calls import POLL, Call, Order, Place
from .declared import json_declaration
from .error_forms import decoded_error
from .fork import Asked
from .fork import state_digest as digest_of_state
from .gate import CANCEL_SECONDS, Decision, Gate, Inject, Live, Miss, inside, within_tool
from .matching import InjectedFault, Recorded, ToolCall, canonical, plain_branch
from .value_forms import UnknownFormError, decoded

ChangeAnswer = Callable[[Any], Any]
"""A function that applies an injected fault to an answer."""
_OURS = "_agent_workbench"
_CONTROL = frozenset(
    {"transfer_to_agent", "exit_loop", "set_model_response", "finish_task", "request_input", "adk_request_input"}
)
"""Names of ADK's control tools, which steer agents and workflows."""
_NOBODY = "a tool was called outside of its conversation's context, so its recording is unknown"
_LOOK_BACK = 500
"""Number of the newest events that are searched for the model's answer with a call."""

_PARAMETERS = ("args", "tool_context")
"""Parameters of a tool's `run_async`."""
_current: contextvars.ContextVar[AdkGate | None] = contextvars.ContextVar("agent_workbench_gate", default=None)
"""The gate of the conversation whose turn this task runs, or None."""
_open: weakref.WeakSet[AdkGate] = weakref.WeakSet()
"""The gates of this process whose conversations are recorded, replayed or changed, from their first turn on."""
_wrappers: dict[Any, dict[str, Callable[[Any], Any]]] = {}
"""Base class → method → the function that wraps the method in later subclasses."""


class AdkGate:
    """The gate of one conversation with an ADK agent."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.toolsets: Any = None
        """The conversation's `adk_toolsets.Toolsets`, or None if nothing is recorded, replayed or changed."""
        self.answers: Any = None
        """The conversation's `adk_answers.Answers`, or None like `toolsets`."""
        self.sessions: Any = None
        """The conversation's session service, which identifies its invocations."""
        self.is_running = False
        """Whether a turn is running."""
        self._arrived: set[str] = set()
        """IDs of the function calls that have reached their tool."""
        self._orders: dict[str, int] = {}
        """Function call ID → its number in the order of the model's calls, until the call reaches its tool."""

    @property
    def is_used(self) -> bool:
        """Whether calls are recorded, replayed or changed."""
        return self.toolsets is not None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Pass the calls of the running task through this gate, for one turn."""
        _current.set(self)
        self.is_running = True
        if self.is_used:
            _open.add(self)
        try:
            yield
        finally:
            _current.set(None)
            self.is_running = False
            if self.toolsets is not None:
                self.toolsets.finish()

    async def run(self, tool: Any, method: Callable[..., Any], args: Any, context: Any) -> Any:
        """Make a call of a tool, or answer it as the recording or a fault says."""
        if _is_control(tool) or _runs_agent(tool):
            return await method(args=args, tool_context=context)
        method = functools.partial(method, tool_context=context)
        if not isinstance(context, ToolContext):
            # Code of the agent may call a tool without a context, or with a stand-in. Then it has no effects.
            context = None
        invocation = getattr(context, "_invocation_context", None)
        # The node of a workflow makes calls in the name of the workflow.
        caller = getattr(invocation, "agent", None) or getattr(getattr(context, "parent_ctx", None), "node", None)
        agent = str(getattr(caller, "name", None) or getattr(context, "agent_name", None) or "")
        branch = plain_branch(getattr(invocation, "branch", None))
        ahead, order = self._place(context, invocation)
        await self.follow(Asked("tool", agent, branch, tool.name, args, None), context)
        declaration = json_declaration(tool) if self.gate.is_frozen else None
        decision = self.gate.tool(ToolCall(agent, branch, tool.name, args, ahead, declaration))
        call = self._begin(agent, branch, tool.name, args, context, order, decision)
        function = getattr(tool, "func", None)
        if call is not None and (inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)):
            call.data["streams"] = True  # ADK made generators for conversations with streams.
        place = self.gate.begin_in_order(branch, tool.name, decision)
        try:
            return await self._answer(call, place, method, args, context, decision)
        finally:
            self.gate.order.end(place)

    async def _answer(
        self, call: Call | None, place: Place, method: Callable[..., Any], args: Any, context: Any, decision: Decision
    ) -> Any:
        change: ChangeAnswer = _unchanged
        if isinstance(decision, Inject):
            await asyncio.sleep(decision.fault.seconds)
            if decision.then is None:
                return await self._inject(call, decision.fault)
            change, decision = decision.changed, decision.then
        if isinstance(decision, Live):
            return await self._make(call, functools.partial(method, args=args), context, change)
        if isinstance(decision, Miss):
            return await self.miss(decision)
        await in_order(self.gate.order, place)
        return await self._replay(call, decision.recorded, context, change)

    async def _inject(self, call: Call | None, fault: InjectedFault) -> Any:
        """Return or raise the outcome that a fault gives to a call. Never return for the fault `never`."""
        if fault.kind == "never":
            if call is not None:
                call.lost("it never ended, because of an injected fault")
            await _forever()
        if fault.error is not None:
            error = decoded_error(fault.error)
            if call is not None:
                call.raised(error)
            raise error
        if call is not None:
            call.answered(fault.answer)
        return fault.answer

    async def follow(self, asked: Asked, context: Any) -> None:
        """End the case if its beginning differs from the fork's recording. `context` is that of the call, or None."""
        fork = self.gate.fork
        if fork is None or fork.passed:
            return
        asked = asked._replace(state=None if context is None else state_digest(context))
        artifacts = {}
        if context is not None and fork.recorded(asked) is None:
            artifacts = await artifact_digests(context, fork.artifacts)
        fault = fork.check(asked, artifacts)
        if fault is not None:
            await self.miss(Miss(fault))

    async def miss(self, miss: Miss) -> Any:
        """End the case. Never returns."""
        self.gate.end(miss)
        return await _forever()

    def _begin(
        self, agent: str, branch: str, tool: str, args: Any, context: Any, order: int, decision: Decision
    ) -> Call | None:
        calls = self.gate.calls
        if calls is None:
            return None
        return self.gate.begin(
            "tool",
            agent,
            branch,
            decision,
            tool=tool,
            call=getattr(context, "function_call_id", None),
            order=order,
            args=calls.argument_piece(args),
            state=state_digest(context),
        )

    async def _make(self, call: Call | None, method: Callable[[], Any], context: Any, change: ChangeAnswer) -> Any:
        if call is None:
            with within_tool():
                return change(await method())
        effects = Effects(context)
        try:
            with within_tool():
                answer = change(await method())
        except Exception as error:
            await self._keep(call, effects, context, functools.partial(call.raised, error))
            raise
        except asyncio.CancelledError as error:
            call.raised(error)
            raise
        except BaseException as error:
            call.lost(f"it ended with {type(error).__name__}")
            raise
        await self._keep(call, effects, context, functools.partial(call.answered, answer))
        return answer

    async def _keep(self, call: Call, effects: Effects, context: Any, outcome: Callable[..., None]) -> None:
        """Record the outcome and effects of a call, or the error of recording them, which must not reach the agent."""
        try:
            taken = await effects.taken(context, self.gate.calls)
        except Exception as error:
            call.failed(error)
        else:
            outcome(taken)

    async def _replay(self, call: Call | None, recorded: Recorded, context: Any, change: ChangeAnswer) -> Any:
        if self.answers is not None and context is not None:
            self.answers.recorder.mark_frozen(context)
        effects = Effects(context)
        try:
            await effects.apply(recorded.effects, context)
            answer = change(decoded(recorded.value)) if recorded.outcome == "answer" else None
        except (UnknownFormError, RecursionError) as error:
            return await self.miss(self.gate.unreadable(recorded, error))
        if recorded.outcome == "answer":
            if call is not None:
                await self._keep(call, effects, context, functools.partial(call.answered, answer))
            return answer
        raised = await self.recorded_error(recorded)
        if call is not None:
            await self._keep(call, effects, context, functools.partial(call.raised, raised))
        raise raised

    async def recorded_error(self, recorded: Recorded) -> Exception:
        """Return the recorded exception of a call.

        If the recorded call was cancelled, wait up to `CANCEL_SECONDS` for the same cancellation, then end the case.
        """
        if recorded.was_cancelled:
            await asyncio.sleep(CANCEL_SECONDS)
            await self.miss(self.gate.not_cancelled(recorded))
        return decoded_error(recorded.value)

    def _place(self, context: Any, invocation: Any) -> tuple[int, int]:
        """Return the number of equal calls ahead of this one, and the position of this one among the model's calls."""
        own = str(getattr(context, "function_call_id", None) or "")
        together = _model_answer(invocation, own) if own else []
        if own not in self._orders:
            first = self.gate.next_order(len(together) or 1)
            self._orders.update({call.id: first + index for index, call in enumerate(together)})
            self._orders.setdefault(own, first)
        # Taken out, because a call that waited for a confirmation comes again with the same ID.
        order = self._orders.pop(own)
        ahead = 0
        if len(together) > 1:
            index = next(index for index, call in enumerate(together) if call.id == own)
            earlier = [call for call in together[:index] if call.id not in self._arrived]
            mine = together[index]
            ahead = sum(
                call.name == mine.name and canonical(call.args or {}) == canonical(mine.args or {}) for call in earlier
            )
        if own:
            self._arrived.add(own)
        return ahead, order


async def in_order(order: Order, place: Place) -> None:
    """Wait until a call may be answered in the recorded order."""
    while order.waits(place):
        await asyncio.sleep(POLL)
    order.released(place)


def _unchanged(answer: Any) -> Any:
    return answer


def _model_answer(invocation: Any, call_id: str) -> list[Any]:
    """Return the function calls of the model's answer that contains the call, or [] if it is not found."""
    events = getattr(getattr(invocation, "session", None), "events", None) or []
    for event in reversed(events[-_LOOK_BACK:]):
        calls: list[Any] = event.get_function_calls()
        if any(call.id == call_id for call in calls):
            return calls
    return []


def state_digest(context: Any) -> str | None:
    """Return a digest of the session's state, or None if the context has no readable state."""
    try:
        return digest_of_state(context.state.to_dict())
    except Exception:
        # A framework's object of another kind. The call itself does not need it.
        return None


async def _forever() -> Any:
    await asyncio.get_running_loop().create_future()


def in_turn() -> bool:
    """Return whether the current task runs a turn of a conversation."""
    return _current.get() is not None


def current_gate(context: Any = None) -> AdkGate | None:
    """Return the gate of the conversation that makes a call now, or None if its calls need no gate (`is_used`).

    A thread or task may lack the conversation's context variables. Then the only running conversation counts, or the
    only open one if none is running. Of several, the `context` of the call identifies one. If it does not, return None.

    Raises:
        RuntimeError: the call may belong to several conversations, and some are frozen. The frozen ones are ended.
    """
    gate = _current.get()
    if gate is not None:
        return gate if gate.is_used else None
    known = list(_open)
    known = [other for other in known if other.is_running] or known
    if len(known) > 1:
        sessions = getattr(getattr(context, "_invocation_context", None), "session_service", None)
        known = [other for other in known if other.sessions is sessions] or known
    if len(known) <= 1:
        return known[0] if known else None
    frozen = [other for other in known if other.gate.has_recording]
    for other in frozen:
        other.gate.end(Miss(faults.fault("frozen_miss", _NOBODY, "use --isolation case")))
    if frozen:
        raise RuntimeError(_NOBODY)
    return None


def _is_control(tool: Any) -> bool:
    if tool.name not in _CONTROL:
        return False
    home = getattr(tool.func, "__module__", "") if issubclass(type(tool), FunctionTool) else type(tool).__module__
    return str(home).startswith("google.adk.")


def _runs_agent(tool: Any) -> bool:
    """Return whether a tool runs an agent or a workflow. A node that is just a function is a tool like others."""
    if _is_a(tool, "google.adk.tools.agent_tool", "AgentTool"):
        return True
    if not _is_a(tool, "google.adk.tools._node_tool", "NodeTool"):
        return False
    return not _is_a(tool.node, "google.adk.workflow._function_node", "FunctionNode")


def _is_a(value: Any, module: str, name: str) -> bool:
    kind: Any = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and issubclass(type(value), kind)


def intercept_tools() -> None:
    """Make every class of tools in this process pass its calls to the gate, including classes defined later."""
    patch_classes(BaseTool, _TOOL)


def patch_classes(base: Any, wrappers: dict[str, Callable[[Any], Any]], *, subclasses_only: bool = False) -> None:
    """Wrap methods of `base` (unless `subclasses_only`) and of its present and later subclasses that define them.

    `wrappers` has a function for each method name, which returns the wrapped method.
    """
    waiting = type.__subclasses__(base) if subclasses_only else [base]
    while waiting:
        kind = waiting.pop()
        _patch(kind, wrappers)
        waiting += type.__subclasses__(kind)
    if base not in _wrappers:
        _wrappers[base] = {}
        _patch_later_subclasses(base)
    _wrappers[base].update(wrappers)


def _patch_later_subclasses(base: Any) -> None:
    before = base.__dict__.get("__init_subclass__")

    def init_subclass(cls: Any, /, **named: Any) -> None:
        if before is None:
            super(base, cls).__init_subclass__(**named)
        else:
            before.__func__(cls, **named)
        _patch(cls, _wrappers[base])

    base.__init_subclass__ = classmethod(init_subclass)


def _patch(kind: Any, wrappers: dict[str, Callable[[Any], Any]]) -> None:
    for name, wrapper in wrappers.items():
        method = kind.__dict__.get(name)
        if method is not None and not _is_ours(method):
            setattr(kind, name, _marked(wrapper(method if inspect.isfunction(method) else _resolving(method))))


def _marked(wrapped: Any) -> Any:
    setattr(wrapped, _OURS, wrapped)
    return wrapped


def _is_ours(method: Any) -> bool:
    """Return whether a method is a wrapper of `_patch` itself. A foreign wrapper around it may have its attributes."""
    return getattr(method, _OURS, None) is method


def _resolving(attribute: Any) -> Any:
    """Return a function for a method that is another kind of object, such as the wrapper of an instrumentation."""

    @functools.wraps(attribute, updated=())
    def method(self: Any, *rest: Any, **named: Any) -> Any:
        bind = getattr(type(attribute), "__get__", None)
        return (attribute if bind is None else bind(attribute, self, type(self)))(*rest, **named)

    return method


def check_tool(tool: Any) -> None:
    """Make the calls of a tool pass the gate, even if its `run_async` was replaced after its class was defined."""
    for kind in type.mro(type(tool)):
        if issubclass(kind, BaseTool):
            _patch(kind, _TOOL)
    own = getattr(tool, "__dict__", {}).get("run_async")
    if own is not None and not _is_ours(own):
        tool.run_async = _marked(functools.partial(_gated(lambda self, **named: own(**named)), tool))


def _gated(method: Any) -> Any:
    @functools.wraps(method)
    async def run_async(self: Any, *rest: Any, **named: Any) -> Any:
        given = {**{_PARAMETERS[index]: value for index, value in enumerate(rest[: len(_PARAMETERS)])}, **named}
        gate = None if inside.get() else current_gate(given.get("tool_context"))
        if gate is None or "args" not in given or len(rest) > len(_PARAMETERS):
            return await method(self, *rest, **named)
        args, context = given.pop("args"), given.pop("tool_context", None)
        return await gate.run(self, functools.partial(method, self, **given), args, context)

    return run_async


_TOOL: dict[str, Callable[[Any], Any]] = {"run_async": _gated}

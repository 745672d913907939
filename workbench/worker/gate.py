"""The gate through which each call of a tool or model passes in a case's process.

It injects faults, answers calls from a recording, ends the case at a call without one, and records live calls. It does
not depend on a framework: `adk_gate` and `python_runner` pass the calls to it.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Union

from . import faults
from .calls import MODEL, Call, Calls, Order, Place, TooLargeError
from .declared import no_longer_fits, signature_declaration, source_digest
from .fork import Asked, Fork
from .jsonable import dumps
from .matching import (
    BrokenRecordingError,
    InjectedFault,
    Injection,
    Recorded,
    Recordings,
    ToolCall,
    damaged,
    shown_call,
)

Json = dict[str, Any]
OnMiss = Callable[[faults.Fault], None]
"""A function that ends the case with a fault, from any thread. It may end the process."""
_HINT = "freeze the case again after a live run, or use --on-miss live"
_MODELS = "freeze the answers of models, too (agent-workbench freeze RUN --models), or replay only tools (--frozen)"
_OTHER_PART = (
    'freeze the case again after a live run, or write "ignore": {{"$model": ["{part}"]}} into its frozen file '
    "if this part differs each time"
)
_ESCAPED = (
    "in plain Python, call tools with session.tool(name, args, call), under the names that the steps show, "
    "or use --on-miss live"
)
CANCEL_SECONDS = 30.0
"""Seconds for which a call waits to be cancelled, if it was cancelled when it was recorded."""
_PART_LIMIT = 1024 * 1024
"""Maximum size of a part of a request that is reported with a miss, in characters of JSON."""
inside: contextvars.ContextVar[bool] = contextvars.ContextVar("agent_workbench_inside", default=False)
"""Whether a tool is running whose own calls are part of it."""
_PARTS = {
    "instruction": ("system", "another instruction"),
    "tools": ("tools", "other tools"),
    "config": ("config", "another config"),
}
"""Names of parts, with their keys in the digests of a request, and the complaint about a difference."""


@contextlib.contextmanager
def within_tool() -> Iterator[None]:
    """Run a tool inside of this context. Calls that it makes are part of it and do not pass the gate."""
    before = inside.get()
    inside.set(True)
    try:
        yield
    finally:
        inside.set(before)


class Live(NamedTuple):
    """A call that is really made. `missed` says that a recording was expected but is missing."""

    missed: bool = False


class Replay(NamedTuple):
    """A call that gets the recorded answer, or the recorded error."""

    recorded: Recorded


class ModelCall(NamedTuple):
    """A request to a model. `asked` is its digest, `parts` are the digests of its parts, or empty."""

    agent: str
    branch: str
    asked: str
    parts: Json


class Miss(NamedTuple):
    """A call that ends the case and must never return.

    `call` is the call of a tool that has no recording, and `nearest` is the recorded call that is most like it.
    `differs` is the first part of a request to a model that differs, as in `Failed` (`docs/worker-protocol.md`), and
    `parts` are all those that differ and can be ignored.
    """

    fault: faults.Fault
    call: ToolCall | None = None
    nearest: Recorded | None = None
    differs: Json | None = None
    parts: tuple[str, ...] = ()

    def with_request(self, value: Callable[[str, int], str]) -> Miss:
        """Return the miss, completed by the part of the request that differs. `value` returns a part as JSON text."""
        if self.differs is None:
            return self
        now = value(self.differs["part"], self.differs.get("at", 0))
        known = {**self.differs, "now": now if len(now) <= _PART_LIMIT else ""}
        return self._replace(fault={**self.fault, "differs": dumps(known)})


class Inject(NamedTuple):
    """A call that gets an injected fault (`matching.InjectedFault`).

    If the only fault is a delay, `then` is the decision after the delay. For a malformed answer, it is the decision
    that provides the answer. For all other faults it is None, because nothing is called or replayed.
    """

    fault: InjectedFault
    then: Live | Replay | Miss | None = None

    def changed(self, answer: Any) -> Any:
        """Return what the agent gets for a real or recorded answer: damaged if the fault says so, else unchanged."""
        return damaged(answer, self.fault.how) if self.fault.kind == "malformed" else answer


Decision = Union[Live, Replay, Miss, Inject]


class Gate:
    """The gate of one conversation. Its methods may be called from any thread.

    `settings` is the case's `calls` (`docs/worker-protocol.md`), or None if nothing is recorded or replayed.
    """

    def __init__(self, settings: Json | None = None, on_miss: OnMiss | None = None) -> None:
        given = settings or {}
        self.is_frozen = given.get("replay") is not None
        """Whether tools are answered from a recording."""
        replay: Json = given.get("replay") or {}
        self.calls = Calls() if given.get("record") else None
        """The calls to report, or None if none are reported."""
        self._lock = threading.Lock()
        self._on_miss = on_miss
        self._ended: Miss | None = None
        """The miss that ended the case. The agent may still run for a moment, but gets no more answers."""
        self._counts = {"tools": 0, "models": 0, "live": 0, "misses": 0}
        self._passed: dict[str, int] = {}
        """Tool → the number of its calls that reached the gate and were not shown yet."""
        self._shown: list[str] = []
        """The tools of calls that were shown in the transcript since the last comparison."""
        self._models: list[Recorded] = []
        self._positions: dict[str, int] = {}
        """Agent → number of its model requests so far."""
        self.declarations: dict[str, list[Json]] = replay.get("tools") or {}
        """The recorded declarations of tools, by agent."""
        self._declared: dict[tuple[str, str], Any] = {}
        """(agent, tool) → the present declaration of a plain-Python agent's tool."""
        self.freezes_models = replay.get("mode") == "all"
        """Whether models are answered from a recording, too."""
        self.calls_on_miss = replay.get("on_miss") == "live"
        """Whether a call without a recording is made instead of ending the case."""
        self.order = Order(replay.get("ended"))
        """The order of the calls that are answered."""
        ignore: dict[str, list[str]] = replay.get("ignore") or {}
        self._tools = Recordings(ignore)
        self._ignored_parts = frozenset(ignore.get(MODEL, ()))
        """Names of the parts of requests to models that may differ."""
        self._injection = Injection(given["inject"], given.get("seed") or 0) if given.get("inject") else None
        self.fork = None if given.get("fork") is None else Fork(given["fork"])
        """The beginning that the conversation repeats, or None."""
        if self.fork is not None:
            self.declarations = {**self.fork.tools, **self.declarations}
        self._injected = False
        """Whether a fault was injected, which may lead the agent away from its recording."""

    @property
    def has_recording(self) -> bool:
        """Whether some calls are answered from a recording."""
        return self.is_frozen or self.fork is not None

    @property
    def lists_recorded_tools(self) -> bool:
        """Whether the tools of toolsets come from the recording. No toolset connects then."""
        return self.is_frozen or (self.fork is not None and not self.fork.passed)

    def load(self, call: Json, *, before_fork: bool = False) -> None:
        """Add a recorded call. It comes before the point of a fork (`before_fork`), or can be replayed at any time."""
        recorded = Recorded(call)
        if before_fork and self.fork is not None:
            self.fork.load(recorded)
        elif recorded.tool:
            self._tools.add(recorded)
            self.order.load(recorded)
        else:
            self._models.append(recorded)

    def counts(self) -> Json | None:
        """Return the numbers of calls so far, or None without replay.

        They are `tools` and `models` (replayed calls), `live` (calls made without a recording) and `misses`.
        `reordered` names the tools of `Order.reordered`, if there are any.
        """
        if not self.is_frozen:
            return None
        reordered = self.order.reordered
        with self._lock:
            return {**self._counts, **({"reordered": reordered} if reordered else {})}

    def begin_in_order(self, branch: str, tool: str, decision: Decision) -> Place:
        """Register a tool call that begins now, and return its place in `order`. `order.end` must follow."""
        found = decision.then if isinstance(decision, Inject) else decision
        return self.order.begin(branch, tool, found.recorded if isinstance(found, Replay) else None)

    def take_messages(self) -> list[Json]:
        """Return the calls since the last time as `Calls` messages, without their turn."""
        # A turn that ended with an error may have shown a call that it did not get to make.
        self._take_escaped(self._shown[:-1])
        counts = self.counts()
        messages = self.calls.take() if self.calls is not None else []
        if not messages and counts is not None:
            messages = [{"calls": "[]", "pieces": {}}]
        return [{**message, "frozen": counts} for message in messages]

    def tool(self, call: ToolCall) -> Decision:
        """Decide about a call of a tool. An injected fault consumes no recording. A call that is only delayed does."""
        self.count_passed(call.tool)
        if self._ended is not None:
            return self._ended
        fault = self._injection.decide(call.agent, call.tool, call.args) if self._injection is not None else None
        if fault is None:
            return self._decide(call)
        self._injected = self._injected or bool(fault.kind)
        if fault.kind in ("", "malformed"):
            return Inject(fault, self._decide(call, use=not fault.kind))
        return Inject(fault)

    def _decide(self, call: ToolCall, *, use: bool = True) -> Live | Replay | Miss:
        """Decide about a call without a fault. Without `use`, its recording can be replayed again."""
        before = None if self.fork is None else self.fork.take(Asked("tool", *call[:4], None))
        if before is not None:
            return Replay(before)
        if not self.is_frozen:
            return Live()
        with self._lock:
            found = self._tools.take(call, use=use)
            misfit = "" if found is None else self._misfit(call)
            if found is not None and found.outcome != "lost" and not misfit:
                self._counts["tools"] += 1
                return Replay(found)
            who = f"{call.agent or 'code of the agent'} called {shown_call(call.tool, call.args)}"
            if misfit:
                return self._no_recording(f"{who}; its recording does not fit the tool any more: {misfit}")
            why = f"its outcome was not recorded: {found.value}" if found else self._tools.why_missing(call)
            decision = self._no_recording(f"{who}, which has no recording; {why}")
            if isinstance(decision, Miss):
                return decision._replace(call=call, nearest=self._tools.nearest(call))
            return decision

    def _misfit(self, call: ToolCall) -> str:
        """Return why a recorded call does not fit the tool's present declaration any more, or ""."""
        recorded = (tool for tool in self.declarations.get(call.agent, ()) if tool.get("name") == call.tool)
        then = next((tool.get("declaration") for tool in recorded), None)
        return no_longer_fits(then, call.declaration, call.args)

    def declare(self, agent: str, tool: str, function: Any) -> Any:
        """Return the declaration of a plain-Python agent's tool, or None if it is unknown. Report it once."""
        if tool.startswith("$"):
            return None  # Code that a model wrote.
        if (agent, tool) not in self._declared:
            declaration = signature_declaration(tool, function)
            self._declared[agent, tool] = declaration
            if self.calls is not None:
                entry: Json = {"name": tool, "toolset": 0, "long_running": False}
                try:
                    entry["declaration"] = None if declaration is None else self.calls.piece(declaration)
                except TooLargeError as error:
                    entry.update({"declaration": None, "lost": str(error)})
                entry["source"] = source_digest(function)
                self.calls.add({"kind": "tools", "agent": agent, "plain": True, "tools": [entry]})
        return self._declared[agent, tool]

    def count_passed(self, tool: str) -> None:
        """Count a tool call that reached this gate, directly or from inside another tool."""
        with self._lock:
            self._passed[tool] = self._passed.get(tool, 0) + 1

    def note_shown(self, tools: Iterable[str]) -> None:
        """Record the tools of calls that the transcript shows. `end_turn` checks that these calls reached this gate."""
        self._shown += tools

    def end_turn(self) -> faults.Fault | None:
        """End a turn that had no error, and report the calls that its transcript shows but that did not reach the gate.

        If there are such calls, return a fault, because the recording could not answer them. Return None if there are
        none, if nothing is frozen, or with `--on-miss live`.
        """
        self.order.end_turn()
        escaped = self._take_escaped(self._shown)
        if not escaped or not self.is_frozen or self.calls_on_miss:
            return None
        message = f"the agent called {', '.join(escaped)} itself, so the recording was not used"
        return faults.fault("frozen_miss", message, _ESCAPED)

    def _take_escaped(self, shown: list[str]) -> list[str]:
        """Report and count the shown calls that did not reach the gate. Return the names of their tools."""
        self._shown = []
        escaped = []
        with self._lock:
            for tool in shown:
                if self._passed.get(tool):
                    self._passed[tool] -= 1
                else:
                    escaped.append(tool)
            self._counts["live" if self.calls_on_miss else "misses"] += len(escaped)
        names = list(dict.fromkeys(escaped))
        if names and self.calls is not None:
            self.calls.add({"kind": "escaped", "tools": names})
        return names

    def model(self, call: ModelCall) -> Live | Replay | Miss:
        """Decide about a call of a model."""
        if self._ended is not None:
            return self._ended
        before = None if self.fork is None else self.fork.take(Asked("model", call.agent, call.branch, "", {}, None))
        if before is not None:
            return Replay(before)
        if not self.freezes_models:
            return Live()
        with self._lock:
            position = self._positions.get(call.agent, 0)
            self._positions[call.agent] = position + 1
            recorded = [known for known in self._models if known.agent == call.agent]
            # A request without a digest was too large to be compared: then its position decides.
            # A recording without one was imported, and answers the agent's next request.
            unused = [known for known in recorded if not known.used]
            found = next((known for known in unused if call.asked in (known.asked, "") or not known.asked), None)
            if found is None and self._ignored_parts:
                equal = (known for known in unused if not self._difference(known.request, call.parts)[0])
                found = next(equal, None)
            if found is not None and found.outcome != "lost":
                found.used = True
                self._counts["models"] += 1
                return Replay(found)
            then = recorded[position].request if position < len(recorded) else None
            text, differs, parts = self._difference(then, call.parts)
            if found is not None:
                why, differs = f"its outcome was not recorded: {found.value}", None
            elif not recorded:
                why = "none of its requests is recorded"
            elif position >= len(recorded):
                why = f"only {len(recorded)} of its requests {'is' if len(recorded) == 1 else 'are'} recorded"
            else:
                why = f"its request {position + 1} {text or 'has another form'}"
            message = f"{call.agent or 'a callback'} made a model request that is not recorded: {why}"
            hint = _OTHER_PART.format(part=parts[0]) if parts else ""
            decision = self._no_recording(message, hint if self._models else _MODELS)
            if not isinstance(decision, Miss) or differs is None:
                return decision
            return decision._replace(differs={"agent": call.agent, **differs}, parts=parts)

    def _difference(self, then: Json | None, now: Json) -> tuple[str, Json | None, tuple[str, ...]]:
        """Return how a request differs from a recorded one ("": not), the first part, and all that can be ignored.

        The part is None if only the model differs, or if one of the requests is not known.
        """
        if then is None or not now:
            return "differs from the recorded one", None, ()
        if then["model"] != now["model"]:
            return f"has the model {now['model']}, recorded with {then['model']}", None, ()
        named = (item for item in _PARTS.items() if item[0] not in self._ignored_parts)
        parts = tuple(name for name, (key, _) in named if then.get(key) != now.get(key))
        if parts:
            key, text = _PARTS[parts[0]]
            return f"has {text}", {"part": key, "then": then.get(key) or ""}, parts
        old, new = then["contents"], now["contents"]
        if old == new:
            return "", None, ()
        shared = min(len(old), len(new))
        at = next((index for index in range(shared) if old[index] != new[index]), shared)
        text = f"has another message {at + 1} of {len(new)}"
        if at == shared:
            text = f"has {len(new)} {'message' if len(new) == 1 else 'messages'}, recorded with {len(old)}"
        return text, {"part": "contents", "at": at, "then": old[at] if at < len(old) else ""}, ()

    def begin(self, kind: str, agent: str, branch: str, decision: Decision, **data: Any) -> Call | None:
        """Return a call that begins now, or None if calls are not recorded. `data` are its other fields."""
        if self.calls is None:
            return None
        source = {}
        if isinstance(decision, Inject) and decision.fault.kind:
            source = {"from": "injected"}
        elif isinstance(decision, Inject) and decision.then is not None:
            return self.begin(kind, agent, branch, decision.then, **data)
        elif isinstance(decision, Live) and decision.missed:
            source = {"from": "live"}
        elif isinstance(decision, Replay):
            source = {"from": "frozen"}
        return self.calls.begin(kind=kind, agent=agent, branch=branch, **data, **source)

    def no_toolset(self, agent: str, toolset: str) -> Live | Miss:
        """Decide about a toolset that is not in the recording. `agent` is "" if no agent has the toolset."""
        if self._ended is not None:
            return self._ended
        if not self.is_frozen:
            return Live()
        owner, hint = "", "put the toolset into the agent's tools and freeze the case again, or use --on-miss live"
        if agent:
            owner, hint = f" of the agent {agent}", ""
        with self._lock:
            return self._no_recording(f"the tools of {toolset}{owner} are not in the recording", hint)

    def unreadable(self, recorded: Recorded, error: Exception) -> Miss:
        """Count and return the miss of a case whose recording cannot be read."""
        with self._lock:
            self._counts["misses"] += 1
        message = (
            f"the recorded {recorded.outcome} of {recorded.tool or 'a model'} in turn {recorded.turn + 1}: {error}"
        )
        return Miss(broken_recording(BrokenRecordingError(message)))

    def not_cancelled(self, recorded: Recorded) -> Miss:
        """Count and return the miss of a case whose call was cancelled in the recording, but not here."""
        with self._lock:
            self._counts["misses"] += 1
        call = shown_call(recorded.tool, recorded.args)
        return Miss(faults.fault("frozen_miss", f"{call} was cancelled when it was recorded, but not now", _HINT))

    def next_order(self, count: int = 1) -> int:
        """Return the number of the next call, and reserve `count` numbers from there. Return 0 if none are recorded."""
        return self.calls.next_order(count) if self.calls is not None else 0

    def _no_recording(self, message: str, hint: str = "") -> Live | Miss:
        if self.calls_on_miss:
            self._counts["live"] += 1
            return Live(missed=True)
        self._counts["misses"] += 1
        if self._injected:
            way_out = "the agent acted differently after the injected fault; --on-miss live makes such calls"
            return Miss(faults.fault("off_recording", message, way_out))
        return Miss(faults.fault("frozen_miss", message, hint or _HINT))

    def end(self, miss: Miss) -> None:
        """End the case with the first miss. The caller must ensure that its call never returns."""
        with self._lock:
            first = self._ended is None
            self._ended = self._ended or miss
        if first and self._on_miss is not None:
            self._report_miss(miss)
            self._on_miss(miss.fault)

    def forget_miss(self) -> None:
        """Answer calls again, in the next turn of a chat."""
        self._ended = None

    def _report_miss(self, miss: Miss) -> None:
        """Report the call that ends the case, for a comparison with the nearest recording."""
        if self.calls is not None and miss.differs is not None and miss.parts:
            self.calls.add({"kind": "miss", "agent": miss.differs["agent"], "parts": list(miss.parts)})
        if self.calls is None or miss.call is None:
            return
        call, nearest = miss.call, miss.nearest
        reported: Json = {"kind": "miss", "agent": call.agent, "branch": call.branch, "tool": call.tool}
        reported["args"] = self.calls.argument_piece(call.args)
        reported["ignore"] = self._tools.ignored(call.tool)
        if nearest is not None:
            args = self.calls.argument_piece(nearest.args)
            reported["nearest"] = {"turn": nearest.turn, "branch": nearest.branch, "args": args, "used": nearest.used}
        self.calls.add(reported)


def broken_recording(error: BrokenRecordingError) -> faults.Fault:
    """Return the fault of a recording with a wrong form."""
    return faults.fault("frozen_file", f"the recording cannot be used: {error}", "freeze the case again")

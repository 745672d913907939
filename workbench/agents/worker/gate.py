"""The gate through which each call of a tool or model passes in a case's process.

It injects faults, answers calls from a recording, ends the case at a call without one, and keeps what live calls do. It
knows no framework: `adk_gate` and `python_runner` bring the calls to it.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from . import faults
from .injection import Fault, Injection
from .matching import BrokenRecordingError, Recorded, Recordings, ToolCall, shown_call

Json = Dict[str, Any]
OnMiss = Callable[[faults.Fault], None]
"""Ends the case with a fault, from any thread. It may end the process."""
_WAYS_OUT = "freeze the case again after a live run, or use --on-miss live"
_AFTER_FAULT = "the agent took another way after the injected fault; --on-miss live makes such calls"


class Live(NamedTuple):
    """The call is made. `missed` says that a recording was expected."""

    missed: bool = False


class Replay(NamedTuple):
    """The call is answered from a recording, or its recorded error is raised."""

    recorded: Recorded


class Miss(NamedTuple):
    """The case ends here, and the call must never return."""

    fault: faults.Fault


class Inject(NamedTuple):
    """The call gets a fault (`injection.Fault` says what to do).

    `then` is what happens after a delay that is the only fault, or how to get the answer that is to be damaged. It is
    None for all other faults: nothing is called or replayed.
    """

    fault: Fault
    then: Union[Live, Replay, Miss, None] = None


Decision = Union[Live, Replay, Miss, Inject]


class Gate:
    """The gate of one conversation. Its methods may be called from any thread.

    `settings` is the case's `calls` (`docs/worker-protocol.md`), or None: then nothing is recorded or replayed.

    Raises:
        BrokenRecordingError: the settings have a wrong form.
    """

    def __init__(self, settings: Optional[Json] = None, on_miss: Optional[OnMiss] = None) -> None:
        given = settings or {}
        self.records = bool(given.get("record"))
        """Whether calls are kept and reported."""
        replay = given.get("replay")
        self._lock = threading.Lock()
        self._on_miss = on_miss
        self._missed = False
        self._counts = {"tools": 0, "models": 0, "live": 0, "misses": 0}
        self._models: List[Recorded] = []
        self.declarations: Dict[str, List[Json]] = {}
        """The recorded declarations of tools, by agent."""
        self.is_frozen = replay is not None
        """Whether tools are answered from a recording."""
        self.freezes_models = False
        """Whether models are answered from a recording, too."""
        self.calls_on_miss = False
        """Whether a call without a recording is made instead of ending the case."""
        ignore: Dict[str, List[str]] = {}
        if replay is not None:
            ignore = _names(replay, "ignore", str)
            self.declarations = _names(replay, "tools", dict)
            self.freezes_models = replay.get("mode") == "all"
            self.calls_on_miss = replay.get("on_miss") == "live"
        self._tools = Recordings(ignore)
        self._injection = _injection(given)
        self._injected = False
        """Whether a fault was injected, which may lead the agent away from its recording."""

    def load(self, call: Any) -> None:
        """Add a recorded call.

        Raises:
            BrokenRecordingError: it has a wrong form.
        """
        recorded = Recorded(call)
        if recorded.tool:
            self._tools.add(recorded)
        else:
            self._models.append(recorded)

    def counts(self) -> Optional[Dict[str, int]]:
        """Return the calls so far: replayed `tools` and `models`, `live` ones, and `misses`. None without replay."""
        with self._lock:
            return dict(self._counts) if self.is_frozen else None

    def tool(self, call: ToolCall) -> Decision:
        """Decide about a call of a tool.

        An injected fault consumes no recording. A call that is only delayed does.
        """
        fault = self._injection.decide(call.agent, call.tool, call.args) if self._injection is not None else None
        if fault is None:
            return self._decide(call)
        self._injected = self._injected or bool(fault.kind)
        if fault.kind in ("", "malformed"):
            return Inject(fault, self._decide(call, use=not fault.kind))
        return Inject(fault)

    def _decide(self, call: ToolCall, *, use: bool = True) -> Union[Live, Replay, Miss]:
        """Decide about a call without a fault. Without `use`, its recording can be replayed again."""
        if not self.is_frozen:
            return Live()
        with self._lock:
            found = self._tools.take(call, use=use)
            if found is not None and found.outcome != "lost":
                self._counts["tools"] += 1
                return Replay(found)
            why = f"its outcome was not recorded: {found.value}" if found else self._tools.why_missing(call)
            message = f"{call.agent} called {shown_call(call.tool, call.args)}, which has no recording; {why}"
            return self._no_recording(message)

    def no_toolset(self, agent: str, toolset: str) -> Decision:
        """Decide about a toolset of an agent whose tools are not in the recording."""
        with self._lock:
            return self._no_recording(f"the tools of {toolset} of the agent {agent} are not in the recording")

    def _no_recording(self, message: str) -> Union[Live, Miss]:
        if self.calls_on_miss:
            self._counts["live"] += 1
            return Live(missed=True)
        self._counts["misses"] += 1
        if self._injected:
            return Miss(faults.fault("off_recording", message, _AFTER_FAULT))
        return Miss(faults.fault("frozen_miss", message, _WAYS_OUT))

    def end(self, miss: Miss) -> None:
        """End the case with the first miss. The caller must not let its call return."""
        with self._lock:
            first, self._missed = not self._missed, True
        if first and self._on_miss is not None:
            self._on_miss(miss.fault)


def _injection(settings: Json) -> Optional[Injection]:
    """Return the rules for injected faults, or None without any.

    Raises:
        BrokenRecordingError: they have a wrong form.
    """
    if settings.get("inject") is None:
        return None
    try:
        return Injection(settings["inject"], settings.get("seed") or 0)
    except ValueError as error:
        raise BrokenRecordingError(str(error)) from None


def broken_recording(error: BrokenRecordingError) -> faults.Fault:
    """Return the fault of a recording with a wrong form."""
    return faults.fault("frozen_file", f"the recording cannot be used: {error}", "freeze the case again")


def _names(replay: Any, name: str, kind: type) -> Dict[str, List[Any]]:
    """Return a setting of the form `{text: [kind]}`."""
    given = replay.get(name) if isinstance(replay, dict) else None
    if given is None and isinstance(replay, dict):
        return {}
    if not isinstance(given, dict) or not all(
        isinstance(items, list) and all(isinstance(item, kind) for item in items) for items in given.values()
    ):
        raise BrokenRecordingError(f"`{name}` is not a list for each name")
    return given

"""The transcript of a running case. Stored transcripts are in `workbench.engine.plan.transcripts`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from workbench.engine.processes.agent_process import Reads
from workbench.events import CaseError, CaseStatus, Frozen, InnerCalls, Thawed, Usage


class CallCounts(NamedTuple):
    """The calls of a replayed case so far: answered from the recording, made live, and missing in it.

    `reordered` names tools, as in `Frozen`.
    """

    tools: int = 0
    models: int = 0
    live: int = 0
    misses: int = 0
    reordered: tuple[str, ...] = ()


@dataclass
class Transcript:
    """The invocations of an agent in a case, one for each turn.

    The transcript is complete unless `error` says why not. Then `status` is the case's status. `shared_process_died`
    means that a process of several cases died, so that the guilty case is not known. `stalled` means that the parent
    process hung and was replaced.
    """

    turns: list[dict[str, Any]] = field(default_factory=list)
    error: CaseError | None = None
    status: CaseStatus = "error"
    usage: Usage = field(default_factory=Usage)
    shared_process_died: bool = False
    stalled: bool = False
    machine: str = ""
    """The other machine on which the case ran, or "" for this machine."""
    reads: Reads | None = None
    """Files that the case and the import of its agent read; None if the case ended without reporting them."""
    unseen: tuple[str, ...] = ()
    """What the case used that no comparison of inputs can see (`CaseFinished.unseen`)."""
    calls: CallCounts = field(default_factory=CallCounts)
    declared: dict[tuple[str, str], tuple[str | None, str]] = field(default_factory=dict)
    """Agent and tool → digests of its declaration and source, for each tool that a replayed case had."""
    differs: str = ""
    """How a request differs from the recorded one, as in the worker's message `Failed`, or ""."""
    frozen: Frozen | None = None
    """How the case was replayed, or None if all of its calls were live."""
    thawed: Thawed | None = None
    """How a live case differs from its recording, or None if they were not compared."""
    state: dict[str, Any] | None = None
    """The session state after the last turn, or None if nobody needs it or it is not known."""
    inner_calls: list[InnerCalls] = field(default_factory=list)
    """The calls inside agents that are used as tools, for each turn."""
    recording: tuple[Path, ...] = ()
    """The frozen file of a case that is replayed if it exists, and the files that it names."""

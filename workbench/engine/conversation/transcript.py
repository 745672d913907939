"""What came of a case's conversation while it runs; `workbench.engine.plan.transcripts` has those that are stored."""

from dataclasses import dataclass, field
from typing import Any

from workbench.engine.processes.agent_process import Reads
from workbench.events import CaseError, CaseStatus, Usage


@dataclass
class Transcript:
    """What an agent did in a case: one invocation a turn, complete unless `error` says why not; then `status` is that
    of the case. `undecided` means that a process shared with other cases ended under it, so that nobody knows which of
    them is to blame. `stalled` means that the process that had forked it stood still and was replaced."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    error: CaseError | None = None
    status: CaseStatus = "error"
    usage: Usage = field(default_factory=Usage)
    undecided: bool = False
    stalled: bool = False
    reads: Reads | None = None
    """What the case and the import of its agent have read; None if the case did not come to say so."""

"""What is in a folder: agents, evalsets, which belongs to which, and which criteria hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.discovery import AgentFolder, Ignored
from workbench.model.evalset import EvalsetDocument


@dataclass(frozen=True)
class EvalsetEntry:
    """An evalset, the agent it belongs to (None: none, and `agent_reason` says why) and its criteria. `relative` is
    the path from the root with "/"."""

    file: Path
    relative: str
    document: EvalsetDocument
    agent: AgentFolder | None
    agent_reason: str
    criteria: CriteriaChoice


@dataclass(frozen=True)
class Workspace:
    """Everything that was found. `target` is the path that was asked for (the nearest common folder of several)."""

    root: Path
    target: Path
    agents: tuple[AgentFolder, ...]
    evalsets: tuple[EvalsetEntry, ...]
    ignored: tuple[Ignored, ...]

"""Snapshots of a project at one moment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.environment import AgentEnvironment, agent_environment
from workbench.agents.workspace import Workspace


@dataclass(frozen=True)
class Snapshot:
    """A workspace with the environments of its agents, by folder."""

    workspace: Workspace
    environments: Mapping[Path, AgentEnvironment]


def take_snapshot(workspace: Workspace) -> Snapshot:
    """Return a snapshot with the current environments. Call it in a thread."""
    agents = {entry.agent.folder: entry.agent for entry in workspace.evalsets if entry.agent is not None}
    return Snapshot(workspace, {folder: agent_environment(folder, os.environ) for folder in agents})

"""Find agents and evalsets in a folder without running anything."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """A folder that defines an agent.

    `name` is the folder's name; where two agents share it, their paths relative to the root. `folder` is absolute, as
    found (links are not resolved). `definition` is the file that defines the agent, `attribute` the name in it that the
    worker takes: `app`, `root_agent` or `get_agent_async`, "" for `root_agent.yaml`.
    """

    name: str
    folder: Path
    kind: Literal["python", "yaml"]
    definition: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that was found and not taken, with the reason in words."""

    path: Path
    reason: str

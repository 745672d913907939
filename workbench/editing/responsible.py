"""The file and line that are responsible for a part of a case. Files are read, and nothing is imported or run."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workbench.agents.declared_tools import instruction_place, tool_place
from workbench.files.faults import Breach

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry
    from workbench.freshness.changed_files import ChangedFile

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Place(NamedTuple):
    """A line of a file, counted from 1. 0 is a line that was not looked up."""

    file: Path
    line: int = 1


def case_place(entry: "EvalsetEntry", case: int, *, exact: bool = True) -> Place:
    """Return the first line of a case in its evalset, or the start of the evalset with -1.

    In a large file, this may take a tenth of a second. Without `exact`, the line is not looked up.
    """
    if case < 0 or not entry.document.editable:
        return Place(entry.file)
    if not exact:
        return Place(entry.file, 0)
    return Place(entry.file, entry.document.fault(case, Breach((), "")).line)


def criterion_place(entry: "EvalsetEntry", criterion: str) -> Place | None:
    """Return the line of a criterion in the config of an evalset, or None if no file governs it."""
    config = entry.criteria.config
    if config.edited_file is None:
        return None
    return Place(config.edited_file, config.place(f"criteria.{criterion}")[0])


def agent_place(agent: "AgentFolder", name: str = "") -> Place:
    """Return the instruction of an agent, or its definition if the instruction is not a text in its files.

    With `name`, it is the instruction of the sub-agent that is called so, if its files have one.
    """
    found = instruction_place(agent, name)
    return Place(*found) if found is not None else Place(agent.definition)


def call_place(agent: "AgentFolder", tool: str) -> Place | None:
    """Return the function of a tool, or None if it is not in the files of the agent."""
    found = tool_place(agent, tool)
    return Place(*found) if found is not None else None


def changed_place(root: Path, files: "tuple[ChangedFile, ...]") -> Place | None:
    """Return the first changed line of the first file of an agent that differs and still exists, or None."""
    for file in files:
        path = root / file.path
        if path.is_file():
            return Place(path, _first_changed(file.lines))
    return None


def _first_changed(diff: tuple[str, ...]) -> int:
    """Return the line, in the newer file, of the first line that a unified diff adds or removes."""
    line = 1
    for text in diff:
        if (hunk := _HUNK.match(text)) is not None:
            line = int(hunk[1])
        elif text.startswith(("+", "-")):
            return max(line, 1)
        else:
            line += 1
    return 1

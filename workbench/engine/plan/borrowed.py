"""Evalsets that run with another agent than the one whose folder holds them."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from workbench.agents.targets import find_agent
from workbench.agents.workspace import EvalsetEntry
from workbench.events import Noticed


def borrowed_notices(entries: Iterable[EvalsetEntry], root: Path) -> Iterator[Noticed]:
    """A warning for each such file: of two words of a command line the first may have been meant as what is to run, and
    is taken as the agent of the second. An agent inside another one, or around it, is another part of the same."""
    holder = cache(find_agent)
    for entry in entries:
        if entry.agent is None:
            continue
        ours = entry.agent.folder.resolve()
        steps = [step for step in entry.file.resolve().parents if step.is_relative_to(root.resolve())]
        if any(step == ours or (step in ours.parents and holder(step)) for step in steps):
            continue
        held = next((found for step in steps if (found := holder(step))), None)
        if held is not None:
            message = f"{entry.relative} lies in the folder of {held.name} and runs with {entry.agent.name}"
            yield Noticed("warning", message, "Of several words the first is the agent, if it is one: name files only")

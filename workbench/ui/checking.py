"""What `check` finds in the folder, by the rows of the tree that it concerns."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.model.faults import Fault

Severity: TypeAlias = Literal["error", "warning"]
Pair: TypeAlias = tuple[int, int]
WHOLE = -1
"""In place of a case: the evalset."""
MOST_CASES = 3_000
"""Up to so many cases a folder is checked by itself: checking takes turns with the keys."""
_CASE = re.compile(r"(?:eval_cases|evalCases)?\[(\d+)\]")


@dataclass(frozen=True)
class Findings:
    """`faults` of each (evalset, case), with `WHOLE` for what concerns the evalset, its criteria or its agent; `every`
    in the order in which `check` tells them, with the row each belongs to (None for none)."""

    faults: Mapping[Pair, tuple["Fault", ...]] = field(default_factory=dict)
    every: "tuple[tuple[Fault, Pair | None], ...]" = ()

    def of(self, evalset: int, case: int) -> "tuple[Fault, ...]":
        """What concerns a case, or with `WHOLE` its evalset."""
        return self.faults.get((evalset, case), ())

    @property
    def worst(self) -> dict[Pair, Severity]:
        """For each row that anything was found for, the worst of it."""
        severities = {pair: {fault.severity for fault in found} for pair, found in self.faults.items()}
        return {
            pair: "error" if "error" in found else "warning" for pair, found in severities.items() if found != {"note"}
        }


def check(workspace: "Workspace") -> Findings:
    """Everything that is found in a workspace. Reads each case: for a thread."""
    # Nobody needs it before the first frame.
    from workbench.authoring.check.project import check_project

    return sort_out(workspace, (problem.fault for problem in check_project(workspace)))


def sort_out(workspace: "Workspace", faults: "Iterable[Fault]") -> Findings:
    """The faults by row. One of a config belongs to every evalset for which that holds, one of an agent to its own."""
    found: dict[Pair, list[Fault]] = defaultdict(list)
    every: list[tuple[Fault, Pair | None]] = []
    for fault in faults:
        rows = [pair for number in range(len(workspace.evalsets)) if (pair := _row(workspace, number, fault))]
        for pair in rows:
            found[pair].append(fault)
        every.append((fault, rows[0] if rows else None))
    return Findings({pair: tuple(mine) for pair, mine in found.items()}, tuple(every))


def _row(workspace: "Workspace", number: int, fault: "Fault") -> Pair | None:
    entry = workspace.evalsets[number]
    if fault.file == entry.file:
        place = _CASE.match(fault.json_path)
        case = int(place.group(1)) if place else WHOLE
        return (number, case) if case < len(entry.document.cases) else (number, WHOLE)
    mine = [entry.criteria.config.path]
    if entry.agent is not None:
        mine += [entry.agent.definition, entry.agent.folder / ".env"]
    return (number, WHOLE) if fault.file in mine else None

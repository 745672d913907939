"""Problems that `check` finds in the folder, grouped by row of the tree."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.files.faults import Fault

Severity: TypeAlias = Literal["error", "warning"]
Pair: TypeAlias = tuple[int, int]
WHOLE_EVALSET = -1
"""Case number that stands for the whole evalset."""
MOST_CASES = 3_000
"""Maximum number of cases for which a folder is checked automatically. A check competes with keys for the processor."""
_CASE = re.compile(r"(?:eval_cases|evalCases)?\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Findings:
    """Problems by row.

    `faults` has them by (evalset, case). `WHOLE_EVALSET` in place of a case stands for the evalset, its criteria or its
    agent. `every` has them in the order of `check`, each with its row, or None if it has no row.
    """

    faults: Mapping[Pair, tuple["Fault", ...]] = field(default_factory=dict)
    every: "tuple[tuple[Fault, Pair | None], ...]" = ()

    def faults_of(self, evalset: int, case: int) -> "tuple[Fault, ...]":
        """Return the problems of a case, or of its evalset with `WHOLE_EVALSET`."""
        return self.faults.get((evalset, case), ())

    @property
    def worst(self) -> dict[Pair, Severity]:
        """The worst severity of each row with problems. Notes do not count."""
        severities = {pair: {fault.severity for fault in found} for pair, found in self.faults.items()}
        return {
            pair: "error" if "error" in found else "warning" for pair, found in severities.items() if found != {"note"}
        }


def check(workspace: "Workspace") -> Findings:
    """Check a workspace. This reads each case, so call it in a thread."""
    # Not needed before the first frame.
    from workbench.editing.check.project import check_project

    return group_by_row(workspace, (problem.fault for problem in check_project(workspace)))


def group_by_row(workspace: "Workspace", faults: "Iterable[Fault]") -> Findings:
    """Group faults by row.

    A fault of a config belongs to every evalset that it governs, a fault of an agent to the agent's evalsets.
    """
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
        case = int(place.group(1)) if place else WHOLE_EVALSET
        return (number, case) if case < len(entry.document.cases) else (number, WHOLE_EVALSET)
    mine = [entry.criteria.config.path]
    if entry.agent is not None:
        mine += [entry.agent.definition, entry.agent.folder / ".env"]
    return (number, WHOLE_EVALSET) if fault.file in mine else None

"""Problems that `check` finds in the folder, grouped by row of the tree."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench.ui.tree.outline import WHOLE_EVALSET, Pair

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.files.faults import Fault

Severity: TypeAlias = Literal["error", "warning"]
MOST_CASES = 3_000
"""A folder with more cases is not checked automatically, because the check would slow down the screen."""
_CASE = re.compile(r"(?:eval_cases|evalCases)?\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Findings:
    """Problems by row.

    `faults` maps (evalset, case) to the row's problems. The case is `WHOLE_EVALSET` for problems of the evalset, its
    criteria or its agent. `every` lists all problems in the order of `check`, each with its first row, or None without
    a row.
    """

    faults: Mapping[Pair, tuple["Fault", ...]] = field(default_factory=dict)
    every: "tuple[tuple[Fault, Pair | None], ...]" = ()

    def faults_of(self, evalset: int, case: int) -> "tuple[Fault, ...]":
        """Return the problems of a case, or of the evalset if `case` is `WHOLE_EVALSET`."""
        return self.faults.get((evalset, case), ())

    @property
    def worst(self) -> dict[Pair, Severity]:
        """The worst severity of each row that has errors or warnings. Notes do not count."""
        severities = {pair: {fault.severity for fault in found} for pair, found in self.faults.items()}
        return {
            pair: "error" if "error" in found else "warning" for pair, found in severities.items() if found != {"note"}
        }


def check(workspace: "Workspace") -> Findings:
    """Run `check` on a workspace. Reads every case, so call it in a thread."""
    # Not needed before the first frame.
    from workbench.editing.check.project import check_project

    return group_by_row(workspace, (problem.fault for problem in check_project(workspace)))


def group_by_row(workspace: "Workspace", faults: "Iterable[Fault]") -> Findings:
    """Group faults by row. A fault of a config or an agent is listed for every evalset that uses it."""
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

"""The last verdict of each case, and why it is stale. Nothing runs."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from workbench.agents.workspace import Workspace
from workbench.events.events import CaseName, CaseRef, CaseStatus, Frozen
from workbench.freshness.staleness import stale_cases
from workbench.results.faces import FACES
from workbench.store.execution import Execution
from workbench.store.history.latest import latest_runs
from workbench.store.inputs import Change
from workbench.store.reasons import JudgedBy, judged_by

_KINDS: tuple[JudgedBy, ...] = ("rules", "function", "model")
"""The kinds of judges. The first one among a case's judges is named."""
_WORST_FIRST: Sequence[CaseStatus] = sorted(get_args(CaseStatus), key=lambda status: FACES[status].rank)


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """The last verdict of a case, or the fault of an unreadable file.

    For a file, `eval_id` is empty. `status` is the worst of the repeats. Without a verdict, it is None and `changed` is
    empty. `fault` says why a file cannot be read.
    """

    agent: str
    evalset_file: str
    eval_set_id: str
    eval_id: str
    status: CaseStatus | None = None
    run_id: str = ""
    judged_by: JudgedBy | None = None
    frozen: tuple[Frozen | None, ...] = ()
    """The replay of each repeat, or None for a live one."""
    changed: tuple[Change, ...] = ()
    fault: str = ""
    machine: str = ""
    """The other machine on which the first repeat with that status ran, or "" for this one."""
    unseen: tuple[str, ...] = ()
    """Inputs of the repeats that no comparison can see, such as child programs."""

    @property
    def ref(self) -> CaseRef:
        """The case as its first execution."""
        return CaseRef(self.agent, self.evalset_file, self.eval_set_id, self.eval_id)


def last_verdicts(workspace: Workspace, state: Path) -> Iterator[LastVerdict]:
    """Yield every case of the workspace in the order of its files, with its verdict in the state folder `state`.

    A file without readable cases has one entry with an empty `eval_id`.
    """
    ids = workspace.case_ids
    latest = list(latest_runs(state, ids))
    executions: dict[CaseName, list[Execution]] = {}
    for run in latest:
        for one in run.executions:
            executions.setdefault(one.ref.name, []).append(one)
    stale = stale_cases(latest, workspace)
    for entry in workspace.evalsets:
        unreadable = entry.document.broken and not entry.document.cases
        fault = entry.document.faults[0].sentence(entry.relative) if unreadable else ""
        for eval_id in entry.case_ids or [""]:
            case = LastVerdict(entry.agent_name, entry.relative, entry.eval_set_id, eval_id, fault=fault)
            found = executions.get((entry.relative, eval_id))
            yield case if found is None else _with_verdict(case, found, stale.get((entry.relative, eval_id), ()))


def fresh_cases(names: Collection[CaseName], workspace: Workspace, state: Path) -> set[CaseName]:
    """Return the cases in `names` whose stored verdict is not stale. Reads files."""
    wanted: dict[str, list[str]] = {}
    for file, eval_id in names:
        wanted.setdefault(file, []).append(eval_id)
    latest = list(latest_runs(state, wanted))
    decided = {one.ref.name for run in latest for one in run.executions}
    return decided.intersection(names) - stale_cases(latest, workspace).keys()


def failed_cases(workspace: Workspace, state: Path) -> set[CaseName]:
    """Return the cases whose last verdict in the state folder `state` is failed or error. Reads files."""
    latest = (one for run in latest_runs(state, workspace.case_ids) for one in run.executions)
    return {one.ref.name for one in latest if one.status in ("failed", "error")}


def _with_verdict(case: LastVerdict, executions: Sequence[Execution], changed: tuple[Change, ...]) -> LastVerdict:
    judges = {judged_by(result.details) for one in executions for result in one.scores.values()}
    worst = min(executions, key=lambda one: _WORST_FIRST.index(one.status))
    return replace(
        case,
        status=worst.status,
        run_id=worst.run_id,
        judged_by=next((kind for kind in _KINDS if kind in judges), None),
        frozen=tuple(one.frozen for one in executions),
        changed=changed,
        machine=worst.machine,
        unseen=tuple(dict.fromkeys(name for one in executions for name in one.unseen)),
    )

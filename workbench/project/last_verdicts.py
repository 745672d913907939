"""The last verdict of each case, and why it is stale. Nothing runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.dependencies.change import Change
from workbench.events import CaseName, CaseRef, CaseStatus, Frozen
from workbench.history.latest import LatestRun, latest_runs
from workbench.history.summary import Row, frozen_of
from workbench.judge.judge_details import JudgedBy
from workbench.project.staleness import stale_cases
from workbench.rendering.faces import FACES

_ALL_KINDS: tuple[JudgedBy, ...] = ("rules", "function", "model")
_WORST_FIRST: Sequence[CaseStatus] = sorted(get_args(CaseStatus), key=lambda status: FACES[status].rank)


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """The last verdict of a case.

    For an unreadable file, `eval_id` is empty. `status` is the worst of the repeats. Without a
    verdict, it is None and `changed` is empty. `fault` says why a file cannot be read.
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
    """The other machine on which the (first) repeat with that status ran, or "" for this one."""
    unseen: tuple[str, ...] = ()
    """Inputs of the repeats that no comparison can see, such as child programs."""

    @property
    def ref(self) -> CaseRef:
        """The case as a `CaseRef`."""
        return CaseRef(self.agent, self.evalset_file, self.eval_set_id, self.eval_id)


def last_verdicts(workspace: Workspace, state: Path) -> Iterator[LastVerdict]:
    """Yield every case of the workspace in the order of its files, with its verdict in the state folder `state`."""
    ids = workspace.case_ids
    latest = list(latest_runs(state, ids))
    rows: dict[tuple[str, str], tuple[LatestRun, list[Row]]] = {}
    for run in latest:
        for row in run.rows:
            _, file, _, eval_id, _ = row["ref"]
            rows.setdefault((file, eval_id), (run, []))[1].append(row)
    stale = stale_cases(latest, workspace)
    for entry in workspace.evalsets:
        fault = _fault(entry)
        for eval_id in entry.case_ids or [""]:
            name = entry.agent_name, entry.relative, entry.eval_set_id, eval_id
            found = rows.get((entry.relative, eval_id))
            if found is None:
                yield LastVerdict(*name, fault=fault)
            else:
                yield _with_verdict(name, *found, stale, fault)


def fresh_cases(names: Collection[CaseName], workspace: Workspace, state: Path) -> set[CaseName]:
    """Return those of some cases that have a stored verdict that is not stale. Reads files."""
    wanted: dict[str, list[str]] = {}
    for file, eval_id in names:
        wanted.setdefault(file, []).append(eval_id)
    latest = list(latest_runs(state, wanted))
    decided = {CaseRef(*row["ref"]).name for run in latest for row in run.rows}
    return decided.intersection(names) - stale_cases(latest, workspace).keys()


def failed_cases(workspace: Workspace, state: Path) -> set[CaseName]:
    """Return the cases whose last verdict in the state folder `state` is failed or error. Reads files."""
    return {
        CaseRef(*row["ref"]).name
        for run in latest_runs(state, workspace.case_ids)
        for row in run.rows
        if row["status"] in ("failed", "error")
    }


def _with_verdict(
    name: tuple[str, str, str, str],
    run: LatestRun,
    rows: Sequence[Row],
    stale: Mapping[tuple[str, str], tuple[Change, ...]],
    fault: str,
) -> LastVerdict:
    found = {row["status"] for row in rows}
    status: CaseStatus = next((status for status in _WORST_FIRST if status in found), "error")
    changed = stale.get((name[1], name[3]), ())
    frozen = tuple(map(frozen_of, rows))
    machine = next((row.get("machine", "") for row in rows if row["status"] == status), "")
    unseen = tuple(dict.fromkeys(one for row in rows for one in row.get("unseen", ())))
    return LastVerdict(*name, status, run.summary.run_id, _judged_by(rows), frozen, changed, fault, machine, unseen)


def _judged_by(rows: Collection[Row]) -> JudgedBy | None:
    """Return the kind of judge that was used.

    With several kinds, rules come before functions, and functions before models.
    """
    found = {by for row in rows for *_, by in row["metrics"].values()}
    return next((kind for kind in _ALL_KINDS if kind in found), None)


def _fault(entry: EvalsetEntry) -> str:
    """Return why nothing in the file can run, or "" if something can."""
    if entry.document.cases or not entry.document.broken:
        return ""
    return entry.document.faults[0].sentence(entry.relative)

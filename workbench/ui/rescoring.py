"""Which transcripts are scored again when the user asks for it on the screen."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.workspace import Workspace
from workbench.engine.plan.blocking import lost_in
from workbench.engine.plan.options import RunOptions, UsageFaultError
from workbench.engine.plan.plan import Plan
from workbench.engine.plan.rescore_plan import make_rescore_plan
from workbench.engine.plan.transcripts import StoredCase, StoredRun
from workbench.events import CaseRef, Noticed
from workbench.history.run_words import LAST, last_run
from workbench.history.stored_run import open_run
from workbench.model.evalset import EvalCase, case_or_none
from workbench.project.transcripts import stored_case
from workbench.store import CaseRecord

Name: TypeAlias = tuple[str, str]
"""A case whatever its repeat: the evalset's path relative to the root, and the id."""
_NAMED = 10


def plan_rescoring(
    workspace: Workspace,
    cases: Collection[tuple[int, int]],
    records: Sequence[CaseRecord],
    state: Path,
    options: RunOptions,
    *,
    references_of_now: bool = False,
) -> Plan:
    """The plan for the `cases` (evalset, case) of a workspace: the transcripts of this session (`records`), and for
    cases that have none in it, those of the last run that is kept in the state folder. Cases that have none there
    either are named in its notices. Each is laid beside the reference that it was made for, with `references_of_now`
    beside the one that stands in the evalset.

    Raises:
        UsageFaultError: none of them has a transcript, or a config is wrong.
    """
    wanted = dict.fromkeys(_name(workspace, *pair) for pair in cases)
    run = _of_session(records)
    missing = wanted.keys() - _names(run.cases)
    if missing:
        _complete(run, missing, state)
        missing -= _names(run.cases)
    lacking = [name[1] for name in wanted if name in missing]
    if not run.cases:
        message = f"there is no transcript of {_named(lacking)}"
        raise UsageFaultError(message, "r runs what is marked or under the cursor")
    now = {entry.relative: entry.criteria for entry in workspace.evalsets}

    def criteria_of(file: str) -> CriteriaChoice | None:
        return now.get(file) if (workspace.root / file).is_file() else None

    documents = {entry.relative: entry.document for entry in workspace.evalsets}
    indexes = {_name(workspace, evalset, case): case for evalset, case in cases}

    def case_of(file: str, eval_id: str) -> EvalCase | None:
        return case_or_none(documents[file], indexes.get((file, eval_id)))

    if references_of_now:
        for stored in run.cases.values():
            _take_reference(stored, case_of(stored.ref.evalset_file, stored.ref.eval_id))
    plan = make_rescore_plan(
        run, workspace.root, criteria_of, case_of, workspace.agents, options, lost_of=lost_in(workspace)
    )
    if not lacking:
        return plan
    notice = Noticed("warning", f"not scored, for want of a transcript: {_named(lacking)}", "r runs them")
    return replace(plan, notices=(notice, *plan.notices))


def _take_reference(stored: StoredCase, case: EvalCase | None) -> None:
    started = stored.started
    if started is not None and started.expected is not None and case is not None and case.turns is not None:
        stored.started = replace(started, expected=tuple(case.turns), rubrics=tuple(case.rubrics))


def _of_session(records: Sequence[CaseRecord]) -> StoredRun:
    cases = {record.ref: case for record in records if not (case := stored_case(record)).empty}
    used = [record.run_id for record in records if record.ref in cases]
    return StoredRun(", ".join(dict.fromkeys(used)), cases=cases)


def _complete(run: StoredRun, missing: Collection[Name], state: Path) -> None:
    """Adds what the last run that is kept has of the missing cases."""
    kept = open_run(LAST, state, state) if last_run(state) is not None else StoredRun()
    older = {ref: case for ref, case in kept.cases.items() if _of(ref) in missing and not case.empty}
    if older:
        run.cases |= older
        run.run_id = f"{run.run_id}, {kept.run_id}" if run.run_id else kept.run_id
        run.trouble = kept.trouble


def _names(refs: Iterable[CaseRef]) -> set[Name]:
    return {_of(ref) for ref in refs}


def _of(ref: CaseRef) -> Name:
    return ref.evalset_file, ref.eval_id


def _name(workspace: Workspace, evalset: int, case: int) -> Name:
    entry = workspace.evalsets[evalset]
    return entry.relative, entry.document.cases[case].eval_id


def _named(eval_ids: Sequence[str]) -> str:
    more = f" and {len(eval_ids) - _NAMED} more" if len(eval_ids) > _NAMED else ""
    return ", ".join(eval_ids[:_NAMED]) + more

"""Plans from past runs and from cases on the screen: transcripts scored again, runs resumed, conversations forked."""

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.agents.discovery import discover_for, name_agents
from workbench.agents.ownership import Owner, Ownership
from workbench.agents.workspace import CriteriaChoice, CriteriaChooser, EvalsetEntry, Workspace, app_name
from workbench.events.events import CaseError, CaseName, CaseRef, CaseStarted, Noticed, RunStarted, Usage
from workbench.files.criteria import parse_config
from workbench.files.evalset import EvalCase, EvalsetDocument, case_or_none, open_evalset
from workbench.files.folders import state_dir
from workbench.files.project_root import find_root
from workbench.files.run_options import PlaceChoice, RunOptions, UsageFaultError
from workbench.freshness.staleness import stale_transcripts
from workbench.run.forking import CannotForkError, Original, read_original
from workbench.run.plan.plan import Plan, lost_agent, lost_in
from workbench.run.plan.run_plan import fork_plan, make_rescore_plan, plan_cases
from workbench.run.resuming import newest_interrupted, options_of, resumable_results
from workbench.store.database.database import is_stored, state_of
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution, Turn
from workbench.store.history.reading import open_run
from workbench.store.history.run_names import LAST, last_run, states_of
from workbench.store.inputs import Input, describe_few
from workbench.store.owners import StoredOwners, read_owners
from workbench.store.transcripts import StoredCase, StoredRun, stored_case, turn_events
from workbench.text.counting import few

_NAMED = 10
_LISTED = 5
_SCORED_BY: frozenset[Input] = frozenset({"expected", "case"})
"""Inputs from the evalset that are used to score a transcript."""
_TAKEN_IN: frozenset[Input] = frozenset({"criteria", "judge", "function"})
"""Inputs whose current version is used when a transcript is scored again."""


def plan_of_run(
    word: str,
    options: RunOptions,
    *,
    folder: Path,
    config: Path | None = None,
    criteria: Mapping[str, Any] | None = None,
    cases: Sequence[str] = (),
    explicit_state: Path | None = None,
) -> Plan:
    """Return the plan that scores the transcripts of a stored run again, by the current criteria or those of `config`.

    `criteria` replaces a file: it has the form of the file's key `criteria`. `word` is an id, `last` or a JSON report.
    `folder` is in the project. `explicit_state` is the state folder if it is not `.workbench`. `cases` restricts the
    plan to these ids. Do not call it in an event loop's thread: it reads files.

    Raises:
        UsageFaultError: the run or case does not exist, the run injected faults or tried a fork, or a named config is
            wrong.
    """
    here = find_root(folder)
    run = open_run(word, state_dir(here, explicit_state), folder)
    why = f"faults were injected into run {run.run_id}" if run.injected else ""
    if any(case.planned.fork is not None for case in run.cases.values()):
        why = why or f"run {run.run_id} tried a fork"
    if why:
        raise UsageFaultError(f"{why}, so it is not scored again", "Name another run")
    root = root_of_run(run, here, explicit_state)
    given = None
    if criteria is not None:
        parsed = parse_config(Path("criteria"), json.dumps({"criteria": dict(criteria)}).encode("ascii"))
        given = CriteriaChoice(replace(parsed, path=None), "given for this scoring", given=True)
    now = _Current(root, read_owners(state_dir(root, explicit_state)), config, given)
    plan = make_rescore_plan(run, root, now.criteria, now.agents, options, case_ids=cases, lost_of=now.lost)
    entries = tuple(now.entries({ref.evalset_file for ref in run.cases}))
    workspace = Workspace(root, root, tuple(now.agents), entries, ())
    return _with_changes(plan, run, workspace, state_dir(root, explicit_state))


def plan_of_cases(
    workspace: Workspace,
    cases: Collection[tuple[int, int]],
    records: Sequence[Execution],
    state: Path,
    options: RunOptions,
    *,
    references_of_now: bool = False,
) -> Plan:
    """Return the plan that scores cases of a workspace again. `cases` are positions of evalsets and cases.

    Their transcripts come from this session (`records`), or else from the last run in the state folder. Notices of the
    plan name cases without a transcript. Each transcript is scored with its own reference, or with the current one if
    `references_of_now` is True.

    Raises:
        UsageFaultError: no case has a transcript, or a config is wrong.
    """
    wanted = dict.fromkeys(workspace.case_name(*pair) for pair in cases)
    of_session = {record.ref: case for record in records if not (case := stored_case(read_details(record))).empty}
    used = dict.fromkeys(record.run_id for record in records if record.ref in of_session)
    run = StoredRun(", ".join(used), cases=of_session)
    missing = wanted.keys() - {ref.name for ref in run.cases}
    if missing:
        _complete(run, missing, state)
        missing -= {ref.name for ref in run.cases}
    lacking = [name[1] for name in wanted if name in missing]
    if not run.cases:
        message = f"no transcript to score: {few(lacking, _NAMED)}"
        raise UsageFaultError(message, "Press r to run the marked or current case")
    now = {entry.relative: entry.criteria for entry in workspace.evalsets}

    def criteria_of(file: str) -> CriteriaChoice | None:
        return now.get(file) if (workspace.root / file).is_file() else None

    if references_of_now:
        documents = {entry.relative: entry.document for entry in workspace.evalsets}
        indexes = {workspace.case_name(evalset, case): case for evalset, case in cases}
        for stored in run.cases.values():
            _take_reference(stored, case_or_none(documents[stored.ref.evalset_file], indexes.get(stored.ref.name)))
    plan = make_rescore_plan(run, workspace.root, criteria_of, workspace.agents, options, lost_of=lost_in(workspace))
    plan = _with_changes(plan, run, workspace, state)
    if not lacking:
        return plan
    notice = Noticed("warning", f"not scored, no transcript: {few(lacking, _NAMED)}", "Press r to run them")
    return replace(plan, notices=(notice, *plan.notices))


def _with_changes(plan: Plan, run: StoredRun, workspace: Workspace, state: Path) -> Plan:
    """Return the plan, with notices about inputs that have changed since the transcripts were made."""
    scored = {entry.ref for entry in plan.entries if entry.blocked is None}
    cases = [case for ref, case in run.cases.items() if ref in scored and case.why_incomplete() is None]
    stale = stale_transcripts(cases, workspace, state)
    known = {name: [change for change in changes if change.name] for name, changes in stale.items()}
    notices = []
    if reworded := [name[1] for name, changes in known.items() if any(one.input in _SCORED_BY for one in changes)]:
        message = f"changed in the evalset since that run, but scored with the old version: {few(reworded, _LISTED)}"
        notices.append(Noticed("warning", message, "Run the cases to use the current version"))
    every = dict.fromkeys(change for changes in known.values() for change in changes)
    if left := [change for change in every if change.input not in _TAKEN_IN]:
        message = f"changed since the transcripts were made: {describe_few(left, _LISTED)}"
        notices.append(Noticed("info", message, "Run the cases to use the changes"))
    if taken := [change for change in every if change.input in _TAKEN_IN]:
        message = f"changed since that run, and scored with the current version: {describe_few(taken, _LISTED)}"
        notices.append(Noticed("info", message))
    return replace(plan, notices=(*plan.notices, *notices))


def _take_reference(stored: StoredCase, case: EvalCase | None) -> None:
    started = stored.started
    if started is not None and started.expected is not None and case is not None and case.turns is not None:
        stored.started = replace(started, expected=tuple(case.turns), rubrics=tuple(case.rubrics))
        # The verdict no longer depends on the text that the case had in its run, even if that text comes back.
        stored.planned = replace(stored.planned, text="")


def _complete(run: StoredRun, missing: Collection[CaseName], state: Path) -> None:
    """Add those of the missing cases that the last stored run has to `run`, with the ID and trouble of that run."""
    kept = open_run(LAST, state, state) if last_run(state) is not None else StoredRun()
    older = {ref: case for ref, case in kept.cases.items() if ref.name in missing and not case.empty}
    if older:
        run.cases |= older
        run.run_id = f"{run.run_id}, {kept.run_id}" if run.run_id else kept.run_id
        run.trouble = kept.trouble


def root_of_run(run: StoredRun, root: Path, explicit_state: Path | None) -> Path:
    """Return the root for the paths of a run.

    A run in the project's state folder belongs to the project, even if the project has moved since. A run from
    elsewhere names its root, which is used if it exists on this machine.
    """
    if explicit_state is None and run.file is not None:
        kept = next((state for state in states_of(state_dir(root)) if run.file.is_relative_to(state)), None)
        if kept is not None:
            return kept.parent
    stored = Path(run.root)
    return root if not run.root or not stored.is_absolute() or not stored.is_dir() else stored


class _Current:
    """The current evalsets of the project in `root`, with their agents and criteria. Each file is opened on first use.

    The criteria are `given`, or those of the file `config`, or each evalset's own.
    """

    def __init__(self, root: Path, kept: StoredOwners, config: Path | None, given: CriteriaChoice | None) -> None:
        found, bases = discover_for([root], root)
        self.agents = name_agents(found.agents, root)
        self._root, self._config, self._given = root, config, given
        self._chooser = CriteriaChooser(root, config)
        self._ownership = Ownership(self.agents, root, bases, kept, found.ignored)
        self._opened: dict[str, EvalsetDocument] = {}

    def criteria(self, evalset_file: str) -> CriteriaChoice | None:
        """Return the criteria of an evalset, or None if they are its own and it no longer exists."""
        if self._given is not None:
            return self._given
        document = self._document(evalset_file)
        if document is None:
            return None if self._config is None else self._chooser.choose(Path(evalset_file))
        return self._chooser.choose(document.path, is_dataset=document.format == "dataset")

    def lost(self, evalset_file: str) -> CaseError | None:
        """Return the error of an evalset whose agent is gone, or None."""
        document = self._document(evalset_file)
        return None if document is None else lost_agent(self._owner(document))

    def entries(self, evalset_files: Iterable[str]) -> Iterator[EvalsetEntry]:
        """Yield the entries of the evalsets that still exist."""
        for file in evalset_files:
            document, criteria = self._document(file), self.criteria(file)
            if document is not None and criteria is not None:
                owner = self._owner(document)
                yield EvalsetEntry(document.path, file, document, owner.agent, owner.reason, criteria, owner.owned)

    def _document(self, evalset_file: str) -> EvalsetDocument | None:
        if evalset_file not in self._opened:
            file = self._root / evalset_file
            try:
                if not file.is_file():
                    return None
            except (OSError, ValueError):  # The path comes from a report, so it may be anything.
                return None
            self._opened[evalset_file] = open_evalset(file)
        return self._opened[evalset_file]

    def _owner(self, document: EvalsetDocument) -> Owner:
        return self._ownership.owner(document.path, lambda: app_name(document))


def find_resumable(
    resumed: Callable[[Plan], Plan], workspace: Workspace, state: Path, place: PlaceChoice | None = None
) -> Plan:
    """Return the plan that resumes the newest run at `place`, by default the project's. `resumed` is `Project.resumed`.

    Do not call it in the screen's thread: it reads files.

    Raises:
        UsageFaultError: the run was not interrupted, or its inputs have changed.
    """
    newest = newest_interrupted(state)
    if newest is None:
        raise UsageFaultError("the newest run was not interrupted", "Press r to run the marked or current case")
    plan = _plan_of(workspace, newest[1], place)
    found = resumed(plan)
    if found.run_id == plan.run_id:
        why = found.notices[0].message if found.notices != plan.notices else "it cannot be resumed"
        raise UsageFaultError(why, "Press r to run the marked or current case")
    return found


def describe_resumable(workspace: Workspace, state: Path) -> str:
    """Return a text about the results that resuming the newest run would reuse, or "" if it cannot be resumed.

    Reads files.
    """
    try:
        return resumable_results(state, lambda announced: _plan_of(workspace, announced))
    except (UsageFaultError, OSError, ValueError):
        return ""


def _plan_of(workspace: Workspace, announced: RunStarted, place: PlaceChoice | None = None) -> Plan:
    names = {planned.case.name for planned in announced.cases}
    if not names <= workspace.case_names:
        raise UsageFaultError(f"run {announced.run_id} has cases that no longer exist")
    return plan_cases(workspace, names, replace(options_of(announced, workspace.root), place=place))


plan_of_fork = fork_plan
"""Returns the plan that tries a fork. Front ends use it from here, because they make plans only through this
package.
"""


def original_of_record(record: CaseRecord, state: Path | None) -> Original:
    """Return the conversation of a case of this session or of an opened run.

    `state` is the state folder with the runs. Reads files.

    Raises:
        CannotForkError: the case has not started, its calls were not recorded, or a fault was injected into one.
    """
    case = stored_case(record)
    return read_original(case.ref, record.run_id, case.started, case.steps, state)


def original_of_turns(agent: str, session: dict[str, Any], turns: Sequence[Turn]) -> Original:
    """Return a live conversation with an agent, up to its first unfinished turn. `session` is its session input.

    Raises:
        CannotForkError: its calls were not recorded.
    """
    ref = CaseRef(agent, "", "", "chat")
    finished = list(itertools.takewhile(lambda turn: turn.actual is not None, turns))
    started = CaseStarted(ref, 0.0, tuple({"user_content": turn.user} for turn in finished), {}, session=session)
    steps = (event for number, turn in enumerate(finished) for event in turn_events(ref, number, turn, Usage()))
    return read_original(ref, "chat", started, steps, None)


def stored_original(
    word: str, case: str, repeat: int = 1, *, folder: Path, explicit_state: Path | None = None
) -> Original:
    """Return a conversation of a stored run. `word` is an id or the start of one, or `last`. Reads files.

    Raises:
        UsageFaultError: the run or case does not exist, several evalsets have the case, or it cannot be forked.
    """
    run = open_run(word, state_dir(find_root(folder), explicit_state), folder)
    found = [one for ref, one in run.cases.items() if ref.eval_id == case and ref.repeat == repeat]
    if not found:
        raise UsageFaultError(f"run {run.run_id} has no case {case}, repeat {repeat}", "", "nothing")
    if len(found) > 1:
        files = ", ".join(one.ref.evalset_file for one in found)
        raise UsageFaultError(f"run {run.run_id} has a case {case} in several evalsets: {files}", "", "nothing")
    state = state_of(run.file) if run.file is not None and is_stored(run.file) else None
    try:
        return read_original(found[0].ref, run.run_id, found[0].started, found[0].steps, state)
    except CannotForkError as error:
        raise UsageFaultError(f"cannot fork {case}: {error}") from None

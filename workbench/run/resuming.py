"""Resuming an interrupted run: the newest run of the same cases, if its inputs have not changed."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.criteria.secrets import Secrets
from workbench.events.event_json import from_json
from workbench.events.events import CaseRef, Event, Noticed, RunStarted
from workbench.files.project_settings import known_mode
from workbench.files.run_options import RESULT_OPTIONS, RunOptions, UsageFaultError, stored_options
from workbench.freshness.agent_inputs import WRITTEN
from workbench.freshness.current import CurrentInputs, Options, PastInputs
from workbench.freshness.staleness import compare
from workbench.run.input_recorder import plan_inputs
from workbench.run.plan.plan import Plan, PlanEntry
from workbench.run.plan.source import RETRIED, AgentSource, Answer, InterruptedCase, InterruptedRun, interrupted_run
from workbench.run.plan.source import read as read_answers
from workbench.store.database.database import database, run_path, state_of
from workbench.store.database.runs import RunRow, find_run
from workbench.store.database.values import model_answers
from workbench.store.digests import project_digests
from workbench.store.history.reading import load_summary
from workbench.store.history.run_names import run_ids
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import announcement, is_reading_problem, read_run, stored_events
from workbench.store.inputs import (
    CASE_INPUTS,
    Bundle,
    Change,
    Record,
    RunInputs,
    describe,
    not_recorded,
    started_case,
    started_config,
)
from workbench.text.counting import counted

_MAX_RUNS = 20
"""Number of newest runs searched for one with the same cases."""
_OPTIONS_OF_CASES = frozenset({"runs", "timeout", "isolation"})
"""Options that are compared case by case. The others are compared for the run as a whole."""
_MAX_REASONS = 3


@dataclass
class Resumable:
    """An interrupted run that can be resumed: the plan for the rest, and the writer of the run."""

    plan: Plan
    writer: RunWriter


def resume(state: Path, plan: Plan) -> Resumable | Plan:
    """Return the interrupted run that `plan` resumes, or `plan` itself.

    If an interrupted run of the same cases cannot be resumed, a notice in the plan says why. Reads files, so do not
    call it in an event loop's thread.
    """
    path = _newest_of(state, plan)
    if path is None or _is_complete(path):
        return plan
    try:
        writer = RunWriter.reopen(path)
    except OSError as error:
        return _not_resumed(plan, path, [f"it cannot be written ({error.strerror or error})"])
    if writer is None:
        return plan  # The run is still in progress.
    found = read_results(path)
    if found is None or not _has_rest(found, path):
        writer.release()
        return plan
    changes = _changes(found, plan, state)
    if changes:
        writer.release()
        return _not_resumed(plan, path, changes)
    return Resumable(_resumed(plan, found), writer)


def resumable_results(state: Path, plan_of: Callable[[RunStarted], Plan]) -> str:
    """Return a text about the results that resuming the newest run would reuse, or "" if it cannot be resumed.

    `plan_of` returns the plan that runs the cases of a run again. Nothing is written.
    """
    newest = newest_interrupted(state)
    found = None if newest is None else read_results(newest[0], brief=True)
    if newest is None or found is None:
        return ""
    plan = plan_of(found.announced)
    cases = {planned.case for planned in found.announced.cases}
    if cases != {entry.ref for entry in plan.entries} or not _has_rest(found, newest[0]):
        return ""
    return "" if _changes(found, plan, state) else _reused(found)


def _has_rest(found: InterruptedRun, path: Path) -> bool:
    """Add the stored answers of the run at `path`. Return whether something can be reused and something is left."""
    if found.cut_short or (found.ended and (found.complete or found.results == len(found.cases))):
        return False
    answers = stored_answers(path)
    for ref, case in found.cases.items():
        case.answers = answers.get(ref, [])
    return bool(found.results or found.transcripts or found.answers)


def newest_interrupted(state: Path) -> tuple[Path, RunStarted] | None:
    """Return the newest run if it is incomplete, no process is writing it, and the screen can resume it, else None.

    The screen cannot resume a shard, a fork, a run with injected faults, or one that scores another run again.
    """
    for run_id in run_ids(state)[:1]:
        path = run_path(state, run_id)
        row = _row(path)
        # Most runs are complete, and announcements can be long.
        if row is None or row.is_being_written or _is_complete(path):
            return None
        announced = announcement(path)
        if announced is None or not _runs_cases(announced) or announced.shard is not None:
            return None
        return None if RunInputs(announced.inputs).injects_faults else (path, announced)
    return None


def _row(path: Path) -> RunRow | None:
    try:
        return database(state_of(path)).read(lambda connection: find_run(connection, path.name))
    except OSError:
        return None


def stored_answers(path: Path) -> dict[CaseRef, list[Answer]]:
    """Return the stored answers of models in a run by case, or {} if they cannot be read."""
    row = _row(path)
    if row is None:
        return {}
    try:
        texts = database(state_of(path)).read(lambda connection: model_answers(connection, row.id)) or []
        return read_answers(map(json.loads, texts))
    except (OSError, ValueError, RecursionError):
        return {}


def options_of(announced: RunStarted, root: Path) -> RunOptions:
    """Return the options of a run that affect its results, with defaults for the rest.

    If the setting of the project in `root` was changed since the run, it replaces the run's mode of `--frozen`.

    Raises:
        UsageFaultError: the stored options are invalid.
    """
    known = RunInputs(announced.inputs).options
    kept = {name: value for name, value in known.items() if name in RESULT_OPTIONS}
    try:
        now = Options.of_run(known, known_mode(root))
        return RunOptions(**{**kept, "frozen": now.frozen}, python=now.python)
    except TypeError as error:
        raise UsageFaultError(f"the options of run {announced.run_id} cannot be read: {error}") from None


def read_results(path: Path, *, brief: bool = False) -> InterruptedRun | None:
    """Return the results of a stored run, or None if it cannot be read or lost its announcement.

    With `brief`, cases with a result lack their steps and verdicts, which may be hundreds of megabytes. The screen
    needs only the rest, while the user types.
    """
    try:
        found = interrupted_run(_events(path, brief=brief))
    except (OSError, ValueError):
        return None
    return found if found is not None and found.announced.started else None


def _events(path: Path, *, brief: bool) -> Iterator[Event | None]:
    """Yield the events of a run, the announcement first, and None for each event that is lost."""
    if not brief:
        for event in read_run(path):
            if not isinstance(event, Noticed):
                yield event
            elif is_reading_problem(event, path):
                yield None
        return
    announced, lost = False, 0
    for read in stored_events(path, unread="decided", retried=RETRIED):
        if read.problem and announced:
            yield None
        lost += bool(read.problem)
        if read.data is None or (not announced and read.name != "RunStarted"):
            continue
        yield from_json(read.data)
        if not announced:
            announced = True
            yield from itertools.repeat(None, lost)


def _newest_of(state: Path, plan: Plan) -> Path | None:
    """Return the path of the newest run with exactly the plan's cases (of the same shard, if it is one), or None."""
    wanted, number = {entry.ref for entry in plan.entries}, plan.shard and plan.shard.number
    for run_id in run_ids(state)[:_MAX_RUNS]:
        path = run_path(state, run_id)
        announced = announcement(path)
        if announced is None or not _runs_cases(announced) or (announced.shard and announced.shard.number) != number:
            continue
        if {case.case for case in announced.cases} == wanted:
            return path
    return None


def _runs_cases(announced: RunStarted) -> bool:
    """Return whether agents run the cases of a run. A run that scores another one or tries a fork does not count."""
    return not announced.scored_from and all(planned.fork is None for planned in announced.cases[:1])


def _is_complete(path: Path) -> bool:
    """Return whether the run ended with everything done. Return False if it cannot be read."""
    try:
        return load_summary(state_of(path), path.name)[0].is_done
    except OSError:
        return False


def _changes(found: InterruptedRun, plan: Plan, state: Path) -> list[str]:
    """Return why the run cannot be resumed: a text for each input that changed since."""
    if not found.announced.inputs:
        return ["the inputs of its verdicts are not known"]
    clean = Secrets([setting.environment.values for setting in plan.agents.values()]).clean_data
    now = plan_inputs(plan, project_digests(state), clean)
    if found.inputs.salt_id != now.digests.salt_id:
        return ["its recorded inputs cannot be compared with the current ones (their salts differ)"]
    options = stored_options(plan.options)
    changed = [
        Change("options", RESULT_OPTIONS[name], None, "run")
        for name in RESULT_OPTIONS
        if name not in _OPTIONS_OF_CASES and found.inputs.options.get(name) != options[name]
    ]
    if found.inputs.options.get("inject") != options.get("inject"):
        changed.append(Change("options", "--inject", None, "run"))
    reasons = dict.fromkeys(map(describe, changed))
    if plan.shard is not None and found.announced.shard is not None:
        reasons |= dict.fromkeys(plan.shard.differences(found.announced.shard))
    for entry in plan.entries:
        case = found.cases.get(entry.ref)
        if case is not None and isinstance(entry.source, AgentSource):
            reasons |= dict.fromkeys(
                _words(change, entry.ref) for change in _changes_of(case, entry.source, found, now)
            )
    return list(reasons)


def _words(change: Change, ref: CaseRef) -> str:
    place = f"{ref.eval_id or 'the file'} in {ref.evalset_file}: " if change.input in CASE_INPUTS else ""
    return place + describe(change)


def _changes_of(
    case: InterruptedCase, source: AgentSource, found: InterruptedRun, now: CurrentInputs
) -> tuple[Change, ...]:
    planned, stored = case.stored.planned, case.stored
    ref, evalset = planned.case, source.evalset
    agent = ref.agent if planned.matched_by == "given" else None
    if case.has_result and stored.started is not None and source.index is not None:
        config = started_config(stored.started, planned.config_file)
        bundles = (started_case(stored.started), *config, *stored.inputs)
        then = PastInputs(Record(ref.evalset_file, bundles), planned.text, agent)
        return compare(then.record, now.record(evalset, source.index, then))
    bundles = found.inputs.of_planned(ref.agent, ref.evalset_file, planned.text)
    if not bundles:
        return not_recorded(["agent_file"])
    written = dict.fromkeys(found.written.get(ref.agent, ()), WRITTEN)
    then = PastInputs(Record(ref.evalset_file, (*bundles, Bundle({"agent_folder": written}))), planned.text, agent)
    return compare(then.record, now.planned(evalset, source.index, then))


def _reused(found: InterruptedRun) -> str:
    have = "has a result" if found.results == 1 else "have results"
    need = "needs" if found.transcripts == 1 else "need"
    scored = f", {found.transcripts:,} only {need} scores" if found.transcripts else ""
    reused = f", {counted(found.answers, 'model answer')} of other cases can be reused" if found.answers else ""
    return f"{found.announced.run_id}: {found.results:,} of {len(found.cases):,} cases {have}{scored}{reused}"


def _resumed(plan: Plan, found: InterruptedRun) -> Plan:
    run_id, text = found.announced.run_id, f"resuming {_reused(found)}"
    notice = Noticed("info", text, "--fresh runs all cases again")
    entries: list[PlanEntry] = []  # Each is reduced to what is left to do.
    for entry in plan.entries:
        case = found.cases.get(entry.ref)
        if case is not None and isinstance(entry.source, AgentSource):
            entry = replace(entry, source=case.source(entry.source))
        entries.append(entry)
    return replace(plan, run_id=run_id, entries=tuple(entries), notices=(notice, *plan.notices), resumed=found)


def _not_resumed(plan: Plan, path: Path, changes: list[str]) -> Plan:
    more = f", and {len(changes) - _MAX_REASONS} more" if len(changes) > _MAX_REASONS else ""
    text = f"{path.name} was interrupted and is not resumed: {', '.join(changes[:_MAX_REASONS])}{more}"
    return replace(plan, notices=(Noticed("info", text), *plan.notices))

"""Facts for the bar, read from the session."""

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.results.frozen import frozen_count
from workbench.store.remaining import STARTING_AGENTS, is_waiting_for_agents, latency_words, left_words
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.session.session import Session
from workbench.ui.widgets.bar import Facts

if TYPE_CHECKING:
    from workbench.project.watching import Watching

_LOADING = {"": "", "results": "loading results", "changes": "checking for changes"}
_DOING = {"run": "running the agent", "score": "scoring again", "decide": "comparing scores"}
_DONE = {"run": "ran the agent", "score": "scored again", "decide": "compared scores"}


def bar_facts(session: Session, agents: int, now: datetime) -> Facts:
    """Return the facts that the bar shows. `agents` is the number of groups in the tree."""
    store, watching = session.store, session.watching
    activity = store.activity
    awaits_key = watching is not None and watching.jobs.waiting is not None
    return Facts(
        root=session.target_name,
        idle_text=_idle_text(session, agents),
        counts=store.counts() + Counter({"cancelled": store.run.cancelled}),
        total=len(store.current) + store.run.cancelled,
        running=activity.running,
        of_last_run=not activity.busy and session.verdicts.differ_from_run,
        phase=_phase(session),
        left=left_words(session.remaining.seconds()) if activity.running else ("", ""),
        interrupted=store.run.interrupted,
        rescored=bool(store.run.scored_from),
        other_criteria=store.run.other_criteria,
        frozen=(frozen_count(store.frozen, len(store.current)), f"{store.frozen:,}" if store.frozen else ""),
        when=_when(session, now),
        loading=_LOADING[session.loading] or (_large_file(session) if session.workspace is not None else ""),
        elsewhere="" if session.elsewhere is None else "{}/{}".format(*session.elsewhere),
        seconds=session.elapsed(),
        criteria_changed=not session.draft.empty,
        recordings=session.recordings.for_bar,
        place=session.places.for_bar,
        machines=_machines(session) if activity.running and session.machines else ("", ""),
        judge_calls=session.judges.text,
        by_function=session.judges.by_function,
        waiting=session.waiting(),
        stale=("", "") if awaits_key else session.verdicts.stale_text,
        watching=watching is not None,
        watch=("watch off", "watch off") if watching is None else _watch_words(session, watching),
        awaits_key=awaits_key,
    )


def _phase(session: Session) -> str:
    """Return what happens while no case of a requested run is in progress or all were cancelled, or ""."""
    activity, counts = session.store.activity, session.store.counts()
    if activity.starting:
        job = activity.watch_job
        return _DOING[job].replace(_DOING["run"], STARTING_AGENTS) if job else session.starting or STARTING_AGENTS
    if session.is_cancelled:
        return "cancelling"
    waits = activity.running and not activity.rescoring
    return STARTING_AGENTS if waits and is_waiting_for_agents(counts["running"], counts["queued"]) else ""


def _machines(session: Session) -> tuple[str, str]:
    """Return how busy other machines are, in full and in short."""
    from workbench.results.machines import fleet_brief  # Most runs are on this machine.

    return fleet_brief(session.machines)


def _when(session: Session, now: datetime) -> tuple[str, str]:
    """Return when the run was made, in full and in short, or two "" while there is none or it is active."""
    run = session.store.run
    of_save = session.watching is not None and session.watching.latency is not None
    if not run.started or session.store.activity.busy or of_save:
        return "", ""
    from workbench.ui.session.run_labels import ran_words

    return ran_words(run.started, now)


def _watch_words(session: Session, watching: "Watching") -> tuple[str, str]:
    """Return the state of the watch, in full and in short."""
    waiting = watching.jobs.waiting
    if waiting is not None and session.workspace is not None:
        stale = len(watching.jobs.depths)
        total = sum(len(entry.document.cases) for entry in session.workspace.evalsets)
        costs = f", {counted(waiting.calls, 'call')}" if waiting.calls else ""
        money = waiting.money.removeprefix("about ")
        costs += f", {money}" if money and waiting.amount is not None else ""
        return f"{waiting.text(total)}: press w to run", f"{stale:,} stale{costs}: press w"
    words = ["watch on"]
    if watching.jobs.armed is not None:
        words = [f"watch on for {len(watching.jobs.armed):,}"]
    if watching.watcher.changes.polling:
        words.append("polling")
    if session.last_watch_effect:
        words.append((_DOING if session.store.activity.watch_job else _DONE)[session.last_watch_effect])
    if watching.latency is not None and not session.store.activity.busy:
        words.append(latency_words(watching.latency))
    faults = watching.watcher.broken if watching.jobs.blocked else ()
    if faults:
        # Cases wait for this file, and the message about it disappears after a while.
        line = f":{faults[0].line}" if faults[0].line else ""
        place = one_line(f"{faults[0].path.name}{line}", limit=30)
        return ", ".join([*words, f"{place} is broken"]), f"watch on, {place} is broken"
    return ", ".join(words), "watch on"


def _large_file(session: Session) -> str:
    return f"reading a large file: {session.large_file}" if session.large_file else ""


def _idle_text(session: Session, agents: int) -> str:
    workspace = session.workspace
    if session.read_error:
        return f"cannot be read: {one_line(session.read_error, limit=80)}"
    if workspace is None:
        return _large_file(session) or "reading files"
    cases = sum(len(entry.document.cases) for entry in workspace.evalsets)
    evalsets = counted(len(workspace.evalsets), "evalset")
    found = f"{counted(cases, 'case')} in {evalsets} of {counted(agents, 'agent')}"
    return f"reading files: {found} so far" if session.reading else found

"""The bar on the first line of the screen: folder, progress, verdicts, time and watch."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from workbench.results.cells import cell_len, cut_name
from workbench.results.faces import BY_FUNCTION, COUNTED, DECIDED, FACES, FROZEN, OTHER_CRITERIA, STALE
from workbench.results.frozen import frozen_count
from workbench.store.execution import CaseState
from workbench.store.rates import STARTING_AGENTS, is_waiting_for_agents, latency_words, left_words
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.session.relative_times import clock
from workbench.ui.session.session import Session

if TYPE_CHECKING:
    from workbench.project.watching import Watching


_WIDE = 120
"""Minimum width of the bar, in cells, for the long text about recordings."""
Part = tuple[str, str]
_FORMS = ((True, 20, 2), (True, 0, 2), (False, 0, 2), (False, 0, 1), (False, 0, 0))
"""Forms of the bar, longest first: whether states have words, the meter's cells, and detail about judges (0 to 2)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The content of the bar.

    Pairs of texts are a long and a short form, both "" if there is nothing to show. `root` is safe text. If `total` is
    0, nothing has run, and `idle_text` replaces the progress.
    """

    root: str = ""
    idle_text: str = ""
    counts: Counter[CaseState] | None = None
    total: int = 0
    running: bool = False
    of_last_run: bool = False
    """Whether the counts differ from the tree's, because the last run skipped or repeated cases."""
    interrupted: bool = False
    rescored: bool = False
    """Whether stored transcripts were scored again and the agent did not run."""
    phase: str = ""
    """The step of a run that starts or is cancelled, such as `starting agents`, or ""."""
    left: tuple[str, str] = ("", "")
    """Remaining time of the run."""
    when: tuple[str, str] = ("", "")
    """Time of the run."""
    loading: str = ""
    """Data being loaded from earlier sessions."""
    elsewhere: str = ""
    """Progress of a run in another program, such as `5/12`."""
    seconds: float = 0.0
    judge_calls: str = ""
    """Number and cost of judge calls, as text."""
    by_function: bool = False
    """Whether a Python function replaced a judge model."""
    waiting: tuple[str, str] = ("", "")
    """The judge that waits longest before its next call, such as for its quota."""
    frozen: tuple[str, str] = ("", "")
    """Number of replayed cases of the run."""
    other_criteria: bool = False
    """Whether the run used criteria other than those in the files."""
    criteria_changed: bool = False
    """Whether the criteria of the next run differ from the files."""
    recordings: tuple[str, str] = ("", "")
    """The next run's use of recordings."""
    place: str = ""
    """The place of the next run, such as `on cluster`, or "" for this machine."""
    machines: tuple[str, str] = ("", "")
    """The load of the run's other machines."""
    stale: tuple[str, str] = ("", "")
    """Number of stale verdicts, and the reason."""
    watching: bool = False
    watch: tuple[str, str] = ("watch off", "watch off")
    """State of the watch, in full and in short."""
    awaits_key: bool = False
    """Whether a rerun by the watch waits for a key. The bar then shows its cost rather than the last run."""


def bar_parts(facts: Facts, width: int) -> tuple[list[Part], list[Part]]:
    """Return the left and right side of the bar as (text, theme variable), shortened to `width` cells."""
    changed: list[Part] = [(" criteria changed ", "accent")] if facts.criteria_changed else []
    changed += [(f" {FROZEN.glyph} {facts.recordings[width < _WIDE]} ", "accent")] if facts.recordings[0] else []
    changed += [(f" {facts.place} ", "accent")] if facts.place and not facts.running else []
    why, stale = ([(f"{words}  ", STALE.variable)] if words else [] for words in facts.stale)
    urgent = [*changed, *stale]
    color = "status-running" if facts.watching else "status-muted"
    full: list[Part] = [*changed, *why, (f"{facts.watch[0]} ", color)]
    right: list[Part] = [*urgent, (f"{facts.watch[1]} ", color)]
    middle: list[Part] = []
    most = len(_FORMS) if facts.awaits_key else len(_FORMS) - 1
    if facts.awaits_key:
        tails = [full, right, [("press w to run ", color)]]
    else:
        tails = [full, right, [*urgent, ("watch on ", color)], urgent] if facts.watching else [full, right, urgent]
        if why != stale and not facts.watching:
            tails.insert(1, [*changed, *why])
    # Without the watch, texts about judges are more important than reasons of stale verdicts.
    long = [(*form, tail) for tail in tails[:-2] for form in _FORMS[: most if facts.watching else 3]]
    short = [(*form, tail) for tail in tails[-2:] for form in _FORMS[:most]]
    for words, meter, judges, tail in (*long, *short, (*_FORMS[-1], urgent)):
        middle = [(f"   {facts.idle_text}", "status-muted")]
        if facts.phase and not facts.running:
            middle = [(f"   ▶ {facts.phase}", "status-running")]
        elif facts.total:
            progress = _progress if facts.running else _result
            before, after = progress(facts, judges, words=words)
            middle = [*before, *_counts(facts, words=words, meter=meter), *after, *_judges(facts, judges)]
        if facts.loading:
            middle.append((f"   {facts.loading}", "status-running"))
        if facts.elsewhere and not facts.running:
            place = " in another terminal" if words else " elsewhere"
            middle.append((f"   ▷ {facts.elsewhere}{place}", "status-running"))
        room = width - sum(cell_len(text) for text, _ in (*middle, *tail)) - 2
        # A waiting or missing judge is more important than the end of the folder's name.
        if room >= min(cell_len(facts.root), 6 if judges == 1 else 24):
            return [(f" {cut_name(facts.root, room)}", "bold"), *middle], tail
    return [(f" {cut_name(facts.root, 12)}", "bold"), *middle], []


def _progress(facts: Facts, form: int, *, words: bool) -> tuple[list[Part], list[Part]]:
    """Return the texts before and after the counts of a run in progress. `form` is the detail, 0 to 2."""
    counts = facts.counts or Counter()
    done = sum(counts[state] for state in DECIDED)
    gap = "   " if words else "  "
    head = f"▶ {done}/{facts.total}"
    if facts.phase:
        head = f"{head} {facts.phase}"
    elif not done and counts["running"] and words:
        head = f"{head}, {counts['running']} running"
    after = [(gap + clock(facts.seconds), "")]
    if form and (busy := facts.machines[0 if form == 2 else 1]):
        after.append((gap + busy, "status-muted"))
    left = facts.left[0 if words else 1]
    if left and not facts.phase:
        after.append((gap + left, "status-running"))
    return [(gap + head, "status-running")], [*after, *_rescored(facts, gap, words=words)]


def _result(facts: Facts, form: int, *, words: bool) -> tuple[list[Part], list[Part]]:
    """Return the texts before and after the counts of a finished run. `form` is the detail, 0 to 2."""
    counts = facts.counts or Counter()
    done = sum(counts[state] for state in DECIDED)
    gap = "   " if words else "  "
    after: list[Part] = []
    if when := facts.when[0 if form == 2 else 1]:
        after.append((gap + when, "status-muted"))
    after += _rescored(facts, gap, words=words)
    if facts.interrupted:
        after.append((gap + ("interrupted" if words else "✂"), "status-not-evaluated"))
    before = [(f"{gap}last run", "status-muted")] if facts.of_last_run else []
    if done != facts.total:
        before.append((f"{gap}■ {done}/{facts.total}", "status-muted"))
    return before, after


def _rescored(facts: Facts, gap: str, *, words: bool) -> list[Part]:
    return [(gap + ("scored again" if words else "again"), "status-muted")] if facts.rescored else []


def _counts(facts: Facts, *, words: bool, meter: int) -> list[Part]:
    """Return the meter of a run in progress, and the number of cases with each verdict."""
    counts = facts.counts or Counter()
    parts: list[Part] = []
    gap = "   " if words else "  "
    if meter and facts.running:
        parts += [("  ", ""), *_meter(counts, facts.total, meter)]
    for state in COUNTED:
        if counts[state]:
            face = FACES[state]
            parts.append((f"{gap}{face.glyph}{counts[state]:,}", face.variable))
            gap = "  " if facts.running else " "
    if not facts.running and sum(counts[state] for state in DECIDED) == facts.total:
        parts.append((f" of {facts.total:,}", "status-muted"))
    gap = "   " if words else " "
    if facts.frozen[0]:
        shown = f" {facts.frozen[0]}" if words else facts.frozen[1]
        parts.append((gap + FROZEN.glyph + shown, FROZEN.variable))
    if facts.other_criteria:
        sign = OTHER_CRITERIA.glyph
        parts.append((gap + (f"{sign} {OTHER_CRITERIA.word}" if words else sign), OTHER_CRITERIA.variable))
    return parts


def _judges(facts: Facts, form: int) -> list[Part]:
    """Return the text about judges: in full (2), only if it affects trust in the verdicts (1), or none (0)."""
    full, short = facts.waiting
    parts: list[Part] = []
    if form == 2 and facts.judge_calls:
        parts.append((f"   {facts.judge_calls}", "status-muted"))
    if form and facts.by_function:
        word = f" {BY_FUNCTION.word}{' judge' if form == 2 else ''}"
        parts.append((f"  {BY_FUNCTION.glyph}{word}", BY_FUNCTION.variable))
    if form and full:
        parts.append((f"   {full}" if form == 2 else f"  {short}", "status-not-evaluated"))
    return parts


def _meter(counts: Counter[CaseState], total: int, width: int) -> list[Part]:
    """Return a meter of `width` cells with a share for each verdict. Cells of unfinished cases are dim."""
    parts: list[Part] = []
    done, drawn = 0, 0
    for state in DECIDED:
        done += counts[state]
        end = round(done * width / total)
        parts.append(("━" * (end - drawn), FACES[state].variable))
        drawn = end
    return [*(part for part in parts if part[0]), ("╌" * (width - drawn), "status-muted")]


class Bar(Widget):
    """The widget of the bar, which is repainted only if its text changes."""

    def __init__(self) -> None:
        super().__init__()
        self._facts = Facts()

    def show(self, facts: Facts) -> bool:
        """Replace the facts. Return whether anything was painted."""
        width = self.size.width
        changed = bar_parts(facts, width) != bar_parts(self._facts, width)
        self._facts = facts
        if changed:
            self.refresh()
        return changed

    def render(self) -> Content:
        """Return the line, with a gap between the left and the right side."""
        left, right = bar_parts(self._facts, self.size.width)
        gap = self.size.width - sum(cell_len(text) for text, _ in (*left, *right))
        return Content.assemble(*map(_styled, left), " " * max(gap, 0), *map(_styled, right))


def _styled(part: Part) -> tuple[str, str]:
    text, name = part
    return text, name if name in ("", "bold") else f"${name}"


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
        loading=_LOADING[session.loading],
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
    """Return the step of a run that starts or is cancelled, such as `starting agents` or `cancelling`, else ""."""
    activity, counts = session.store.activity, session.store.counts()
    if activity.starting:
        job = activity.watch_job
        return _DOING[job].replace(_DOING["run"], STARTING_AGENTS) if job else session.starting or STARTING_AGENTS
    if session.is_cancelled:
        return "cancelling"
    waits = activity.running and not activity.rescoring
    return STARTING_AGENTS if waits and is_waiting_for_agents(counts["running"], counts["queued"]) else ""


def _machines(session: Session) -> tuple[str, str]:
    from workbench.results.machines import fleet_brief  # Most runs are on this machine.

    return fleet_brief(session.machines)


def _when(session: Session, now: datetime) -> tuple[str, str]:
    """Return a long and a short text for the time of the last run.

    Both are "" without a run, during a run, and if the bar shows the watch's latency.
    """
    run = session.store.run
    of_save = session.watching is not None and session.watching.latency is not None
    if not run.started or session.store.activity.busy or of_save:
        return "", ""
    from workbench.ui.session.run_labels import ran_words

    return ran_words(run.started, now)


def _watch_words(session: Session, watching: "Watching") -> tuple[str, str]:
    waiting = watching.jobs.waiting
    if waiting is not None:
        stale = len(watching.jobs.depths)
        total = sum(len(entry.document.cases) for entry in session.opened.evalsets)
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


def _idle_text(session: Session, agents: int) -> str:
    workspace = session.workspace
    if session.read_error:
        return f"cannot be read: {one_line(session.read_error, limit=80)}"
    if workspace is None:
        return "reading files"
    cases = sum(len(entry.document.cases) for entry in workspace.evalsets)
    evalsets = counted(len(workspace.evalsets), "evalset")
    found = f"{counted(cases, 'case')} in {evalsets} of {counted(agents, 'agent')}"
    return f"reading files: {found} so far" if session.reading else found

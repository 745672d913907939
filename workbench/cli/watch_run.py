"""`run --watch`: a run, then after each save the cases that it can affect, in plain lines until Ctrl-C."""

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from workbench.agents.workspace import Workspace
from workbench.cli.exit_codes import INTERRUPTED, UNDECIDED
from workbench.cli.following import Interruption, ask_if_typed
from workbench.cli.live_progress import PlainProgress, QuietProgress, machine_lines
from workbench.cli.running_options import RunRequest
from workbench.cli.streams import has_failed, is_unread, write_line
from workbench.events.events import CaseName, CaseRef, RunFinished
from workbench.files import settings as config
from workbench.freshness.watcher import Saved
from workbench.project.cost_estimate import limit_words
from workbench.project.project import Project
from workbench.project.watch import News, RunningWatch, Waiting
from workbench.project.watching import Start
from workbench.results.changed_verdicts import Outcome, differs, outcome
from workbench.results.faces import COUNTED
from workbench.results.plain_lines import label
from workbench.results.plain_summary import repeat_lines, repeats_of
from workbench.run.plan.plan import Plan
from workbench.store.execution import Execution
from workbench.store.rates import latency_words
from workbench.text.counting import counted_status, few

Outcomes: TypeAlias = dict[CaseName, tuple[CaseRef, Outcome]]
"""Results of cases, each with its first execution. The agent of a case may have been another one before."""


def watch(request: RunRequest) -> int:
    """Run the requested cases, watch until interrupted, and return the exit code.

    Raises:
        UsageFaultError: the plan cannot be made; nothing ran.
    """
    workspace = request.targets.open()
    plan = request.targets.plan(request.options, workspace)
    return asyncio.run(_watch(request, workspace, plan))


async def _watch(request: RunRequest, workspace: Workspace, plan: Plan) -> int:
    settings = config.read_settings()
    async with Project(state_dir=request.targets.state_dir, settings=settings) as project:
        lines = _Lines(project, QuietProgress if request.quiet else PlainProgress)
        watch = lines.watch = RunningWatch(project, request.targets, workspace, plan, request.options, lines.take)
        for fault in settings.faults:
            lines.say(f"warning: {fault}")
        await project.connect(plan, lines.say, ask_if_typed(request.options.place))
        follow = None if request.quiet else machine_lines(project, plan.options, lines.say, sums_up=False)
        if follow is not None:
            project.store.subscribe(follow.apply)
        with lines.progress, _keys(watch), Interruption(watch, lines.say_of_run) as interruption:
            await watch.execute()
    return INTERRUPTED if interruption.count or is_unread() else UNDECIDED


class _Lines:
    """The output lines of `run --watch`."""

    watch: RunningWatch

    def __init__(self, project: Project, progress: type[PlainProgress]) -> None:
        self._store, self._prices = project.store, project.settings.prices
        self.progress = progress(self._store, sys.stdout, sys.stderr, lambda: self.watch.watching.superseded)
        self._reported: Outcomes = {}
        """Result of each case when it was last reported."""

    def take(self, news: News) -> None:
        """Write the lines about a piece of news. The progress display subscribes to the events of runs itself."""
        match news:
            case Saved() if news.impact.depths:
                self.say(f"saved {few(map(self.watch.name, sorted(news.changed)))}")
            case Start():
                self.say(news.text)
            case Waiting():
                way = "enter runs them" if sys.stdin.isatty() else "a terminal is needed to allow that"
                limit = limit_words(self.watch.watching.jobs.limit, self._prices)
                self.say(f"{news.estimate.text(news.total)}; the limit is {limit} ([watch] in the settings): {way}")
            case RunFinished() if self.watch.watching.superseded:
                # Cases that it did not reach have their earlier verdicts again, which were reported before. Its own
                # verdicts are reported with the next run that is not superseded.
                self.say(f"superseded after {news.duration_seconds:.2f} s by a newer save")
            case RunFinished():
                counts = self._store.counts()
                said = ", ".join(counted_status(state, counts[state]) for state in COUNTED if counts[state])
                now = outcomes(self._store.latest_verdicts())
                for line in changed_lines(self._reported, now):
                    write_line(sys.stdout, line)
                self._reported |= now
                for names, told, _ in repeat_lines(repeats_of(self._store)):
                    for name in names:
                        write_line(sys.stdout, f"REPEATS {name}: {told}")
                then = "the watch ends" if self.watch.ended else "watching, Ctrl-C ends"
                latency = self.watch.watching.latency
                took = "" if latency is None else f", {latency_words(latency)}"
                self.say(f"{said or 'no cases ended'} in {news.duration_seconds:.2f} s{took}; {then}")
        if has_failed() or is_unread():
            self.watch.stop()

    def say(self, line: str) -> None:
        """Write a message to its stream."""
        self.progress.message(line)

    def say_of_run(self, line: str) -> None:
        """Write a line that matters only while cases run."""
        if self.watch.busy:
            self.say(line)


@contextlib.contextmanager
def _keys(watch: RunningWatch) -> Iterator[None]:
    """While entered, let the enter key start the job that waits because of its cost."""
    loop = asyncio.get_running_loop()
    listening = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()

    def pressed() -> None:
        if sys.stdin.readline():
            watch.allow()
        else:
            loop.remove_reader(sys.stdin.fileno())

    if listening:
        loop.add_reader(sys.stdin.fileno(), pressed)
    try:
        yield
    finally:
        if listening:
            loop.remove_reader(sys.stdin.fileno())


def outcomes(records: Iterable[Execution]) -> Outcomes:
    """Return the outcome of each case with a verdict, over all its executions."""
    found: dict[CaseName, list[Execution]] = {}
    for record in records:
        if record.has_verdict:
            found.setdefault(record.ref.name, []).append(record)
    return {case: (replace(executions[0].ref, repeat=1), outcome(executions)) for case, executions in found.items()}


def changed_lines(before: Outcomes, now: Outcomes) -> Iterator[str]:
    """Yield `CHANGED agent/eval_set_id/eval_id passed -> failed` lines of safe text, regressions first.

    Repeated cases read `3/3 passed -> 0/3 passed`.
    """
    both = [(now[case][0], then, now[case][1]) for case, (_, then) in before.items() if case in now]
    changed = [(ref, then, today) for ref, then, today in both if differs(then, today)]
    changed.sort(key=lambda one: (one[2].rate.rate or 0.0) > (one[1].rate.rate or 0.0))
    for ref, then, today in changed:
        yield f"CHANGED {label(ref)} {then.text()} -> {today.text()}"

"""The action "try faults in tools", and the tables of its runs and of stored runs."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from workbench.store.details import read_details
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line
from workbench.ui.editing.files import Files
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.news import News
from workbench.ui.running.run import Request, Run, Targets
from workbench.ui.running.run_thread import SideRun
from workbench.ui.screen.controller import Controller
from workbench.ui.session.next_run import RecordingOptions
from workbench.ui.terminal.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from workbench.events.events import CaseName
    from workbench.project.fault_matrix import FaultMatrix, Outlook
    from workbench.store.history.summary import ListedRun
    from workbench.ui.faults.grid import Matrix
    from workbench.ui.faults.screen import Offer
    from workbench.ui.screen.view import View


class Faults(Controller):
    """The action that makes tools of the marked or current cases fail. Executions with faults change no verdicts."""

    def __init__(self, view: "View", news: News, files: Files, run: Run, engine: Engine, host: Host) -> None:
        super().__init__(view)
        self._files, self._run, self._engine, self._host = files, run, engine, host
        self._waiting: tuple[list[CaseName], bool] | None = None
        """The cases whose faults are tried after the active run, and whether their tools are frozen."""
        news.when_taken.append(self.after_news)

    def try_faults(self) -> None:
        """Show how many executions it takes to try each fault in each tool, and run them if the user agrees."""
        pairs = self.view.targets("try_faults")
        if self._run.can_start(pairs):
            self.view.work(partial(self._offer, pairs), "faults")

    async def _offer(self, pairs: Targets) -> None:
        from workbench.ui.faults.screen import FaultDialog

        names = [self.session.opened.case_name(*pair) for pair in pairs]
        matrix = await self._matrix(pairs, frozen=False)
        if matrix is None:
            return
        outlook = await asyncio.to_thread(matrix.outlook)
        if not outlook.total and not outlook.unknown:
            why = "cannot start" if outlook.blocked and not outlook.executions else "call no tools"
            self.view.say(f"these cases {why}, so there are no tool faults to try", warning=True)
            return
        title = f"try faults in tools › {counted(len(set(pairs)), 'case')}"
        offer, places = _offered(outlook, *self._usual(outlook)), self.session.verdicts.places
        frozen = await self.view.ask(FaultDialog(title, offer, self._are_frozen(places(names)), self.view.keys))
        if frozen is None:
            return
        if outlook.unknown:
            unknown = places(name for name in names if name in outlook.unknown)
            if not self._run.can_start(unknown):
                return  # The end of another run must not start faults.
            self._waiting = names, frozen
            build = partial(self._engine.build, recordings=RecordingOptions(""))
            self._run.start(Request(unknown, build), confirmed=True)
        elif frozen:
            await self._try(places(names), frozen=True)
        else:
            self._show(matrix)

    def _are_frozen(self, pairs: Targets) -> bool:
        """Return whether the next run uses recordings, or the newest executions of these cases all did."""
        if self.session.recordings.effective in ("tools", "all"):
            return True
        records = [next(iter(self.session.verdicts.records(*pair)), None) for pair in pairs]
        return any(records) and all(record is None or record.frozen is not None for record in records)

    async def _matrix(self, pairs: Targets, *, frozen: bool) -> "FaultMatrix | None":
        from workbench.files.run_options import UsageFaultError

        try:
            return await self._engine.fault_matrix(pairs, frozen=frozen)
        except UsageFaultError as error:
            self.view.notify(one_line(f"{error}. {error.hint}"), title="cannot try faults", severity="warning")
            return None

    def _usual(self, outlook: "Outlook") -> tuple[int, int]:
        """Return the expected model calls and tokens, estimated from the last run of each case."""
        calls = tokens = 0
        for (file, eval_id), executions in outlook.executions.items():
            place = self.session.verdicts.place(file, eval_id)
            record = next(iter(self.session.verdicts.records(*place)), None) if place is not None else None
            if record is not None:
                calls += record.usage.model_calls * executions
                tokens += (record.usage.input_tokens + record.usage.output_tokens) * executions
        return calls, tokens

    def after_news(self, ended: bool) -> None:
        """Try faults in the tools of the waiting cases, once the run that finds these tools has ended.

        If that run was cancelled, or another screen is open, only tell the user.
        """
        if not ended or self._waiting is None or self.session.store.activity.busy:
            return  # The run that finds the tools may wait for another one, which has ended.
        (names, frozen), self._waiting = self._waiting, None
        if self.session.store.run.interrupted:
            self.view.say("the run was cancelled, so no faults were tried", warning=True)
        elif self.view.covered:
            self.view.notify("the tools are now known: choose “try faults in tools” again in the palette")
        else:
            self.view.work(partial(self._try, self.session.verdicts.places(names), frozen=frozen), "faults")

    async def _try(self, pairs: Targets, *, frozen: bool) -> None:
        matrix = await self._matrix(pairs, frozen=frozen)
        if matrix is None:
            return
        if matrix.first is not None:  # Runs are not stored, so their calls are only in memory.
            records = [record for pair in pairs for record in self.session.verdicts.records(*pair)]
            await asyncio.to_thread(lambda: matrix.add(map(read_details, records)))
        self._show(matrix)

    def _show(self, matrix: "FaultMatrix") -> None:
        from workbench.files.run_options import UsageFaultError
        from workbench.ui.faults.grid import Matrix

        try:
            plan = matrix.plan()
        except UsageFaultError as error:
            self.view.say(str(error), warning=True)
            return
        mode = "frozen" if plan.options.frozen else "live"
        start = partial(SideRun, self._run.thread, self._engine.faults(plan))
        self._push(Matrix(writers=self.session.store.writers), f"faults in {mode} tools", start)

    async def show_stored(self, run: "ListedRun") -> bool:
        """Show the table of a stored run. Return False if the run is not a matrix or cannot be read."""
        from workbench.ui.session import run_labels

        matrix = await asyncio.to_thread(_stored, run, self.session.state_dir)
        if matrix is None:
            return False
        when = run_labels.exact_time(run.started, datetime.now().astimezone())
        self._push(matrix, f"stored tool faults of {when}")
        return True

    def _push(
        self, matrix: "Matrix", title: str, start: "Callable[[Callable[[], None]], SideRun] | None" = None
    ) -> None:
        from workbench.ui.faults.screen import FaultScreen

        session, go = self.session, self._files.go_to_stored
        self.view.push(
            FaultScreen(
                matrix, title, session.state_dir, self.view.keys, self._host, prices=session.prices, go=go, start=start
            )
        )


def _stored(run: "ListedRun", state: "Path") -> "Matrix | None":
    """Return the matrix of a stored run, or None if the run is not a matrix or cannot be read. Reads files."""
    from workbench.files.run_options import UsageFaultError
    from workbench.store.history.reading import open_summary
    from workbench.ui.faults.grid import stored_matrix

    try:
        summary, _ = open_summary(run.name, state, state)
    except UsageFaultError:
        return None  # The screen of ordinary runs says why.
    return stored_matrix(summary) if summary.is_matrix else None


def _offered(outlook: "Outlook", calls: int, tokens: int) -> "Offer":
    """Return the texts of the dialog for these executions, with the expected model calls and tokens."""
    from workbench.run.fault_outcome import WAYS
    from workbench.ui.faults.screen import Offer

    known = sum(1 for executions in outlook.executions.values() if executions)
    heading = f"{counted(outlook.total, 'execution')}: {counted(len(outlook.tools), 'tool')} × {len(WAYS)} ways to fail"
    heading += f", in {counted(known, 'case')}" if outlook.total else ""
    if not outlook.total:
        heading = f"{len(WAYS)} executions for each tool of {counted(len(outlook.unknown), 'case')}"
    spent = f"about {counted(calls, 'model call')}" + (f", {counted(tokens, 'token')}" if tokens else "")
    usage = f", {spent}" if calls else ""
    live = [f"live: agents call their models and tools{usage}"]
    frozen = []
    if outlook.recorded:
        total = known + len(outlook.unknown)
        share = "" if outlook.recorded >= total else f" of {outlook.recorded} of {total} cases"
        frozen = [f"frozen: tool calls are replayed from the recordings{share}, models are called{usage}"]
    return Offer(heading, live, frozen, [*_notes(outlook)])


def _notes(outlook: "Outlook") -> "Sequence[str]":
    notes = []
    if outlook.tools:
        notes.append(f"tools: {few([one_line(tool, limit=40) for tool in outlook.tools], 5)}")
    asked = [
        f"{one_line(name, limit=40)} at most {counted(calls, 'time')}"
        for name, calls in outlook.judges.items()
        if calls
    ]
    if asked:
        notes.append(f"judges: {', '.join(asked)}")
    if outlook.unknown:
        one = "case runs once without faults first, to see which tools it calls"
        several = "cases run once without faults first, to see which tools they call"
        what = one if len(outlook.unknown) == 1 else several
        notes.append(f"{len(outlook.unknown):,} {what}. That is an ordinary run.")
    without = sum(not executions for executions in outlook.executions.values())
    if without:
        notes.append(f"{counted(without, 'case')} without a tool call {'is' if without == 1 else 'are'} left out")
    if outlook.blocked:
        notes.append(f"{counted(outlook.blocked, 'case')} cannot start")
    return [*notes, "Executions with faults do not count as verdicts. History keeps them."]

"""A run, or a scoring again, from its first event to the exit code: progress, signals, outputs."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TextIO, TypeAlias

from workbench.agents.targets import find_root
from workbench.cli.exit_codes import INTERRUPTED, UNDECIDED, exit_code
from workbench.cli.interruption import Interruption, Stoppable
from workbench.cli.outputs import Wanted, is_terminal, write_outputs, write_refusal_file
from workbench.cli.plain_progress import PlainProgress, Progress
from workbench.cli.refusal import Refused
from workbench.cli.streams import write_line
from workbench.config import Limits, Settings, read_settings
from workbench.engine.plan.options import UsageFaultError
from workbench.engine.plan.plan import new_run_id
from workbench.engine.processes.children import Children
from workbench.engine.run.recorder import Publish
from workbench.events import Noticed, RunFinished, RunStarted
from workbench.history.journal import Journal
from workbench.history.retention import tidy
from workbench.history.state_dir import judge_cache_dir
from workbench.kept_records import keep_details
from workbench.prices import Prices
from workbench.rendering.plain_lines import notice_line
from workbench.store import Store
from workbench.text import plain


class Followed(Stoppable, Protocol):
    """What is followed: `workbench.engine.run.run.Run` or `workbench.engine.run.rescoring.Rescoring`."""

    async def execute(self) -> None: ...


Make: TypeAlias = Callable[[Publish, Children, Journal, Path | None], Followed]
"""Makes it, of where events go, the children, the journal, and the folder where judges' answers are kept."""


async def follow(wanted: Wanted, state: Path, run_id: str, make: Make, journal: Journal | None = None) -> int:
    """Executes what `make` gives, keeps it in the state folder `state`, writes what is `wanted`; the exit code.
    `journal`: that of a run that is resumed."""
    store = Store()
    settings = _settings()
    prices = settings.prices
    journal = journal or Journal.open(state, run_id)
    keep_details(store.kept, journal)
    cache = None if journal.path is None else judge_cache_dir(state)
    results = sys.stderr if wanted.json == "-" else sys.stdout
    progress = _progress(wanted, store, results)
    async with Children(keep_warm=False) as children:
        run = make(store.apply, children, journal, cache)
        with Interruption(run, progress.message) as interruption:
            # While signals are still caught, so that a Ctrl-C in the last moment does not cost the report; and also
            # if a fault of ours ended the run.
            try:
                with progress:
                    await _execute(run, progress)
            finally:
                written = write_outputs(wanted, store, results, prices)
            if journal.path is not None:
                await tidy_runs(state, settings.history)
    if interruption.count:
        return INTERRUPTED
    return exit_code(store) if written else UNDECIDED


def nothing_ran(wanted: Wanted, fault: UsageFaultError) -> int:
    """The exit code if what was named holds no cases: nothing is wrong with the command, but nothing is shown to be
    right either. Any other fault is raised again, and told where a report was wanted."""
    if fault.kind != "nothing":
        write_refusal_file(wanted, Refused.from_fault(fault))
        raise fault
    write_line(sys.stderr, plain(f"Nothing ran: {fault}"))
    if fault.hint:
        write_line(sys.stderr, plain(fault.hint))
    store = Store()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    store.apply(RunStarted(new_run_id(), str(find_root(Path.cwd())), now, ()))
    store.apply(RunFinished(0.0))
    write_outputs(wanted, store, sys.stderr if wanted.json == "-" else sys.stdout, Prices())
    return exit_code(store)


def read_prices() -> Prices:
    """The user's price table; what is wrong in the settings is said."""
    return _settings().prices


def _settings() -> Settings:
    settings = read_settings()
    for fault in settings.faults:
        write_line(sys.stderr, notice_line(Noticed("warning", fault)))
    return settings


async def tidy_runs(state: Path, limits: Limits) -> None:
    """Takes away the oldest runs that are too many. What cannot be deleted stays, and is tried after the next run."""
    with contextlib.suppress(OSError):
        await asyncio.to_thread(tidy, state, limits)


async def _execute(run: Followed, progress: Progress) -> None:
    fresh = asyncio.create_task(progress.keep_fresh())
    try:
        await run.execute()
    finally:
        fresh.cancel()
        await asyncio.gather(fresh, return_exceptions=True)


def _progress(wanted: Wanted, store: Store, results: TextIO) -> Progress:
    if not is_terminal(wanted, results):
        return PlainProgress(store, results, sys.stderr)
    from workbench.cli.live_progress import LiveProgress

    return LiveProgress(store, results, sys.stderr)

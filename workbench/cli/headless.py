"""A run without a screen: from what the command line asks for to the exit code."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from workbench.agents.owners import OwnersFileError, read_owners
from workbench.agents.targets import find_root
from workbench.cli.exit_codes import INTERRUPTED, UNDECIDED, exit_code
from workbench.cli.interruption import Interruption
from workbench.cli.outputs import is_terminal, write_outputs, write_refusal_file
from workbench.cli.plain_progress import PlainProgress, Progress
from workbench.cli.refusal import Refused
from workbench.cli.run_command import RunRequest
from workbench.cli.streams import write_line
from workbench.engine.children import Children
from workbench.engine.options import UsageFaultError
from workbench.engine.plan import Plan, make_plan, new_run_id
from workbench.engine.run import Run
from workbench.engine.selection import open_selection, parse_words
from workbench.events import RunFinished, RunStarted
from workbench.history.journal import Journal
from workbench.history.state_dir import judge_cache_dir, state_dir
from workbench.model.evalset import BrokenFileError, read_initial_session
from workbench.store import Store
from workbench.text import plain


def run(request: RunRequest) -> int:
    """Runs what is asked for, and gives the exit code of the run.

    Raises:
        UsageFaultError: the request cannot be carried out; nothing ran.
    """
    try:
        plan = _plan(request)
    except UsageFaultError as fault:
        if fault.kind == "nothing":
            return _nothing_to_run(request, fault)
        write_refusal_file(request, Refused.from_fault(fault))
        raise
    return asyncio.run(_execute(request, plan))


def _plan(request: RunRequest) -> Plan:
    folder = Path.cwd()
    selection = parse_words(request.words, folder=folder, agent=request.agent, case_ids=request.cases)
    session = _initial_session(request.initial_session_file)
    workspace = open_selection(
        selection,
        folder=folder,
        config=request.config,
        kept_owners=_kept_owners(request.state_dir),
        initial_session=session,
    )
    return make_plan(workspace, selection, request.options)


def _kept_owners(state: Path | None) -> dict[str, str] | None:
    """Which evalset belongs to which agent by what the user answered on the screen; None: as kept in the root."""
    if state is None:
        return None
    try:
        return read_owners(state)
    except OwnersFileError as error:
        raise UsageFaultError(str(error)) from None


def _initial_session(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        return read_initial_session(file)
    except BrokenFileError as error:
        raise UsageFaultError(str(error), kind="broken_file") from None


async def _execute(request: RunRequest, plan: Plan) -> int:
    store = Store()
    state = state_dir(plan.root, request.state_dir)
    journal = Journal.open(state, plan.run_id)
    cache = None if journal.path is None else judge_cache_dir(state)
    results = sys.stderr if request.json == "-" else sys.stdout
    progress = _progress(request, store, results)
    async with Children(keep_warm=False) as children:
        run = Run(plan, request.options, store.apply, children, journal, cache)
        with Interruption(run, progress.message) as interruption:
            # While signals are still caught, so that a Ctrl-C in the last moment does not cost the report; and also
            # if a fault of ours ended the run.
            try:
                with progress:
                    await _follow(run, progress)
            finally:
                written = write_outputs(request, store, results)
    if interruption.count:
        return INTERRUPTED
    return exit_code(store) if written else UNDECIDED


async def _follow(run: Run, progress: Progress) -> None:
    fresh = asyncio.create_task(progress.keep_fresh())
    try:
        await run.execute()
    finally:
        fresh.cancel()
        await asyncio.gather(fresh, return_exceptions=True)


def _progress(request: RunRequest, store: Store, results: TextIO) -> Progress:
    if not is_terminal(request, results):
        return PlainProgress(store, results, sys.stderr)
    from workbench.cli.live_progress import LiveProgress

    return LiveProgress(store, results, sys.stderr)


def _nothing_to_run(request: RunRequest, fault: UsageFaultError) -> int:
    """What was named holds no cases: nothing is wrong with the command, but nothing is shown to be right either."""
    write_line(sys.stderr, plain(f"Nothing ran: {fault}"))
    if fault.hint:
        write_line(sys.stderr, plain(fault.hint))
    store = Store()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    store.apply(RunStarted(new_run_id(), str(find_root(Path.cwd())), now, ()))
    store.apply(RunFinished(0.0))
    write_outputs(request, store, sys.stderr if request.json == "-" else sys.stdout)
    return exit_code(store)

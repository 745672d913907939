"""A run or rescoring from its first event to the exit code: progress, Ctrl-C and other signals, outputs."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from workbench.cli.exit_codes import COMMANDS, INTERRUPTED, PASSED, PROGRAM, UNDECIDED, exit_code
from workbench.cli.live_progress import (
    LiveProgress,
    MachineLines,
    PlainProgress,
    Progress,
    QuietProgress,
    machine_lines,
    print_styled,
)
from workbench.cli.running_options import Outputs
from workbench.cli.streams import has_failed, let_go_of_streams, write_file, write_line, write_pieces
from workbench.events.events import CaseRef, Noticed, RunFinished, RunStarted
from workbench.files.prices import Prices
from workbench.files.project_root import find_root
from workbench.files.run_options import MATRIX, PlaceChoice, UsageFaultError
from workbench.files.settings import Settings, read_settings
from workbench.project.project import Project, Running
from workbench.results.machines import sending_lines
from workbench.results.plain_lines import notice_line
from workbench.results.plain_summary import summary_lines
from workbench.run.dask.files import Sending
from workbench.run.plan.plan import Plan, new_run_id
from workbench.store.store import Store
from workbench.text.safe_text import plain

if TYPE_CHECKING:
    from workbench.project.fault_matrix import FaultMatrix


def ask_if_typed(place: PlaceChoice | None) -> Callable[[Sending], bool] | None:
    """Return `ask` if the user has typed `--on`, else None: a place in the settings must be confirmed already."""
    return ask if place is not None and place.word else None


def ask(sending: Sending) -> bool:
    """Show what leaves this machine, ask the user who typed `--on` to confirm, and return the answer.

    Without a terminal, the answer is True.
    """
    for line in sending_lines(sending):
        write_line(sys.stderr, line)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write("Run there? [y/N] ")
    sys.stderr.flush()
    # The handler of `asyncio.run` would only cancel the task, which goes on reading.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, before)


def run_and_report(
    outputs: Outputs,
    explicit_state: Path | None,
    make_plan: Callable[[], Plan],
    *,
    fresh: bool = True,
    ask: Callable[[Sending], bool] | None = None,
) -> int:
    """Make a plan with `make_plan`, run it, write the outputs, and return the exit code.

    `explicit_state` is the folder that `--state-dir` names. Unless `fresh`, an interrupted run of the same cases is
    resumed. `ask` asks the user about what leaves this machine. Without `ask`, that must be confirmed already.

    Raises:
        UsageFaultError: the plan cannot be made; nothing ran.
    """
    try:
        plan = make_plan()
    except UsageFaultError as fault:
        if fault.kind != "nothing":
            raise
        return _nothing_ran(outputs, fault)
    return asyncio.run(_follow(outputs, explicit_state, plan, ask, fresh=fresh))


async def _follow(
    outputs: Outputs, explicit_state: Path | None, plan: Plan, ask: Callable[[Sending], bool] | None, *, fresh: bool
) -> int:
    """Run the plan, write the outputs, and return the exit code."""
    settings = user_settings()
    store = Store()
    results = sys.stderr if outputs.json == "-" else sys.stdout
    progress = progress_of(outputs, store, results)
    first = PASSED
    async with Project(state_dir=explicit_state, settings=settings, store=store, keep_warm=False) as project:
        await project.connect(plan, ignore_line if outputs.quiet else say_line, ask)
        if plan.options.inject == MATRIX:
            matrix = await project.fault_matrix(plan)
            has_first = matrix.first is not None
            if await _was_interrupted(project, matrix, store, progress):
                write_outputs(outputs, store, results, settings.prices)
                return INTERRUPTED
            if has_first:
                first = exit_code(store)
                if store.run.cut_short_by is not None:
                    return first if write_outputs(outputs, store, results, settings.prices) else UNDECIDED
            try:
                plan, fresh = matrix.plan(), True
            except UsageFaultError as fault:
                return _nothing_ran(outputs, fault)
        run = project.run(plan if fresh else project.resumed(plan))
        await asyncio.sleep(0)  # A Ctrl-C until now ends the program here. Later, it would report a run without cases.
        with Interruption(run, progress.message) as interruption:
            # Signals are still caught here, so that a Ctrl-C in the last moment does not cost the report. The outputs
            # are also written if a bug of the workbench ended the run.
            try:
                with progress, with_machines(project, store, plan, progress):
                    await execute_run(run, progress)
            finally:
                written = write_outputs(outputs, store, results, settings.prices)
    if is_terminal(outputs, results) and not outputs.quiet:
        for line in next_steps(store, Path.cwd(), detailed=outputs.detailed, opens=explicit_state is None):
            write_line(results, line)
    if interruption.count:
        return INTERRUPTED
    # The codes are ordered by weight. The verdicts of a matrix's first, ordinary run count, too.
    return max(first, exit_code(store)) if written else UNDECIDED


async def _was_interrupted(project: Project, matrix: "FaultMatrix", store: Store, progress: Progress) -> bool:
    """Run the cases of a fault matrix that call unknown tools, once. Return whether the user interrupted this run."""
    if matrix.first is None:
        return False
    run = project.run(matrix.first)
    followed = with_machines(project, store, matrix.first, progress)
    with Interruption(run, progress.message) as interruption, progress, followed:
        progress.message(matrix.first_message)
        await execute_run(run, progress)
    matrix.add(store.read_current())
    return bool(interruption.count)


def _nothing_ran(outputs: Outputs, fault: UsageFaultError) -> int:
    """Print why nothing ran, write empty reports, and return the exit code, which is not that of a success."""
    write_line(sys.stderr, plain(f"Nothing ran: {fault}"))
    if fault.hint:
        write_line(sys.stderr, plain(fault.hint))
    store = Store()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    store.apply(RunStarted(new_run_id(), str(find_root(Path.cwd())), now, ()))
    store.apply(RunFinished(0.0))
    write_outputs(outputs, store, sys.stderr if outputs.json == "-" else sys.stdout, Prices())
    return exit_code(store)


def user_settings() -> Settings:
    """Return the user's settings. Faults in them go to standard error."""
    settings = read_settings()
    for fault in settings.faults:
        write_line(sys.stderr, notice_line(Noticed("warning", fault)))
    return settings


def say_line(line: str) -> None:
    """Write a raw text to standard error, as a safe line."""
    write_line(sys.stderr, plain(line))


def ignore_line(line: str) -> None:
    """Write nothing."""


@contextlib.contextmanager
def with_machines(project: Project, store: Store, plan: Plan, progress: Progress) -> Iterator[None]:
    """Report on the machines of a run's place while entered, unless it is this machine or `progress` is quiet.

    `store` takes the events of the run.
    """
    quiet = isinstance(progress, QuietProgress)
    follow = None if quiet else machine_lines(project, plan.options, progress.message)
    if follow is None:
        yield
        return
    unsubscribe = store.subscribe(follow.apply)
    progress.show_machines(lambda: project.machines(plan.options))
    beating = asyncio.create_task(_beat(follow))
    try:
        yield
    finally:
        beating.cancel()
        unsubscribe()


async def _beat(lines: MachineLines) -> None:
    while True:
        await asyncio.sleep(1)
        lines.beat()


async def execute_run(run: Running, progress: Progress) -> None:
    """Execute a run to its end, and redraw the progress display meanwhile."""
    fresh = asyncio.create_task(progress.keep_fresh())
    try:
        await run.execute()
    finally:
        fresh.cancel()
        await asyncio.gather(fresh, return_exceptions=True)


def progress_of(outputs: Outputs, store: Store, results: TextIO, *, names_cases: bool = True) -> Progress:
    """Return the progress display for these outputs. `names_cases` is passed to `LiveProgress`."""
    if outputs.quiet:
        return QuietProgress(store, results, sys.stderr)
    if not is_terminal(outputs, results):
        return PlainProgress(store, results, sys.stderr)
    return LiveProgress(store, results, sys.stderr, names_cases=names_cases)


def write_outputs(outputs: Outputs, store: Store, results: TextIO, prices: Prices) -> bool:
    """Write all outputs, files first. Return False if one could not be written; standard error has the reason."""
    done = True
    if outputs.json is not None and outputs.json != "-":
        done = write_file("--json", Path(outputs.json), lambda: exported("json", store, prices))
    if outputs.junit is not None:
        done = write_file("--junit", outputs.junit, lambda: exported("junit", store, prices)) and done
    if outputs.detailed:
        write_details(store, results)
    if is_terminal(outputs, results):
        print_styled(results, summary_lines(store, prices, detailed=outputs.detailed, listed=not outputs.quiet))
    else:
        for line in summary_lines(store, prices, detailed=outputs.detailed):
            write_line(results, str(line))
    if outputs.json == "-":
        write_pieces(sys.stdout, (piece.decode("ascii") for piece in exported("json", store, prices)))
    if lost := next((record.read_error for record in store.current_records() if record.read_error), ""):
        write_line(sys.stderr, f"error: the outputs lack details of cases: {lost}")
        done = False
    return done and not has_failed()


def next_steps(store: Store, folder: Path, *, detailed: bool, opens: bool) -> Iterator[str]:
    """Yield lines with commands that a user in `folder` may run next, or nothing if all cases passed.

    `opens` says whether the screen would find the run without `--state-dir`.
    """
    records = [record for record in store.current_records() if record.state != "passed"]
    if not records:
        return
    steps = []
    if store.run.interrupted and not store.run.scored_from and store.run.cut_short_by is None:
        steps.append(("the same command", "continues this run"))
    if opens:
        path = os.path.commonpath([Path(store.run.root) / record.ref.evalset_file for record in records])
        near = os.path.relpath(path, folder)
        word = path if near.startswith("..") else f"./{near}" if near in COMMANDS else near
        steps.append((f"{PROGRAM} {plain(shlex.quote(word))}", "n goes to the next problem"))
    if not detailed:
        steps.append(("--print-detailed-results", "prints each conversation"))
    width = max((len(step) for step, _ in steps), default=0)
    for number, (step, why) in enumerate(steps):
        yield f"{'' if number else 'Next:':5} {step:{width}}  {why}"


def is_terminal(outputs: Outputs, stream: TextIO) -> bool:
    """Return whether output to `stream` may be redrawn, wrapped and coloured."""
    return not outputs.plain and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def exported(name: str, store: Store, prices: Prices) -> Iterable[bytes]:
    """Return the run in the format of the built-in exporter `name`, which must write a single file."""
    from workbench.exporting.exporter import EXPORTERS, ExportedRun

    (content,) = EXPORTERS.load(name).files(ExportedRun(store, prices=prices)).values()
    return content


def write_details(store: Store, results: TextIO) -> None:
    """Write each conversation with its verdicts."""
    from workbench.results.panes import plain_case

    for record in store.read_current():
        write_line(results, "\n".join(["", *plain_case(record, width_of(results))]))


def width_of(stream: TextIO) -> int:
    """Return the width of the terminal behind `stream`, or 100 if it is not a terminal."""
    return shutil.get_terminal_size((100, 24)).columns if stream.isatty() else 100


_BLOCKED = 2.0
"""Seconds without an iteration after which the event loop counts as blocked by a write."""


class Stoppable(Protocol):
    """A run that can be ended early."""

    def stop(self) -> None:
        """Start no more cases. Running cases continue."""

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        """Cancel one case, or all of them if `ref` is None. `kill` ends them at once."""


class Interruption:
    """A context in which signals end `run` step by step instead of ending the program.

    After one Ctrl-C no new cases start, and running cases finish or reach their timeout. After two they are killed.
    SIGTERM and SIGHUP (the terminal is gone) leave less time: running cases are cancelled, and killed the second time.
    The run always comes to its end, so that finished scores are reported. `say` gets a sentence about each step.

    The handlers are Python's, not the event loop's, because the loop is blocked while it writes to a terminal that no
    longer reads. Output to such a terminal is dropped; at the second signal, output to a pipe as well.
    """

    def __init__(self, run: Stoppable, say: Callable[[str], None]) -> None:
        self._run = run
        self._say = say
        self._before: dict[signal.Signals, Any] = {}
        self._came = 0
        self._over = False
        self._turn: asyncio.TimerHandle | None = None
        self.count = 0
        """Number of signals so far."""

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` asks to ignore a hang-up. Shells also ignore SIGINT in background jobs of scripts, but nobody
            # chose that there: whoever sends SIGINT means it.
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._handle)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._let_go)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._turn is not None:
            self._turn.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, _frame: object) -> None:
        self._came += 1
        if number != signal.SIGINT or self._came > 1:
            signal.setitimer(signal.ITIMER_REAL, _BLOCKED, _BLOCKED)
            self._loop.call_soon_threadsafe(self._take_turn)
        self._loop.call_soon_threadsafe(self._on_signal, signal.Signals(number))

    def _take_turn(self) -> None:
        """Postpone `_let_go` as long as the event loop works."""
        if self._over:
            return
        if self._turn is not None:
            self._turn.cancel()
        signal.setitimer(signal.ITIMER_REAL, _BLOCKED, _BLOCKED)
        self._turn = self._loop.call_later(_BLOCKED / 4, self._take_turn)

    def _let_go(self, _number: int, _frame: object) -> None:
        """Unblock the event loop by silencing the stream that it waits for."""
        let_go_of_streams(pipes=self._came > 1)

    def _on_signal(self, number: signal.Signals) -> None:
        self.count += 1
        self._run.stop()
        if self.count > 1:
            self._run.cancel(None, kill=True)
            self._say("Killed all running cases.")
        elif number == signal.SIGINT:
            self._say("No new cases start; running cases may finish. Ctrl-C again kills them.")
        else:
            self._run.cancel(None)
            self._say(f"{number.name}: no new cases start; cancelling running cases.")

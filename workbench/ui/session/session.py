"""The state of the screen without widgets: the folder, the verdicts, and the options of the next runs."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.events.events import CaseFinished, CaseRef, Event, JudgeWaits, MetricScored, RunStarted, UserSimulated
from workbench.files.file_access import Signature, changed_since, signature_of
from workbench.files.prices import Prices, criterion_cost, handling_cost, money, simulation_cost, total
from workbench.results.changed_verdicts import ChangedVerdicts
from workbench.results.judged import count, is_function
from workbench.store.execution import Execution
from workbench.store.rates import RemainingTime
from workbench.store.store import Store
from workbench.text.counting import counted
from workbench.text.json_values import mapping
from workbench.text.safe_text import one_line
from workbench.ui.session.findings import Findings
from workbench.ui.session.next_run import Draft, PlaceOptions, RecordingOptions
from workbench.ui.tree.outline import Row
from workbench.ui.tree.verdicts import Verdicts

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, OnEvalset, Workspace
    from workbench.editing.saving import Saver
    from workbench.events.events import CaseName
    from workbench.files.evalset import EvalCase
    from workbench.freshness.follow import Follower
    from workbench.freshness.staleness import Changes
    from workbench.project.targets import Shell, ShellCommand
    from workbench.project.watching import Watching
    from workbench.run.dask.files import MachineState
    from workbench.store.history.run_names import Age
    from workbench.ui.session.recall import Recalled


class JudgeCount:
    """The numbers of calls of judges and simulated users in the run so far. With `prices`, the text has their cost."""

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices or Prices()
        self._costs: list[float | None] = []
        self.calls = 0
        self.cached = 0
        self.by_function = False
        """Whether a Python function replaced a judge."""
        self.simulated = 0
        self.simulated_cached = 0
        self._cases: dict[CaseRef, tuple[int, int]] = {}
        self._of_user: dict[CaseRef, tuple[int, int]] = {}
        """Calls and cached calls of each case's simulated user. The usage of a finished case includes them."""
        self._rescoring = False

    def apply(self, event: Event) -> None:
        """Count the calls of an event. The usage of a finished case replaces the counts of its criteria."""
        match event:
            case RunStarted():
                self.clear()
                self._rescoring = bool(event.scored_from)
            case MetricScored():
                self.by_function = self.by_function or is_function(event.result)
                tally = mapping(event.result.details.get("tally"))
                if tally.get("kept"):  # An earlier run has paid for it.
                    return
                calls, cached = self._cases.get(event.case, (0, 0))
                self._set(event.case, calls + count(tally.get("calls")), cached + count(tally.get("cached")))
                if count(tally.get("calls")):
                    self._costs.append(criterion_cost(event.result, self._prices))
            case UserSimulated() if not self._rescoring:  # Scoring again asks no simulated user.
                self._costs.append(simulation_cost([event], self._prices))
                self._count_user(event)
            case CaseFinished():
                calls, cached = self._of_user.pop(event.case, (0, 0))
                usage = event.usage
                if event.handling is not None:
                    self._costs.append(handling_cost(event.handling, self._prices))
                self._set(event.case, max(0, usage.judge_calls - calls), max(0, usage.judge_calls_cached - cached))

    def clear(self) -> None:
        """Reset all counts, because another run is shown."""
        self.calls = self.cached = 0
        self.simulated = self.simulated_cached = 0
        self.by_function = False
        self._cases.clear()
        self._of_user.clear()
        self._costs.clear()

    def _count_user(self, event: UserSimulated) -> None:
        """Count the calls for a simulated user's message."""
        # Imported here, because the first frame does not need it.
        from workbench.judges.base import question_usage

        usage = question_usage(event.question)
        if not (usage.judge_calls or usage.judge_calls_cached):
            return
        calls, cached = self._of_user.get(event.case, (0, 0))
        self._of_user[event.case] = calls + usage.judge_calls, cached + usage.judge_calls_cached
        self.simulated += usage.judge_calls
        self.simulated_cached += usage.judge_calls_cached

    def _set(self, case: CaseRef, calls: int, cached: int) -> None:
        before = self._cases.get(case, (0, 0))
        self._cases[case] = (calls, cached)
        self.calls += calls - before[0]
        self.cached += cached - before[1]

    @property
    def text(self) -> str:
        """Text such as `12 judge calls, 3 cached, 6 simulator calls, 0.0054 EUR`, or "" without calls.

        The cost is left out if it is not known.
        """
        judges = _calls(self.calls, self.cached, "judge call")
        text = ", ".join(filter(None, [judges, _calls(self.simulated, self.simulated_cached, "simulator call")]))
        if not text:
            return ""
        cost = total(self._costs) if self._prices else None
        return text if cost is None else f"{text}, {money(cost, self._prices.currency)}"


def _calls(calls: int, cached: int, noun: str) -> str:
    return counted(calls, noun) + (f", {cached:,} cached" if cached else "") if calls or cached else ""


def wait_text(waits: Iterable[JudgeWaits], elapsed: float) -> tuple[str, str]:
    """Return the longest wait of a judge as a long and a short text, or two "" if none waits.

    Examples are `gemini-2.5-flash waits 12 s: quota` and `waits 12 s`. `elapsed` is the time since the run
    started, in seconds.
    """
    left = sorted(((wait.at + wait.seconds - elapsed, wait) for wait in waits), key=lambda pair: -pair[0])
    if not left or left[0][0] <= 0:
        return "", ""
    seconds, wait = left[0]
    more = sum(rest > 0 for rest, _ in left) - 1
    name = one_line(wait.model, limit=60) or "a judge"
    reason = one_line(wait.reason, limit=60)
    short = f"waits {math.ceil(seconds)} s"
    return f"{name} {short}{f': {reason}' if reason else ''}{f', {more} more' if more else ''}", short


class Session:
    """The state of the screen, without widgets.

    A `state_dir` of None means `.workbench` in the root. `prices` come from the user's settings. With `checks`, the
    folder is checked after each read.
    """

    def __init__(
        self, path: Path, *, state_dir: Path | None = None, prices: Prices | None = None, checks: bool = False
    ) -> None:
        # `.` would follow the folder if it is moved, but a moved folder counts as gone.
        self.path = path.absolute()
        self.store = Store()
        self.verdicts = Verdicts(self.store)
        self.judges = JudgeCount(prices)
        self._clock = time.monotonic
        self.remaining = RemainingTime(lambda: self._clock())
        self.starting = ""
        """The current step of a requested run before it begins, as text."""
        self.cancelling: set[CaseRef] = set()
        """Executions of the active run that were cancelled once. Cancelling them again kills them."""
        self.draft = Draft()
        self.recordings = RecordingOptions()
        self.places = PlaceOptions()
        self.machines: Sequence[MachineState] = ()
        """The latest reported states of the current run's other machines."""
        self.workspace: Workspace | None = None
        self.reading = False
        """Whether the folder is being read. Meanwhile, `workspace` has only the evalsets read so far."""
        self.read_error = ""
        """The error of the last read of the folder as raw text, or "" if it succeeded."""
        self.declined: set[str] = set()
        """Relative paths of evalsets for which the user declined to choose an agent. The user is not asked again."""
        self.extra_evalsets: set[Path] = set()
        """Evalsets with unusual names that the user opened, as absolute paths."""
        self.prices = prices
        self.changed = ChangedVerdicts(self.store)
        self.last_command: Callable[[Shell], ShellCommand] | None = None
        """Returns the command line that repeats the last run, scoring or comparison."""
        self.watching: Watching | None = None
        """The watch, while it is on."""
        self.follower: Follower | None = None
        """Detects changes of files by other programs, once verdicts are shown."""
        self.last_watch_effect = ""
        """Effect of the last save: `run`, `score` or `decide`, or "" before the first one."""
        self.restored_run = ""
        """ID of the newest run if it was loaded from disk, else ""."""
        self.stale: dict[CaseName, Changes] = {}
        """Cases with a stale verdict, each with the changed inputs."""
        self.loading: Literal["", "results", "changes"] = ""
        """Data being loaded from earlier sessions: `results` are verdicts, `changes` tell which of them are stale."""
        self.elsewhere: tuple[int, int] | None = None
        """Numbers of finished and of all cases of a run in another program, or None."""
        self.given_state_dir = state_dir
        self._began = 0.0
        self._files: tuple[Path, ...] = ()
        self._signature: Signature = ()
        self._reading_began = math.inf
        """When the reading of the next workspace began, or infinity if nobody said so."""
        self.checks = checks
        self.findings = Findings()
        """Problems that `check` found in the workspace. Empty before the check."""
        self._saver: Saver | None = None
        self.store.subscribe(self.verdicts.apply)
        self.store.subscribe(self.judges.apply)
        self.store.subscribe(self.remaining.apply)
        self.store.subscribe(self._keep_time)

    def read(self, arrived: "OnEvalset | None" = None) -> "Workspace":
        """Read the folder and return its workspace. Call this in a thread.

        The session keeps its workspace until `set_workspace`. `arrived` is called after each evalset.

        Raises:
            OSError, ValueError: The path does not exist or cannot be read.
        """
        from workbench.agents.workspace import open_workspace
        from workbench.files.folders import state_dir
        from workbench.store.owners import read_owners

        owners = None if self.given_state_dir is None else read_owners(state_dir(self.path, self.given_state_dir))
        named = [path for path in sorted(self.extra_evalsets) if path.is_file()]
        return open_workspace(self.path, *named, stored_owners=owners, previous=self.workspace, on_evalset=arrived)

    def set_workspace(self, workspace: "Workspace") -> None:
        """Replace the workspace. Its problems are not known until it is checked."""
        # Imported here and below, because the first frame has no workspace.
        from workbench.freshness.staleness import workspace_files

        self.workspace = workspace
        self.findings = Findings()
        self.read_error = ""
        self._files = workspace_files(workspace)
        signature = signature_of(self._files)
        # A file that was saved since the reading began may have been read before.
        self._signature = tuple(
            None if changed_since(file, self._reading_began) else one
            for file, one in zip(self._files, signature, strict=True)
        )
        if not self.reading:  # Until then, workspaces are partial.
            self._reading_began = math.inf

    def begin_reading(self) -> None:
        """Note that the files of the next workspace are read from now on."""
        self._reading_began = time.time()

    def outdated(self) -> bool:
        """Return whether a file of the workspace has changed since it was read, or False before it was read."""
        return self.workspace is not None and signature_of(self._files) != self._signature

    @property
    def opened(self) -> "Workspace":
        """The workspace. Use this only after the folder was read."""
        assert self.workspace is not None
        return self.workspace

    @property
    def state_dir(self) -> Path:
        """The folder for runs and saved choices."""
        from workbench.files.folders import state_dir

        return state_dir(self.opened.root, self.given_state_dir)

    @property
    def saver(self) -> "Saver":
        """The saver, created on first use, which writes and undoes all edits of this session."""
        from workbench.editing.saving import Saver

        if self._saver is None:
            self._saver = Saver(self.state_dir, self.opened.root)
        return self._saver

    @property
    def target_name(self) -> str:
        """The name of the open folder or file, safe to show."""
        path = self.workspace.target if self.workspace else self.path.absolute()
        return one_line(path.name or str(path), limit=80)

    def below_root(self, path: object) -> str:
        """Return a path as safe text, relative to the root if possible."""
        root = str(self.workspace.root) if self.workspace else ""
        return one_line(str(path).removeprefix(root + "/"))

    def entry(self, evalset: int) -> "EvalsetEntry":
        """Return an evalset of the workspace."""
        return self.opened.evalsets[evalset]

    def case(self, evalset: int, case: int) -> "EvalCase | None":
        """Return a full case, or None if ADK would reject it."""
        from workbench.files.evalset import BrokenCaseError

        document = self.entry(evalset).document
        try:
            return document.case(case)
        except BrokenCaseError:
            return None

    def record(self, row: Row) -> Execution | None:
        """Return the record of a row's case or repeat, or None if it never ran."""
        return self.verdicts.record(row.evalset, row.case, row.repeat)

    def unfinished(self, pairs: Iterable[tuple[int, int]]) -> list[CaseRef]:
        """Return the unfinished executions of these cases."""
        records = (record for pair in pairs for record in self.verdicts.records(*pair))
        return [record.ref for record in records if not record.finished]

    @property
    def is_cancelled(self) -> bool:
        """Whether all unfinished executions of the active run were cancelled."""
        # Repeats may have been dropped, because the others made the pass rate sure.
        records = (self.store.records.get(ref) for ref in self.cancelling)
        left = sum(record is not None and not record.finished for record in records)
        return 0 < self.store.activity.unfinished <= left

    def save_owner(self, entry: "EvalsetEntry", agent: "AgentFolder") -> None:
        """Save the choice of an evalset's agent. It takes effect when the folder is read again.

        Raises:
            OSError, ValueError: The choice cannot be saved.
        """
        from workbench.store.owners import save_owner

        save_owner(self.state_dir, entry.relative, agent.folder, self.opened.root)

    def recall(self, recalled: "Recalled") -> None:
        """Add verdicts of an earlier session, except where newer ones are known."""
        if not self.store.current:
            self.restored_run = recalled.run.run_id
        self.store.restore(recalled.run, list(recalled.records), recalled.records)
        self.verdicts.add(recalled.records)

    def adopt(self, recalled: "Recalled", *, ended: bool, continues: bool) -> None:
        """Show verdicts of a run in another program, except where newer ones are known.

        If the run has `ended`, it can become the newest run. `continues`: some of its verdicts are shown already.
        """
        from workbench.store.history.run_names import ages

        age, known = ages(), self.store.records
        made: dict[CaseName, Age] = {}
        for ref, record in recalled.records.items():
            mine = age(record.run_id, record.resumed)
            made[ref.name] = max(mine, made.get(ref.name, mine))
        # All repeats of a case belong to one run, so none is added to a newer verdict with fewer repeats.
        newer = {
            ref.name
            for ref in recalled.records
            if ref in known and age(known[ref].run_id, known[ref].resumed) >= made[ref.name]
        }
        records = {ref: record for ref, record in recalled.records.items() if ref.name not in newer}
        self.changed.before_run(recalled.latest.summary.executions, records.values(), continues=continues)
        is_newest = ended and (not self.store.run.run_id or age(self.store.run.run_id, "") <= max(made.values()))
        if is_newest:
            self.restored_run = recalled.run.run_id
            self.judges.clear()
        shown = {ref for ref in recalled.records if ref in known and known[ref].run_id == recalled.run.run_id}
        current = [ref for ref in recalled.records if ref in records or ref in shown]
        self.store.adopt(records, recalled.run if is_newest else None, current)
        self.verdicts.add(records, replace=True)

    @property
    def is_loading(self) -> bool:
        """Whether files or verdicts are still being read."""
        return self.reading or self.loading == "results"

    def why_nothing_found(self, otherwise: str) -> str:
        """Return why there is no case to go to. If there are results but none matches, return `otherwise`."""
        if self.reading or (self.workspace is None and not self.read_error):
            return "still reading the folder"
        if self.loading == "results":
            return "results are still loading"
        return otherwise if self.store.current else "nothing has run yet"

    def elapsed(self) -> float:
        """Return the seconds since the run began, or its duration if it has ended."""
        return self._clock() - self._began if self.store.activity.running else self.store.run.duration_seconds

    def waiting(self) -> tuple[str, str]:
        """Return the longest wait of a judge, as `wait_text` does."""
        return wait_text(self.store.activity.waits, self.elapsed())

    def _keep_time(self, event: object) -> None:
        if isinstance(event, RunStarted):
            self._began = self._clock()

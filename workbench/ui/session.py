"""What the screen works on: the folder as it was read, what is true now, and the criteria of the run to come."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.events import RunStarted
from workbench.prices import Prices
from workbench.project.input_files import Signature, signature_of, workspace_files
from workbench.rendering.changed import ChangedVerdicts
from workbench.store import CaseRecord, Store
from workbench.text import one_line
from workbench.ui.checking import Findings
from workbench.ui.draft import Draft
from workbench.ui.judge_count import JudgeCount, waiting_words
from workbench.ui.tree.outline import Row
from workbench.ui.tree.verdicts import Verdicts

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, OnEvalset, Workspace
    from workbench.authoring.saving import Saver
    from workbench.events import CaseName
    from workbench.model.evalset import EvalCase
    from workbench.project.staleness import Changes
    from workbench.project.watching import Watching
    from workbench.ui.history.recall import Recalled


class Session:
    """Everything but widgets. `state_dir` None: `.workbench` in the root. `prices`
    are those of the user's settings. `checks`: what is read is checked, beside everything else."""

    def __init__(
        self,
        path: Path,
        *,
        state_dir: Path | None = None,
        prices: Prices | None = None,
        checks: bool = False,
    ) -> None:
        # A folder that is moved is gone: `.` would follow it to its new name.
        self.path = path.absolute()
        self.store = Store()
        self.verdicts = Verdicts(self.store)
        self.judges = JudgeCount(prices)
        self._clock = time.monotonic
        self.draft = Draft()
        self.workspace: Workspace | None = None
        self.reading = False
        """Whether `workspace` is what was read so far."""
        self.trouble = ""
        """Why the folder could not be read the last time, raw; "" if it could."""
        self.declined: set[str] = set()
        """Evalsets (relative) for which the user would not name an agent: not asked again."""
        self.opened_besides: set[Path] = set()
        """Evalsets under other names that the user opened, absolute."""
        self.prices = prices
        self.changed = ChangedVerdicts(self.store)
        self.watching: Watching | None = None
        """The watch, while it is armed."""
        self.last_watch = ""
        """How deep the last save reached: `run`, `score` or `decide`; "" before the first one."""
        self.recalled = ""
        """The id of the run of an earlier session that is shown as the newest one."""
        self.stale: dict[CaseName, Changes] = {}
        """Cases whose verdict was made with other inputs, and which of these changed."""
        self.loading: Literal["", "results", "changes"] = ""
        """What is being read of earlier sessions: the verdicts, or which of them are stale."""
        self.explicit_state = state_dir
        self._began = 0.0
        self._files: tuple[Path, ...] = ()
        self._signature: Signature = ()
        self.checks = checks
        self.findings = Findings()
        """What `check` found in the workspace; nothing as long as it has not looked."""
        self._saver: Saver | None = None
        self.store.subscribe(self.verdicts.apply)
        self.store.subscribe(self.judges.apply)
        self.store.subscribe(self._keep_time)

    # The folder

    def read(self, arrived: "OnEvalset | None" = None) -> "Workspace":
        """Read the folder; for a thread. Changes nothing here. `arrived` is called after each evalset.

        Raises:
            OSError, ValueError: the path is not there, or the kept answers cannot be read.
        """
        from workbench.agents.owners import read_owners
        from workbench.agents.workspace import open_workspace

        kept = None if self.explicit_state is None else read_owners(self.explicit_state)
        named = [path for path in sorted(self.opened_besides) if path.is_file()]
        return open_workspace(self.path, *named, stored_owners=kept, previous=self.workspace, on_evalset=arrived)

    def take(self, workspace: "Workspace") -> None:
        """Works on this reading from now on."""
        self.workspace = workspace
        self.findings = Findings()
        self.trouble = ""
        self._files = workspace_files(workspace)
        self._signature = signature_of(self._files)

    def outdated(self) -> bool:
        """Whether a file that says what there is to run has changed since it was read."""
        return self.workspace is not None and signature_of(self._files) != self._signature

    @property
    def state_dir(self) -> Path:
        """Where runs and answers are kept."""
        assert self.workspace is not None
        from workbench.history import state_dir as places

        return places.state_dir(self.workspace.root, self.explicit_state)

    @property
    def runs_dir(self) -> Path:
        """Where each run has a folder of its own."""
        return self.state_dir / "runs"

    @property
    def saver(self) -> "Saver":
        """What writes edits into files and takes them back: one for all of the screen, made when first asked for."""
        from workbench.authoring.saving import Saver

        if self._saver is None:
            self._saver = Saver(self.state_dir)
        return self._saver

    @property
    def place(self) -> str:
        """The folder or file that is open, as a safe name."""
        path = self.workspace.target if self.workspace else self.path.absolute()
        return one_line(path.name or str(path), limit=80)

    def entry(self, evalset: int) -> "EvalsetEntry":
        """An evalset of the workspace."""
        assert self.workspace is not None
        return self.workspace.evalsets[evalset]

    def case(self, evalset: int, case: int) -> "EvalCase | None":
        """A case in full; None if ADK would reject it (its faults are the document's)."""
        from workbench.model.evalset import BrokenCaseError

        document = self.entry(evalset).document
        try:
            return document.case(case)
        except BrokenCaseError:
            return None

    def record(self, row: Row) -> CaseRecord | None:
        """What is known of a row's case or repeat; None if it never ran."""
        return self.verdicts.record(row.evalset, row.case, row.repeat)

    def keep_owner(self, entry: "EvalsetEntry", agent: "AgentFolder") -> None:
        """Keeps the user's answer; the folder must be read again for it to count.

        Raises:
            OSError, ValueError: it cannot be kept.
        """
        from workbench.agents.owners import save_owner

        assert self.workspace is not None
        self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        save_owner(self.state_dir, entry.relative, agent.folder, self.workspace.root)

    def recall(self, recalled: "Recalled") -> None:
        """Takes in verdicts of an earlier session, as far as newer ones are not known."""
        if not self.store.current:
            self.recalled = recalled.run.run_id
        self.store.restore(recalled.run, list(recalled.records), recalled.records)
        self.verdicts.recall(recalled.records)

    @property
    def awaits_verdicts(self) -> bool:
        """Whether cases may have verdicts that are not known yet."""
        return self.reading or self.loading == "results"

    def nothing_found(self, otherwise: str) -> str:
        """Say why there is nothing to go to: `otherwise` if there are results and none is meant."""
        if self.reading or (self.workspace is None and not self.trouble):
            return "still reading"
        if self.loading == "results":
            return "results are still loading"
        return otherwise if self.store.current else "nothing has run yet"

    # The run

    def elapsed(self) -> float:
        """Seconds since the run began, or its whole duration."""
        return self._clock() - self._began if self.store.activity.running else self.store.run.duration_seconds

    def waiting(self) -> tuple[str, str]:
        """Which judge pauses and for how long still, in full and in short; "" if none does."""
        return waiting_words(self.store.activity.waits, self.elapsed())

    def problems(self) -> list[tuple[int, int]]:
        """All cases whose newest verdict is fail or error, in the order of the files."""
        return sorted(
            pair for pair, view in self.verdicts.views.items() if view.state in ("failed", "error") and pair[1] >= 0
        )

    def _keep_time(self, event: object) -> None:
        if isinstance(event, RunStarted):
            self._began = self._clock()

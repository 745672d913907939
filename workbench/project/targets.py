"""Targets as named by a command line or a program, and the plan that runs them.

Modules that open evalsets are imported late, so that a mistyped word is rejected at once.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from workbench.events.shards import ShardNumber
from workbench.files.run_options import RunOptions, UsageFaultError, UsageKind
from workbench.files.state_folder import state_dir
from workbench.run.plan.selection import open_selection, refuse_unknown
from workbench.run.plan.target_parser import Selection, parse_targets

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.run.plan.plan import Plan


class NamedTargets(TypedDict, total=False):
    """The fields of `Targets` that a caller may name."""

    agent: Path | None
    cases: tuple[str, ...]
    config: Path | None
    initial_session_file: Path | None
    name_contains: str
    last_failed: bool


@dataclass(frozen=True, slots=True)
class Targets:
    """Cases to run, and their settings.

    `words` are folders, evalset files, `FILE:case_1,case_2` or evalset ids. Relative paths start from `folder`. `cases`
    restricts them to these ids, if there are any. `name_contains` restricts them to ids that contain it, and
    `last_failed` to cases whose last verdict is failed or error, if there are any. `agent` runs them instead of each
    evalset's own agent. `config` has the criteria for all of them. `initial_session_file` is for files of the oldest
    format. `state_dir` is the state folder if it is not `.workbench` in the root. `shard` is the part of the plan to
    run, or None for all of it.
    """

    words: tuple[str, ...]
    folder: Path
    agent: Path | None = None
    cases: tuple[str, ...] = ()
    config: Path | None = None
    initial_session_file: Path | None = None
    state_dir: Path | None = None
    shard: ShardNumber | None = None
    name_contains: str = ""
    last_failed: bool = False

    def selection(self) -> Selection:
        """Parse the words.

        Raises:
            UsageFaultError: a word names nothing.
        """
        found = parse_targets(self.words, folder=self.folder, agent=self.agent, case_ids=self.cases)
        return replace(found, name_contains=self.name_contains)

    def refuse_unknown(self) -> None:
        """Reject unknown names quickly, before evalsets are opened.

        Raises:
            UsageFaultError: an id, the config or the session file does not exist.
        """
        refuse_unknown(self.selection(), self.folder)
        refuse_missing(self.config, "config")
        refuse_missing(self.initial_session_file, "broken_file")

    def open(self, previous: "Workspace | None" = None) -> "Workspace":
        """Open the workspace with the targets, reusing the unchanged parts of `previous`.

        Raises:
            UsageFaultError: a path does not exist, or a file cannot be read.
        """
        from workbench.files.evalset import BrokenFileError, read_initial_session
        from workbench.store.owners import read_owners

        file = self.initial_session_file
        try:
            session = None if file is None else read_initial_session(file)
        except BrokenFileError as error:
            raise UsageFaultError(str(error), kind="broken_file") from None
        return open_selection(
            self.selection(),
            folder=self.folder,
            config=self.config,
            stored_owners=None if self.state_dir is None else read_owners(state_dir(self.folder, self.state_dir)),
            previous=previous,
            initial_session=session,
        )

    def plan(self, options: RunOptions, workspace: "Workspace | None" = None) -> "Plan":
        """Return the plan that runs the targets. Do not call it in an event loop's thread: it reads files.

        `workspace` is the result of `open`, if it was called before.

        Raises:
            UsageFaultError: see `open` and `workbench.run.plan.run_plan.make_plan`.
        """
        from workbench.events.events import Noticed
        from workbench.run.plan.run_plan import make_plan

        workspace = workspace or self.open()
        plan = self._plan_of_failed(workspace, options) if self.last_failed else None
        if plan is None:
            plan = make_plan(workspace, self.selection(), options)
            if self.last_failed:
                text = "no last verdict is failed or error, so all cases run, as in pytest"
                plan = replace(plan, notices=(Noticed("info", text), *plan.notices))
        if self.shard is None:
            return plan
        from workbench.project.shards import plan_of_shard

        return plan_of_shard(plan, self.shard)

    def _plan_of_failed(self, workspace: "Workspace", options: RunOptions) -> "Plan | None":
        """Return the plan for the cases whose last verdict is failed or error, or None if there are none."""
        from workbench.project.last_verdicts import failed_cases
        from workbench.run.plan.run_plan import make_plan

        failed = failed_cases(workspace, state_dir(workspace.root, self.state_dir))
        try:
            return make_plan(workspace, replace(self.selection(), only=frozenset(failed)), options)
        except UsageFaultError as fault:
            if fault.kind != "nothing":
                raise
            return None


def refuse_missing(file: Path | None, kind: UsageKind) -> None:
    """Reject a named file that does not exist.

    Raises:
        UsageFaultError: the file does not exist.
    """
    if file is not None and not file.exists():
        raise UsageFaultError(f"{file}: there is no such file", kind=kind)

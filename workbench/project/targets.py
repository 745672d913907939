"""Targets named by a command line or a program, the plan that runs them, and the command that repeats a plan.

The screen shows that command for its own actions. Modules that open evalsets are imported late, so that a mistyped
target is rejected at once.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from workbench.events.shards import ShardNumber
from workbench.files.folders import state_dir
from workbench.files.project_root import find_root
from workbench.files.project_settings import known_mode, known_places
from workbench.files.run_options import OFF, RESULT_OPTIONS, PlaceChoice, RunOptions, UsageFaultError, UsageKind
from workbench.run.plan.selection import Selection, escape, open_selection, parse_targets, refuse_unknown
from workbench.text.counting import exact

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.run.plan.plan import Plan


class NamedTargets(TypedDict, total=False):
    """The fields of `Targets` that callers of `Project` may pass by keyword."""

    agent: Path | None
    cases: tuple[str, ...]
    config: Path | None
    initial_session_file: Path | None
    name_contains: str
    last_failed: bool


@dataclass(frozen=True, slots=True)
class Targets:
    """Cases to run, and their settings.

    `words` are folders, evalset files, `FILE:case_1,case_2` or evalset ids. The first of several may name the agent, as
    in `parse_targets`. Relative paths start from `folder`. `agent` runs the cases instead of each evalset's own agent.
    `cases` restricts them to these ids, unless it is empty. `name_contains` restricts them to ids that contain it. With
    `last_failed`, only cases whose last verdict is failed or error run, or all if there are none. `config` has the
    criteria for all of them. `initial_session_file` has the session for cases in the oldest file format. `state_dir` is
    the state folder if it is not `.workbench` in the root. `shard` is the part of the plan to run, or None for all.
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
        """Return what the words select, without reading evalsets.

        Raises:
            UsageFaultError: a path does not exist, no case follows a colon, or `agent` is not an agent.
        """
        found = parse_targets(self.words, folder=self.folder, agent=self.agent, case_ids=self.cases)
        return replace(found, name_contains=self.name_contains)

    def refuse_unknown(self) -> None:
        """Reject unknown names before evalsets are opened. `plan` rejects those that need the full parser.

        Raises:
            UsageFaultError: an id is unknown or ambiguous, or a path, the config or the session file does not exist.
        """
        refuse_unknown(self.selection(), self.folder)
        refuse_missing(self.config, "config")
        refuse_missing(self.initial_session_file, "broken_file")

    def open(self, previous: "Workspace | None" = None) -> "Workspace":
        """Open the workspace with the targets.

        `previous` is the workspace as it was read before. It gives the last owner of each evalset that never ran.

        Raises:
            UsageFaultError: a path does not exist, `agent` is not an agent, or the session file is broken.
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
        """Return the plan that runs the targets. It reads files, so do not call it in an event loop's thread.

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
    """Raise UsageFaultError if a named file does not exist."""
    if file is not None and not file.exists():
        raise UsageFaultError(f"{file}: there is no such file", kind=kind)


PROGRAM = "agent-workbench"
_OPTIONS = {**RESULT_OPTIONS, "concurrency": "--concurrency", "python": "--python"}
del _OPTIONS["frozen"]  # It is compared with the project's setting.


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command of this program, as arguments without quotes. `caveat` says what it does not repeat, or is ""."""

    arguments: tuple[str, ...]
    caveat: str = ""

    @property
    def line(self) -> str:
        """The command as it is typed into a POSIX shell."""
        return shlex.join((PROGRAM, *self.arguments))


@dataclass(frozen=True, slots=True)
class Shell:
    """The user's shell, in which commands will run: its folder `here`, and the options of the running program.

    `given_state` is the state folder if it is not `.workbench` in the root. `has_named_evalsets` says whether the user
    opened evalsets by path that a search of the folder does not find.
    """

    here: Path
    given_state: Path | None = None
    has_named_evalsets: bool = False

    def path(self, path: Path) -> str:
        """Return a path as an argument, relative if it is below the shell's folder. It never begins with "-"."""
        found = str(path.relative_to(self.here)) if path.is_relative_to(self.here) else str(path)
        return f"./{found}" if found.startswith("-") else found

    def state(self, root: Path, state: Path, *, by_run: bool) -> tuple[str, ...]:
        """Return `--state-dir` and its value if the command needs them, else ().

        With `by_run`, the command names a run instead of a path, so it looks for the root from the shell's folder.
        """
        needed = self.given_state is not None or (by_run and find_root(self.here) != root)
        return ("--state-dir", self.path(state)) if needed else ()


def command_of_plan(plan: "Plan", workspace: "Workspace", state: Path, shell: Shell) -> ShellCommand:
    """Return the command that runs or scores the same cases with the same options as `plan`.

    `workspace` is the one for which the plan was made, with all its evalsets. `state` is its state folder.
    """
    changed = any(entry.planned.criteria_changed for entry in plan.entries)
    caveat = "without the criteria changed for that run, which are in no file" if changed else ""
    if plan.scored_from:
        runs = plan.scored_from.split(", ")
        if len(runs) > 1:
            caveat = f"only the first of {len(runs)} runs with these transcripts"
        ids = dict.fromkeys(entry.ref.eval_id for entry in plan.entries)
        scoring = [*_options(plan.options), *shell.state(plan.root, state, by_run=True)]
        return ShellCommand(("score", *scoring, *_each("--case", ids), runs[0]), caveat)
    words, cases = _targets(plan, workspace, shell)
    options = [*_options(plan.options), *_frozen(plan), *_place(plan), *shell.state(plan.root, state, by_run=False)]
    return ShellCommand(("run", *options, *_each("--case", cases), *words), caveat)


def compare_command(before: str, after: str, root: Path, state: Path, shell: Shell) -> ShellCommand:
    """Return the command that compares two runs, each given by its ID or path."""
    return ShellCommand(("compare", *shell.state(root, state, by_run=True), before, after))


def status_command(workspace: "Workspace", state: Path, shell: Shell) -> ShellCommand:
    """Return the command that shows the last verdicts of the opened folder, evalset or agent."""
    options = shell.state(workspace.root, state, by_run=False)
    return ShellCommand(("status", *options, shell.path(workspace.target)))


def export_command(run_id: str, root: Path, state: Path, shell: Shell) -> ShellCommand:
    """Return the command that exports a run as an HTML page."""
    options = shell.state(root, state, by_run=True)
    return ShellCommand(("export", *options, "--format", "html", "-o", f"{run_id}.html", run_id))


def _targets(plan: "Plan", workspace: "Workspace", shell: Shell) -> tuple[list[str], list[str]]:
    """Return the targets, and IDs for `--case` if one of them cannot be written as `FILE:id`."""
    chosen: dict[str, dict[str, None]] = {}
    for planned in plan.entries:
        chosen.setdefault(planned.ref.evalset_file, {})[planned.ref.eval_id] = None
    known = {entry.relative: set(entry.case_ids) for entry in workspace.evalsets}
    whole = {file for file, ids in known.items() if file in chosen and ids <= chosen[file].keys()}
    if len(whole) == len(known) and not shell.has_named_evalsets:
        return [shell.path(workspace.target)], []
    # A broken file costs one entry in a folder, but a named one would end the command.
    own = [entry for entry in workspace.evalsets if entry.relative in chosen and not entry.broken]
    behind = [eval_id for entry in own if entry.relative not in whole for eval_id in chosen[entry.relative]]
    if any(not eval_id or eval_id != eval_id.strip() for eval_id in behind):
        every = dict.fromkeys(eval_id for entry in own for eval_id in chosen[entry.relative])
        return [shell.path(entry.file) for entry in own], list(every)
    words: list[str] = []
    for entry in own:
        ids = ",".join(map(escape, chosen[entry.relative]))
        path = shell.path(entry.file)
        words.append(path if entry.relative in whole else f"{escape(path)}:{ids}")
    return words, []


def _options(options: RunOptions) -> Iterator[str]:
    usual = RunOptions()
    for field in fields(RunOptions):
        value = getattr(options, field.name)
        name = _OPTIONS.get(field.name)
        # With --until-sure, the default of --runs is another one.
        if name is None or (value == getattr(usual, field.name) and not (field.name == "runs" and options.until_sure)):
            continue
        yield name
        if isinstance(value, float):
            yield exact(value)
        elif not isinstance(value, bool):
            yield str(value)


def _frozen(plan: "Plan") -> Iterator[str]:
    mode = plan.options.frozen or ""
    if mode != (known_mode(plan.root) or ""):
        yield f"--frozen={mode or OFF}"


def _place(plan: "Plan") -> Iterator[str]:
    usual, named = known_places(plan.root)
    place = plan.options.place or PlaceChoice()
    if place == (usual or PlaceChoice()):
        return
    yield from ("--on", place.name or place.word)
    if place.python and place.python not in (choice.python for choice in named if choice.name == place.name):
        yield from ("--remote-python", place.python)
    known = next((choice.env for choice in named if choice.name == place.name), ())
    yield from _each("--env", [name for name in place.env if name not in known])


def _each(option: str, values: Iterable[str]) -> Sequence[str]:
    return [word for value in values for word in (option, value)]

"""A try: the copies of all variants, one run of all of them, and its costs."""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from workbench.agents.discovery import EVALSET_SUFFIXES, agent_at
from workbench.agents.workspace import CONFIG_FILES
from workbench.events.events import CaseError, CaseFinished, CaseRef, Event, Noticed
from workbench.files.file_access import content_hash, read_regular, size_words, unreadable_text
from workbench.files.prices import Prices, total
from workbench.files.run_options import UsageFaultError
from workbench.files.walk import FROZEN_SUFFIX
from workbench.project.cost_estimate import Estimate, estimate
from workbench.project.project import Project
from workbench.project.running import Running
from workbench.project.variants.copies import (
    LINK,
    Copy,
    Revision,
    TemporaryFolder,
    copy_of_copy,
    copy_project,
    copy_revision,
    find_revision,
    is_copied,
    is_in_repository,
    link_environment,
    project_files,
    put_file,
    replace_folder,
)
from workbench.project.variants.variant import TREE, Variant, Wanted, changed_variants
from workbench.results.costs import costs
from workbench.run.plan.plan import AgentSetting, Plan, new_run_id
from workbench.run.recorder import Publish
from workbench.store.database.database import database
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.store.history.latest import latest_runs
from workbench.store.store import Store
from workbench.text.counting import counted, few

Stopped: TypeAlias = Literal["", "cost", "unknown cost", "judge calls"]
"""The reason why a limit ended a try, or ""."""
_COPIED = 64 << 20
"""Maximum size of a file that is copied although git ignores it, in bytes."""
_MOST_DIFFED = 1 << 20
"""Maximum size of a file whose lines are compared, in bytes."""


@dataclass(frozen=True)
class Layout:
    """The variants and cases of a try. `cases` are the cases of the working tree, each as its first execution.

    `names` are the names of the variants. All others are compared with the first. `agents` maps an agent's name in the
    try to the variant's position and the agent's own name.
    """

    names: tuple[str, ...]
    cases: tuple[CaseRef, ...]
    agents: Mapping[str, tuple[int, str]]
    runs: int

    @property
    def size(self) -> tuple[int, int, int]:
        """The numbers of variants, of cases, and of executions of a case in a variant."""
        return len(self.names), len(self.cases), self.runs

    def place(self, ref: CaseRef) -> tuple[int, CaseRef]:
        """Return the variant's position and the case of an execution of the try."""
        variant, agent = self.agents[ref.agent]
        return variant, replace(ref, agent=agent, repeat=1)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs between two variants.

    `path` is relative to the root. The content of a missing file is None.
    """

    path: str
    before: bytes | None
    after: bytes | None

    def diff(self) -> list[str]:
        """Return the difference as the lines of a unified diff, raw.

        Binary and large files, and those with equal lines, have one line about it, in the form of an equal line.
        """
        sides = self.before or b"", self.after or b""
        if any(b"\0" in side or len(side) > _MOST_DIFFED for side in sides):
            return [f" {self.path} differs ({len(sides[0]):,} and {counted(len(sides[1]), 'byte')})"]
        before, after = (side.decode("utf-8", "replace").splitlines() for side in sides)
        if before == after and all(sides):
            return [f" {self.path} differs only in line ends, or in bytes that are no text"]
        return list(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}", lineterm=""))


class Trial:
    """A try whose copies exist. Close it at the end.

    The first of `variants` is the one that the others are compared with. `layout` is for `report`. `store` has the
    state of the run.
    """

    def __init__(
        self, plan: Plan, variants: Sequence[Variant], copies: Sequence[Copy], tree: Copy, folder: TemporaryFolder
    ) -> None:
        self.variants = tuple(variants)
        self._copies, self._tree, self._folder = tuple(copies), tree, folder
        self._root = plan.root
        self._evalsets = {entry.ref.evalset_file for entry in plan.entries}
        self._base = plan
        self.plan, self.layout = _plan_of(plan, variants, copies)
        self.store = Store()
        self.stopped: Stopped = ""
        """The reason why a limit ended the run, or ""."""
        self.costs: dict[CaseRef, float | None] = {}
        """The cost of each execution that has ended, None if it is not known. Empty without prices."""
        self._asked = 0
        """Number of calls to judges so far."""
        self._project: Project | None = None
        self._is_closed = False

    @property
    def sources(self) -> list[str]:
        """A raw text about each variant: its commit, its folder, its changes, or the files that differ."""
        return [self._source(index) for index in range(len(self.variants))]

    def estimate(self, state: Path, prices: Prices) -> Estimate:
        """Return the estimated calls and cost, from the last verdicts in the state folder `state`."""
        cases = self.layout.cases
        known: dict[str, set[str]] = {}
        for ref in cases:
            known.setdefault(ref.evalset_file, set()).add(ref.eval_id)
        records = [one for run in latest_runs(state, known) for one in run.executions]
        configs = {entry.ref.evalset_file: entry.config for entry in self._base.entries}
        times = self.layout.runs * len(self.variants)
        return estimate(len(cases), records, "run", prices, times, lambda ref: configs.get(ref.evalset_file))

    def run(
        self,
        project: Project,
        publish: Publish = lambda event: None,
        prices: Prices | None = None,
        max_cost: float | None = None,
    ) -> Running:
        """Prepare the run. Call this only once. Its events go to `store` and then to `publish`.

        The run ends early when it has cost about `max_cost`, or reached the plan's limit of judge calls.

        Raises:
            RuntimeError: the trial is closed, so its copies are gone.
        """
        if self._is_closed:
            raise RuntimeError("the trial is closed: open another one")
        options = self.plan.options
        if max_cost is not None or options.max_judge_calls is not None:
            self.plan = replace(self.plan, options=replace(options, waits_for_verdicts=True))

        def take(event: Event) -> None:
            self.store.apply(event)
            publish(event)
            if isinstance(event, CaseFinished):
                reached = self._reached(event.case, prices, max_cost)
                if reached and not self.stopped and self.store.counts()["queued"]:
                    self.stopped = reached
                    running.stop()

        self._project = project
        running = project.run(self.plan, take, store=self.store, state=self._folder.path)
        return running

    def _reached(self, ref: CaseRef, prices: Prices | None, max_cost: float | None) -> Stopped:
        """Count the costs of an ended execution, and return the limit that they reach, or ""."""
        record = read_details(self.store.current_record(ref))
        if prices and (found := costs([record], prices)) is not None:
            self.costs[ref] = found.amounts.get(ref)
        self._asked += record.usage.judge_calls
        if max_cost is not None:
            spent = total(self.costs.values())
            if spent is None or not self.costs:
                return "unknown cost"
            # Those that run will cost about as much as the others.
            if spent * (1 + self.store.counts()["running"] / len(self.costs)) >= max_cost:
                return "cost"
        most = self.plan.options.max_judge_calls
        # Calls that fail are in no usage. With 0, executions that need no judge are all run.
        refused = any("--max-judge-calls" in result.reason for result in record.metrics.values())
        return "judge calls" if most is not None and (refused or self._asked >= most > 0) else ""

    def executions(self, records: Iterable[Execution], variant: int, case: CaseRef) -> list[Execution]:
        """Return the executions of one of `layout.cases` in a variant, in the order of repeats."""
        found = [one for one in records if self.layout.place(one.ref) == (variant, case)]
        return sorted(found, key=lambda one: one.ref.repeat)

    def changed_files(self, variant: int) -> list[FileChange]:
        """Return the files that differ between the first variant and this one. Evalsets and criteria do not count."""
        return self._changes(self._copies[0], self._copies[variant])

    def kept(self, variant: int) -> dict[Path, tuple[bytes | None, bytes | None]]:
        """Return path → content before and after, for `Saver.save` to write a variant into the working tree.

        The content before is that at the start of the try, so that a later change is not overwritten. Links, variables
        and models are not included.

        Raises:
            UsageFaultError: a file would be written through a link that leads out of the project, or an agent has
                changed one of the files in its copy.
        """
        base = os.path.realpath(self._root)
        found: dict[Path, tuple[bytes | None, bytes | None]] = {}
        copy = self._copies[variant]
        for change in self._changes(self._tree, copy):
            file = self._root / change.path
            if any(one.files.get(change.path, "").startswith(LINK) for one in (self._tree, copy)):
                continue
            if not os.path.realpath(file).startswith(f"{base}{os.sep}"):
                raise UsageFaultError(f"{change.path}: a link leads out of the project, so nothing is written")
            sides = (self._tree, change.before), (copy, change.after)
            if any(content is not None and content_hash(content) != one.files[change.path] for one, content in sides):
                raise UsageFaultError(f"{change.path}: an agent changed it during the try, so nothing is written")
            found[file] = change.before, change.after
        return found

    def close(self) -> None:
        """Remove the copies and the conversations. Call it in a thread, after the run."""
        self._is_closed = True
        if self._project is not None:
            for setting in self.plan.agents.values():
                self._project.children.touched.pop(setting.agent.folder, None)
        database(self._folder.path).close()
        self._folder.close()

    def _source(self, index: int) -> str:
        variant, copy = self.variants[index], self._copies[index]
        if variant.commit:
            return f"commit {variant.commit[:10]}"
        if variant.folder is not None:
            return f"the files in {variant.folder}"
        parts = [f"{swap.file} as in {swap.label}" for swap in variant.swaps]
        parts += [f"the variable {name}" for name in variant.values]
        parts += [f"the model {variant.model}"] if variant.model else []
        if parts:
            return f"the working tree with {', '.join(parts)}"
        changed = _differing(self._copies[0], copy, self._evalsets)
        differ = "differs" if len(changed) == 1 else "differ"
        return f"{counted(len(changed), 'file')} {differ}: {few(changed, 5)}" if changed else "as it is now"

    def _changes(self, before: Copy, after: Copy) -> list[FileChange]:
        return [
            FileChange(path, _content(before, path), _content(after, path))
            for path in _differing(before, after, self._evalsets)
        ]


def open_trial(plan: Plan, wanted: Wanted, read_before: Iterable[Path] = ()) -> Trial:
    """Make the copies of all variants that a user asks for, and return the try. Call it in a thread.

    `plan` runs the cases in the working tree, each `plan.options.runs` times. `read_before` are files that agents read
    in earlier runs. Those that git ignores are copied, too, if they have at most `_COPIED` bytes. Larger ones get a
    notice.

    Raises:
        UsageFaultError: a variant or the folder for copies cannot be made, or nothing differs.
    """
    _refuse_elsewhere(plan)
    root = plan.root
    named = (wanted.against, *wanted.revisions)
    revisions = [found for name in named if (found := find_revision(root, name)) is not None]
    more = changed_variants(wanted, root)
    if not revisions and not more:
        raise UsageFaultError(f"nothing to compare with: {root} has no git commit", _HINT)
    try:
        folder = TemporaryFolder()
    except OSError as error:
        raise UsageFaultError(f"no folder for copies can be made: {unreadable_text(error)}", _NO_FOLDER) from None
    try:
        variants, copies, tree = _copies(plan, revisions, more, folder.path, read_before)
        environments = {setting.environment.file for setting in plan.agents.values()}
        for copy in copies:
            link_environment(copy, root, [file for file in environments if file is not None])
        plan = replace(plan, notices=(*plan.notices, *_missing_notices(plan, read_before)))
        return Trial(plan, variants, copies, tree, folder)
    except BaseException:
        folder.close()
        raise


_NO_FOLDER = "Set TMPDIR to a folder that you can write to"
_HINT = "--swap FILE=OTHER, --set NAME=VALUE, --model NAME and --variant NAME=DIR make other variants"


def _copies(
    plan: Plan, revisions: Sequence[Revision], more: Sequence[Variant], folder: Path, read_before: Iterable[Path]
) -> tuple[list[Variant], list[Copy], Copy]:
    """Return the variants, a copy of the project for each, and the one of the working tree."""
    root = plan.root
    files = list(_project_files(plan, root))
    ignored = [] if _travels(plan) else [name for name, size in _ignored(read_before, root, files) if size <= _COPIED]
    tree = copy_project(root, folder / "tree", [*files, *ignored])
    variants = [Variant(one.name, one.commit) for one in revisions]
    names = [*(one.name for one in variants), TREE, *(one.name for one in more)]
    for name in names:
        if names.count(name) > 1:
            raise UsageFaultError(f"two variants are called {name}", "Leave out one of them, or name it differently")
    copies = [
        copy_revision(root, one, folder / f"revision-{number}", tree, ignored) for number, one in enumerate(revisions)
    ]
    evalsets = {entry.ref.evalset_file for entry in plan.entries}
    if all(_differing(old, tree, evalsets) for old in copies):
        variants.append(Variant(TREE))
        copies.append(tree)
    elif len(copies) + len(more) == 1:
        why = f"apart from evalsets and criteria, the working tree is like {variants[0].name}"
        hint = f"Change a file, name an older revision with --against REF, or: {_HINT}"
        raise UsageFaultError(f"nothing to compare: {why}", hint)
    for number, variant in enumerate(more, 1):
        goal = folder / str(number)
        if variant.folder is None:
            copy = copy_of_copy(tree, goal)
        else:
            copy = _copy_folder(plan, tree, variant.folder, goal)
        for swap in variant.swaps:
            copy = put_file(copy, swap.file, swap.other)
        variants.append(variant)
        copies.append(copy)
    return variants, copies, tree


def _travels(plan: Plan) -> bool:
    place = plan.options.place
    return place is not None and not place.is_local


def _project_files(plan: Plan, source: Path) -> Iterator[str]:
    """Yield the files that are copied. For other machines, these are only the files that a normal run would send."""
    if not _travels(plan):
        yield from project_files(source)
    elif is_in_repository(source):
        yield from project_files(source, new=False)
    else:
        folders = [setting.agent.folder.relative_to(plan.root) for setting in plan.agents.values()]
        prefixes = tuple("" if folder == Path() else f"{folder.as_posix()}/" for folder in folders)
        yield from (name for name in project_files(source) if name.startswith(prefixes))


def _copy_folder(plan: Plan, tree: Copy, source: Path, goal: Path) -> Copy:
    """Return a copy of another folder: a project, or an agent that replaces the project's agent.

    Raises:
        UsageFaultError: the folder is an agent, and the cases belong to several agents.
    """
    folders = {setting.agent.folder for setting in plan.agents.values()}
    if agent_at(source)[0] is None or plan.root in folders:
        return copy_project(source, goal, _project_files(plan, source))
    if len(folders) > 1:
        hint = "Name a copy of the whole project, or cases of one agent"
        raise UsageFaultError(f"{source} is one agent, but the cases belong to {counted(len(folders), 'agent')}", hint)
    inside = folders.pop().relative_to(plan.root).as_posix()
    other = copy_project(source, goal.with_name(f"{goal.name}-agent"), _project_files(plan, source))
    return replace_folder(copy_of_copy(tree, goal), inside, other)


def _refuse_elsewhere(plan: Plan) -> None:
    """Raise UsageFaultError if an agent is outside of the project, or no agent can run."""
    for name, setting in plan.agents.items():
        if not setting.agent.folder.is_relative_to(plan.root):
            where = f"the agent {name} is outside of the project ({plan.root})"
            raise UsageFaultError(f"{where}, so no variant of it can run")
    if not plan.agents:
        entry = plan.entries[0]
        why = "no agent can run" if entry.blocked is None else entry.blocked.message
        raise UsageFaultError(f"nothing to compare: {why}", "" if entry.blocked is None else entry.blocked.hint)


def _ignored(read_before: Iterable[Path], root: Path, files: Iterable[str]) -> list[tuple[str, int]]:
    """Return the files that agents read before and that git ignores: path relative to the root, and size in bytes."""
    inside = {os.path.relpath(file, root) for file in read_before if file.is_relative_to(root) and file.is_file()}
    return [(name, (root / name).stat().st_size) for name in sorted(inside.difference(files)) if is_copied(name)]


def _missing_notices(plan: Plan, read_before: Iterable[Path]) -> Iterator[Noticed]:
    """Yield a notice about files that git ignores and that are too large to be copied for each variant."""
    found = [] if _travels(plan) else _ignored(read_before, plan.root, project_files(plan.root))
    names = [f"{name} ({size_words(size)})" for name, size in found if size > _COPIED]
    if names:
        text = f"not copied, ignored by git and larger than {size_words(_COPIED)}: {few(names, 5)}"
        yield Noticed("warning", text, "An agent can read it by its absolute path")


def _differing(before: Copy, after: Copy, evalsets: Iterable[str]) -> list[str]:
    """Return the paths of files that differ and can affect an agent."""
    known = set(evalsets)
    found = []
    for path in before.differences(after):
        folder, _, name = path.rpartition("/")
        # Cases and criteria are those of the working tree in every variant.
        is_of_cases = name.endswith(EVALSET_SUFFIXES) or name in CONFIG_FILES or folder.endswith(FROZEN_SUFFIX)
        if path not in known and not is_of_cases:
            found.append(path)
    return found


def _content(copy: Copy, path: str) -> bytes | None:
    """Return the content of a file in a copy, that of a link as text, or None if there is none."""
    known = copy.files.get(path)
    if known is None:
        return None
    return os.fsencode(known) if known.startswith(LINK) else read_regular(copy.root / path)


# The plan


def _plan_of(base: Plan, variants: Sequence[Variant], copies: Sequence[Copy]) -> tuple[Plan, Layout]:
    """Return the plan that runs all variants of a plan, and its layout.

    The first round runs every case once in each variant, then the second round begins. The order of the variants
    rotates, so that no variant always runs first.

    Raises:
        UsageFaultError: a variant has none of the agents.
    """
    settings: dict[str, AgentSetting] = {}
    agents: dict[str, tuple[int, str]] = {}
    missing: dict[str, CaseError] = {}
    keys: dict[tuple[str, int], str] = {}
    for name in dict.fromkeys(entry.ref.agent for entry in base.entries):
        for index, (variant, copy) in enumerate(zip(variants, copies, strict=True)):
            key = f"{name} ({variant.name})"
            keys[name, index], agents[key] = key, (index, name)
            setting = base.agents.get(name)
            found = None if setting is None else _setting(setting, variant, copy)
            if isinstance(found, AgentSetting):
                settings[key] = found
            elif found is not None:
                missing[key] = found
    for index in range(len(variants)):
        if not any(agents[key][0] == index for key in settings):
            why = next((missing[key] for key in missing if agents[key][0] == index), None)
            message, hint = ("nothing to compare", _RENAMED) if why is None else (why.message, why.hint)
            raise UsageFaultError(message, hint)
    ordered = sorted(base.entries, key=lambda entry: entry.ref.repeat)
    entries = tuple(
        replace(
            entry,
            planned=replace(entry.planned, case=replace(entry.ref, agent=key)),
            blocked=entry.blocked or missing.get(key),
        )
        for number, entry in enumerate(ordered)
        for step in range(len(variants))
        for key in [keys[entry.ref.agent, (number + step) % len(variants)]]
    )
    notices = tuple(Noticed("warning", error.message, error.hint) for error in missing.values())
    plan = replace(
        base,
        run_id=new_run_id(),
        entries=entries,
        agents=settings,
        notices=(*base.notices, *notices),
        checked=replace(base, entries=base.entries * len(variants)),
    )
    cases = tuple(entry.ref for entry in base.entries if entry.ref.repeat == 1)
    return plan, Layout(tuple(variant.name for variant in variants), cases, agents, base.options.runs)


_UNREADABLE = "Name a revision in which it can be read with --against REF, or a folder with --variant NAME=DIR"
_RENAMED = "An agent that was renamed or moved has no earlier variant. --variant NAME=DIR compares with another folder"


def _setting(setting: AgentSetting, variant: Variant, copy: Copy) -> AgentSetting | CaseError:
    """Return the setting of an agent in a variant, or the error if the variant has no such agent."""
    root = setting.root
    folder = setting.agent.folder.relative_to(root)
    agent, unreadable = agent_at(copy.root / folder)
    if agent is None:
        why = f"{variant.name} has no agent in {folder}"
        if unreadable:
            file = folder / unreadable[0].path.name
            return CaseError("no_agent", f"{why}. {file}: {unreadable[0].reason}", _UNREADABLE)
        return CaseError("no_agent", why, _RENAMED)
    here = Path.cwd()
    inside = copy.root / here.relative_to(root) if here.is_relative_to(root) else here
    environment = setting.environment
    return AgentSetting(
        replace(agent, name=setting.agent.name),
        copy.root,
        setting.interpreter,
        replace(
            environment,
            values={**environment.values, **variant.values},
            names=tuple(dict.fromkeys([*environment.names, *variant.values])),
        ),
        inside if inside.is_dir() else copy.root,
        setting,
        variant.model,
    )

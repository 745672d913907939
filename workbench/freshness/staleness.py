"""Stale verdicts, found by comparing recorded inputs with current ones, and the files that these inputs are in."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from workbench.agents.discovery import DEFINITION_FILES
from workbench.agents.environment import agent_environment, package_folders
from workbench.agents.workspace import CONFIG_FILES, EvalsetEntry, Workspace
from workbench.criteria.registry import effect_of
from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseName, PlannedCase
from workbench.files.project_settings import FILE, known_mode
from workbench.files.walk import up_to
from workbench.freshness.agent_inputs import ALL, LISTED, Touched
from workbench.freshness.current import CurrentInputs, Options, PastInputs
from workbench.store.database.database import state_of
from workbench.store.digests import project_digests
from workbench.store.execution import Execution
from workbench.store.history.latest import LatestRun, newest_options
from workbench.store.history.summary import Summary
from workbench.store.inputs import (
    CODE,
    INTERPRETER,
    KINDS,
    Bundle,
    Change,
    Effect,
    Input,
    Record,
    not_recorded,
    started_case,
    started_config,
)
from workbench.store.transcripts import StoredCase
from workbench.text.counting import counted

_COMPARISONS = 100
"""Maximum number of comparisons that a bundle caches."""
_NAMED = 2
"""Maximum number of packages that are named. For more, only the number is shown."""
_BY_PATH = tuple(kind for kind, treated in KINDS.items() if treated.place == "name")
"""The kinds of inputs whose names are paths relative to the root."""
_MOST_FILES = 20_000
Changes: TypeAlias = tuple[Change, ...]


class _Placed(NamedTuple):
    value: str
    file: str | None


def compare(then: Record | None, now: Record) -> Changes:
    """Return the inputs that differ, in the order of `KINDS`.

    A kind of input that `then` did not record counts as changed. One that `now` lacks does not. The judge of a new or
    removed criterion is left out. `then` is None for runs that recorded no inputs, such as JSON reports. The result is
    then one change.
    """
    if then is None:
        return not_recorded(["agent_file"])
    kinds = {kind for bundle in _differing(then.bundles, now.bundles) for kind in bundle.inputs}
    if not kinds:
        return ()
    found: list[Change] = []
    for kind in (kind for kind in KINDS if kind in kinds):
        old, new = (tuple(one for one in record.bundles if kind in one.inputs) for record in (then, now))
        if new:
            found += _compared(kind, old, new, now.evalset) if old else not_recorded([kind])
    whole = {change.name for change in found if change.input == "criteria"}
    return tuple(change for change in found if change.input != "judge" or change.criterion not in whole)


def _differing(then: tuple[Bundle, ...], now: tuple[Bundle, ...]) -> Iterator[Bundle]:
    """Yield the bundles that only one of the two records has. Usually both have the same objects."""
    old, new = ({id(bundle): bundle for bundle in bundles} for bundles in (then, now))
    both = old.keys() & new.keys()
    known, held = (
        {bundle.digest: bundle for key, bundle in bundles.items() if key not in both} for bundles in (old, new)
    )
    for one in known.keys() ^ held.keys():
        yield known.get(one) or held[one]


def criterion_of(change: Change) -> str:
    """Return the criterion that a change of the kind `criteria` or `judge` is about."""
    return change.criterion or change.name


def _compared(kind: Input, old: tuple[Bundle, ...], new: tuple[Bundle, ...], evalset: str) -> tuple[Change, ...]:
    """Return the changes of one kind of input. Results are cached, because the cases of a run share most bundles."""
    known = new[0].comparisons
    key = kind, evalset, tuple(map(id, old)), tuple(map(id, new))
    found = known.get(key)
    if found is None:
        if len(known) >= _COMPARISONS:
            known.clear()
        then, now = _placed(kind, old), _placed(kind, new)
        # The bundles are kept, so that no other gets the same id.
        found = known[key] = old, new, tuple(_changes(kind, then, now, evalset)) if then != now else ()
    return found[2]


def _placed(kind: Input, bundles: tuple[Bundle, ...]) -> dict[str, _Placed]:
    return {name: _Placed(value, bundle.file) for bundle in bundles for name, value in bundle.inputs[kind].items()}


def _changes(kind: Input, old: dict[str, _Placed], new: dict[str, _Placed], evalset: str) -> Iterator[Change]:
    if kind == "criteria":
        yield from _of_criteria(old, new)
        return
    if kind == "packages":
        yield from _of_packages(old, new)
        return
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before is None or after is None or before.value != after.value:
            # A new file in a folder that counts.
            of: Input = "agent_folder" if kind == "agent_file" and before is None else kind
            files = {"name": name, "evalset": evalset, "source": ({**old, **new})[name].file}
            criterion = name.rpartition(" ")[0] if kind == "judge" else ""
            yield Change(of, name, files[KINDS[of].place], KINDS[of].effect, criterion)


def _of_criteria(old: dict[str, _Placed], new: dict[str, _Placed]) -> Iterator[Change]:
    """Yield one change for each option that differs, or for the whole criterion if it is new or removed."""
    place = next((placed.file for placed in (*new.values(), *old.values())), None)
    # Names of criteria and of options may have blanks. Every criterion has a threshold.
    before, now = (
        {name.removesuffix(" threshold"): None for name in values if name.endswith(" threshold")}
        for values in (old, new)
    )
    for criterion in {**before, **now}:
        if criterion not in before or criterion not in now:
            # The score of a removed criterion is not needed.
            yield Change("criteria", criterion, place, "score" if criterion in now else "decide")
            continue
        own_code = f"{criterion} {CODE}" in {**old, **new}
        for name in (name for name in {**old, **new} if _criterion(name, {**before, **now}) == criterion):
            one, other = old.get(name), new.get(name)
            if one is None or other is None or one.value != other.value:
                effect: Effect = "score" if own_code else effect_of(criterion, name.removeprefix(f"{criterion} "))
                yield Change("criteria", name, place, effect, criterion)


def _of_packages(old: dict[str, _Placed], new: dict[str, _Placed]) -> Iterator[Change]:
    """Yield one change for each package with another version, or a single one for many of them."""
    before, now = ({name: placed.value for name, placed in values.items()} for values in (old, new))
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    texts = []
    for name in changed:
        if name == INTERPRETER:
            yield Change("packages", name, None, KINDS["packages"].effect)
        elif name not in before:
            texts.append(f"{name} {now[name]} is new")
        else:
            texts.append(f"{name} {before[name]} → {now[name]}" if name in now else f"{name} {before[name]} is gone")
    for text in texts if len(texts) <= _NAMED else [counted(len(texts), "package")]:
        yield Change("packages", text, None, KINDS["packages"].effect)


def _criterion(name: str, criteria: Iterable[str]) -> str:
    """Return the criterion in the name `CRITERION OPTION` of an input: the longest one with which it begins, or ""."""
    return max((one for one in criteria if name.startswith(f"{one} ")), key=len, default="")


def current_inputs(workspace: Workspace, state: Path, latest: Iterable[LatestRun] = ()) -> CurrentInputs:
    """Return the current inputs of a workspace.

    The options are those of the newest run with a verdict, with the project's current setting of `frozen`. `latest` are
    runs that have already been read.
    """
    options = Options.of_run(newest_options(state, latest), known_mode(workspace.root), FILE)
    environments = [agent_environment(agent.folder, os.environ).values for agent in workspace.agents]
    clean = Secrets([os.environ, *environments]).clean_data
    return CurrentInputs(workspace.root, workspace.agents, project_digests(state), clean, options)


def stale_cases(latest: Iterable[LatestRun], workspace: Workspace) -> dict[CaseName, Changes]:
    """Return the cases with stale verdicts and their changed inputs. Call it in a thread: it reads files."""
    runs = tuple(latest)
    if not runs:
        return {}
    stale: dict[CaseName, Changes] = {}
    now = current_inputs(workspace, state_of(runs[0].file), runs)
    entries = {entry.relative: _Entry(entry, now) for entry in workspace.evalsets}
    for run in runs:
        for one in run.executions:
            name, entry = one.ref.name, entries.get(one.ref.evalset_file)
            if entry is not None and (changes := entry.changes(run.summary, one)):
                stale[name] = tuple(dict.fromkeys((*stale.get(name, ()), *changes)))
    return stale


def stale_transcripts(cases: Iterable[StoredCase], workspace: Workspace, state: Path) -> dict[CaseName, Changes]:
    """Return the cases with stale transcripts and their changed inputs. Call it in a thread: it reads files."""
    stale: dict[CaseName, Changes] = {}
    now = current_inputs(workspace, state)
    entries = {entry.relative: _Entry(entry, now) for entry in workspace.evalsets}
    for case in cases:
        file = case.ref.evalset_file
        if case.started is not None and file in entries:
            config = started_config(case.started, case.planned.config_file)
            bundles = (started_case(case.started), *config, *case.inputs)
            if changes := entries[file].since(Record(file, bundles), case.planned):
                stale[case.ref.name] = changes
    return stale


class _Entry:
    """An evalset whose current cases are compared with recorded inputs."""

    def __init__(self, entry: EvalsetEntry, now: CurrentInputs) -> None:
        self._entry, self._now = entry, now
        self._numbers: Mapping[str, int] = {case.eval_id: case.index for case in entry.document.cases}
        self._has_scenarios = entry.document.mentions("cenario")
        self._shared: dict[tuple[object, ...], Changes] = {}
        """Cached changes of cases whose own text is unchanged, by their other inputs."""

    def changes(self, run: Summary, execution: Execution) -> Changes:
        """Return the changed inputs of an execution, or () if it never started."""
        if not execution.given and not execution.inputs:
            return ()  # An execution that never started has no inputs.
        key = self._other_inputs(run, execution)
        changes = None if key is None else self._shared.get(key)
        if changes is None:
            # Digests with another salt cannot be compared.
            record = run.record(execution, known=run.salt_id == self._now.digests.salt_id)
            changes = self.since(record, execution.planned)
            if key is not None:
                self._shared[key] = changes
        return changes

    def _other_inputs(self, run: Summary, execution: Execution) -> tuple[object, ...] | None:
        """Return a key of all inputs but the case, or None if the case may have changed or a user may be simulated.

        A simulated user decides which other inputs count.
        """
        planned, number = execution.planned, self._numbers.get(execution.ref.eval_id)
        if number is None or not planned.text or self._has_scenarios:
            return None
        if planned.text != self._now.text(self._entry.document, number):
            return None
        live = self._now.runs_live(self._entry, number)
        return run.run_id, execution.given[1:], id(execution.inputs), planned.case.agent, planned.matched_by, live

    def since(self, then: Record, planned: PlannedCase) -> Changes:
        """Return the inputs of a case that have changed since the record `then`, or () if the case no longer exists."""
        number = self._numbers.get(planned.case.eval_id)
        if number is None:
            return ()
        given = planned.case.agent if planned.matched_by == "given" else None
        return compare(then, self._now.record(self._entry, number, PastInputs(then, planned.text, given)))


def workspace_files(workspace: Workspace) -> tuple[Path, ...]:
    """Return the files that define a workspace (evalsets, configs, agents), even if they do not exist yet."""
    found = {entry.file for entry in workspace.evalsets}
    found |= {file for entry in workspace.evalsets for file in entry.criteria.config.files}
    parents = {entry.file.parent for entry in workspace.evalsets}
    folders = {folder for parent in parents for folder in up_to(parent, workspace.root)}
    found.update(folder / name for folder in folders for name in (*CONFIG_FILES, *DEFINITION_FILES))
    return tuple(sorted(found))


def input_files(latest: Iterable[LatestRun], workspace: Workspace) -> tuple[Path, ...]:
    """Return the files on which the verdicts of these runs depend, and folders in which such files may appear.

    Folders of installed packages are included. At most 20,000 paths are returned.
    """
    bundles = [bundle.inputs for run in latest for _, bundle in _recorded(run)]
    recorded = {workspace.root / name for inputs in bundles for kind in _BY_PATH for name in inputs.get(kind, ())}
    found = {workspace.root / FILE, *workspace_files(workspace), *recorded, *(path.parent for path in recorded)}
    interpreters = {packages.get(INTERPRETER) for inputs in bundles if (packages := inputs.get("packages"))}
    found.update(folder for python in interpreters if python for folder in package_folders(Path(python)))
    folders = {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
    found.update(
        above / name for folder in folders for above in up_to(folder, workspace.root) for name in (".env", ".venv")
    )
    return tuple(sorted(found)[:_MOST_FILES])


def touched_in(latest: Iterable[LatestRun], workspace: Workspace) -> dict[Path, Touched]:
    """Return the files that agents read and the folders that they listed in these runs, by agent folder.

    An agent is left out if it read no files. It is also left out if a record has one digest for many files, because
    that does not tell which files the agent read.
    """
    agents = {agent.name: agent.folder for agent in workspace.agents}
    found = {folder: Touched() for folder in agents.values()}
    unknown: set[Path] = set()
    for run in latest:
        for name, bundle in _recorded(run):
            if name not in agents:
                continue
            inputs = bundle.inputs
            files, folders = inputs.get("agent_file", {}), inputs.get("agent_folder", {})
            if any(scope == ALL and f"{folder}/" in files for folder, scope in folders.items()):
                unknown.add(agents[name])
            touched = found[agents[name]]
            touched.files.update(workspace.root / file for file, digest in files.items() if digest != LISTED)
            touched.folders.update(workspace.root / folder for folder, scope in folders.items() if scope == LISTED)
    return {folder: touched for folder, touched in found.items() if touched.files and folder not in unknown}


def _recorded(run: LatestRun) -> Iterator[tuple[str, Bundle]]:
    """Yield each agent with each of its different bundles of inputs in a run."""
    shared = {(one.ref.agent, id(one.inputs)): one.inputs for one in run.executions}
    found = {(agent, id(bundle)): bundle for (agent, _), inputs in shared.items() for bundle in inputs}
    for (agent, _), bundle in found.items():
        yield agent, bundle

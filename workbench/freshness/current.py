"""The current inputs of the verdicts in a project, read from its files and the environment.

They include the files of Python functions that judge or play the user. Verdicts of live cases do not depend on
recordings. The option `--frozen` is an input itself.
"""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import InterpreterError, agent_environment, choose_interpreter
from workbench.agents.python_source import function_file
from workbench.agents.workspace import EvalsetEntry
from workbench.criteria.description import JUDGE
from workbench.criteria.registry import CRITERIA
from workbench.events.events import Frozen
from workbench.files.criteria import CriteriaConfig, stored_config
from workbench.files.evalset import EvalsetDocument, case_or_none
from workbench.files.file_access import read_regular
from workbench.files.frozen_path import frozen_path
from workbench.files.metrics_config import own_entry
from workbench.files.plugins import module_file
from workbench.files.walk import relative_to
from workbench.freshness.agent_inputs import MANY_NAMES, AgentFiles, environment_bundles, packages_bundle
from workbench.judges.base import NotAvailableError, read_judge_options
from workbench.judges.kinds import FUNCTION, JUDGES, is_own, kind_of
from workbench.judges.scenario import full_scenario
from workbench.store.digests import Digests
from workbench.store.inputs import (
    KINDS,
    ONLY_SENT,
    Bundle,
    Input,
    Record,
    case_bundle,
    criteria_bundle,
    digest,
    readable,
    simulator_bundle,
)
from workbench.worker.missing import imports_of

ValueT = TypeVar("ValueT")
Clean = Callable[[Any], Any]
"""A function that removes secrets from JSON data, as in stored runs."""
TIMEOUT = "--timeout"
FROZEN, ON_MISS = "--frozen", "--on-miss"
_SOURCES: tuple[Input, ...] = ("agent_file", "function", "simulator")
"""Kinds of inputs among which are Python files, which may name environment variables."""
_OF_AGENT = frozenset({*_SOURCES, "agent_folder", "environment", "packages"})


@dataclass(frozen=True, slots=True)
class PastInputs:
    """The inputs of an earlier execution.

    `text` is the digest of the case's text, or "" if it is not known. `agent` is the agent named on the command line,
    or None for the evalset's own agent.
    """

    record: Record
    text: str = ""
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run that affect its verdicts."""

    isolation: Literal["case", "run"] = "case"
    timeout: float = 300.0
    python: Path | None = None
    frozen: str = ""
    """The mode of `--frozen`, "" for live runs."""
    on_miss: str = ""
    sent: tuple[str, ...] | None = None
    """The variables that are sent to another machine besides those of the `.env`, or None for this machine."""
    frozen_file: str | None = None
    """The file with the project's setting of `frozen`, or None if the mode does not come from it."""

    @classmethod
    def of_run(cls, kept: Mapping[str, Any], setting: str | None = None, file: str | None = None) -> "Options":
        """Return the options that a run recorded in `RunStarted.inputs`, with defaults for missing ones.

        `setting` is the project's current mode of `--frozen`, read from `file`, or None if it is not known. A setting
        that has changed since the run replaces the run's mode.
        """
        timeout, python = kept.get("timeout"), kept.get("python")
        frozen, then = str(kept.get("frozen") or ""), kept.get("project_frozen")
        if setting is not None and isinstance(then, str) and then != setting:
            frozen = setting
        return cls(
            "run" if kept.get("isolation") == "run" else "case",
            float(timeout) if isinstance(timeout, int | float) else cls().timeout,
            Path(python) if isinstance(python, str) else None,
            frozen,
            str(kept.get("on_miss") or ""),
            frozen_file=file if frozen == setting else None,
        )


class CurrentInputs:
    """The current inputs of the cases in `root`, each read on first use. Call all methods in a thread."""

    def __init__(
        self,
        root: Path,
        agents: Iterable[AgentFolder],
        digests: Digests,
        clean: Clean,
        options: Options | None = None,
    ) -> None:
        self.root = root
        self.digests = digests
        self._agents = {agent.name: agent for agent in agents}
        self._clean = clean
        self._options = options or Options()
        self._cached: dict[tuple[Any, ...], Any] = {}

    def record(self, entry: EvalsetEntry, index: int, then: PastInputs) -> Record:
        """Return the current inputs of the case at a position, including files and variables that `then` used."""
        is_simulated = bool(then.record.names("scenario"))
        return Record(
            entry.relative,
            (
                self.case(entry.document, index, then),
                *self._besides_case(entry, then, is_simulated=is_simulated, live=self.runs_live(entry, index)),
            ),
        )

    def runs_live(self, entry: EvalsetEntry, index: int) -> bool:
        """Return whether the agent would answer live, because the run or this case is not replayed."""
        now = self._options
        if not now.frozen or now.on_miss != "live":
            return not now.frozen
        ids = self._once(("ids", entry.relative), lambda: {case.index: case.eval_id for case in entry.document.cases})
        return runs_live(now.frozen, now.on_miss, frozen_path(entry.file, ids.get(index, "")))

    def planned(self, entry: EvalsetEntry, index: int | None, then: PastInputs) -> Record:
        """Return the current inputs for an execution that did not end. Of its case, they include at most the text."""
        text = {} if index is None else {"text": self.text(entry.document, index)}
        return Record(entry.relative, (Bundle({"case": text}), *self._besides_case(entry, then, is_simulated=True)))

    def _besides_case(
        self, entry: EvalsetEntry, then: PastInputs, *, is_simulated: bool, live: bool = False
    ) -> Iterator[Bundle]:
        agent = entry.agent if then.agent is None else self._agents.get(then.agent)
        config = entry.criteria.config
        yield from self._once(
            ("criteria", entry.relative, is_simulated), lambda: self.criteria(config, is_simulated=is_simulated)
        )
        counting = then.record.names("options")
        timed_out, missed = TIMEOUT in counting, ON_MISS in counting
        yield from self._once(
            ("options", timed_out, missed, live), lambda: self.options(timed_out=timed_out, missed=missed, live=live)
        )
        if self._options.frozen and not live:
            yield from frozen_bundles_like(then.record, self.root, self.digests)
        yield from self._once(
            ("other files", entry.relative, agent, is_simulated),
            lambda: self.other_files(config, agent, is_simulated=is_simulated),
        )
        yield self._once(("owner", agent), lambda: self.owner(agent))
        if agent is not None:
            # Usually all executions of a run share these bundles.
            used = (bundle.digest for bundle in then.record.bundles if not _OF_AGENT.isdisjoint(bundle.inputs))
            yield from self._once(("agent", agent, *used), lambda: self._of_agent(agent, then.record))

    def case(self, document: EvalsetDocument, index: int, then: PastInputs) -> Bundle:
        """Return the inputs of a case in the evalset, reusing those of `then` if the case's text is unchanged."""
        if then.text and self.text(document, index) == then.text:
            kept = next((bundle for bundle in then.record.bundles if "case" in bundle.inputs), None)
            if kept is not None:
                return kept
        return case_at(document, index, self._clean)

    def text(self, document: EvalsetDocument, index: int) -> str:
        """Return a digest of a case's text in the evalset."""
        content = document.text(index)
        if not document.editable:
            # In the old formats, the session is in another file.
            case = case_or_none(document, index)
            content += repr(case and case.session_input).encode("utf-8", "replace")
        return self.digests.text(content)

    def options(self, *, timed_out: bool, missed: bool = False, live: bool = False) -> tuple[Bundle, ...]:
        """Return the options of the run. If `--frozen` comes from the project's settings, it has a bundle of its own.

        The timeout counts only if the case reached it, and `--on-miss` only if a call was not in the recording. With
        `live`, the case has no recording and is not replayed.
        """
        now = replace(self._options, frozen="", frozen_file=None) if live else self._options
        values = {"--isolation": now.isolation} | ({TIMEOUT: readable(now.timeout)} if timed_out else {})
        values |= {ON_MISS: now.on_miss} if missed and now.frozen else {}
        replayed = {FROZEN: now.frozen} if now.frozen else {}
        if now.frozen_file is None:
            return (Bundle({"options": values | replayed}),)
        return Bundle({"options": values}), Bundle({"options": replayed}, now.frozen_file)

    def owner(self, agent: AgentFolder | None) -> Bundle:
        """Return the agent that runs an evalset. Without an agent, the bundle has no values."""
        return Bundle({"owner": {} if agent is None else {"agent": relative_to(agent.folder, self.root)}})

    def other_files(
        self, config: CriteriaConfig, agent: AgentFolder | None, *, is_simulated: bool
    ) -> tuple[Bundle, ...]:
        """Return the files of Python functions that judge. `is_simulated` adds functions that play the user."""
        bundles: list[Bundle] = []
        for kind, files in other_files(config, self.root, self.root if agent is None else agent.folder).items():
            if kind == "simulator" and not is_simulated:
                continue
            values = {relative_to(file, self.root): self.digests.file(file) for file in files}
            if KINDS[kind].place == "name":
                bundles.append(Bundle({kind: values}))
            else:
                bundles += (Bundle({kind: {name: value}}, name) for name, value in values.items())
        return tuple(bundles)

    def files(self, agent: AgentFolder) -> AgentFiles:
        """Return the files of an agent."""
        others = [other.folder for other in self._agents.values() if other.folder != agent.folder]
        return self._once(("files", agent), lambda: AgentFiles(agent.folder, self.root, others, self.digests))

    def environment(
        self, agent: AgentFolder, names: Collection[str], then: Record | None = None
    ) -> tuple[Bundle, Bundle]:
        """Return the variables of the agent's `.env`, and those of the process that it may use, including `names`.

        If the verdict with the inputs `then` was made on another machine, it depends only on the variables that were
        sent there. Without `then`, the options say which variables are sent.
        """
        found = self._once(("environment", agent), lambda: agent_environment(agent.folder, os.environ))
        sent: Collection[str] | None = self._options.sent
        if then is not None:
            recorded = then.names("environment")
            sent = recorded - {ONLY_SENT} if ONLY_SENT in recorded else None
        return environment_bundles(found, self.root, names, self.digests, sent)

    def packages(self, agent: AgentFolder) -> Bundle:
        """Return the interpreter and the package versions of an agent. Other machines must have the same ones."""

        def choose() -> Path:
            try:
                return choose_interpreter(agent.folder, self.root, self._options.python).path
            except InterpreterError:
                return self._options.python or Path()  # It has no packages.

        python = self._once(("python", agent), choose)
        return self._once(("packages", python), lambda: packages_bundle(python, self.root))

    def criteria(self, config: CriteriaConfig, *, is_simulated: bool) -> tuple[Bundle, Bundle]:
        """Return the criteria, and with `is_simulated` the settings of the simulated user."""
        file = None if config.path is None else relative_to(config.path, self.root)
        simulator = self._clean(config.user_simulator_config) if is_simulated else None
        stored = {item.name: item.value for item in config.criteria}
        as_stored = stored_config(self._clean(stored), self._clean(config.custom_metrics), None)
        return criteria_bundle(as_stored, file), simulator_bundle(simulator, file)

    def _of_agent(self, agent: AgentFolder, then: Record) -> tuple[Bundle, ...]:
        files = self.files(agent).bundle_like(_values(then, "agent_file"), _values(then, "agent_folder"))
        names = then.names("environment")
        if MANY_NAMES in names:
            files_then = (name for kind in _SOURCES for name in then.names(kind))
            names |= self.files(agent).names_in_sources(self.root / name for name in files_then)
        return *self.environment(agent, names, then), self.packages(agent), files

    def _once(self, key: tuple[Any, ...], make: Callable[[], ValueT]) -> ValueT:
        if key not in self._cached:
            self._cached[key] = make()
        found: ValueT = self._cached[key]
        return found


def case_at(document: EvalsetDocument, index: int | None, clean: Clean) -> Bundle:
    """Return the inputs of the case at a position.

    For a broken case, they are only a digest of its text. If `index` is None, there are none.
    """
    case = case_or_none(document, index)
    if case is None:
        broken = {} if index is None else {"broken": digest(document.text(index).decode("utf-8", "replace"))}
        return Bundle({"case": broken, "session": {}, "scenario": {}, "expected": {}})
    scenario = None if case.scenario is None else full_scenario(case.scenario)
    turns = None if case.turns is None else clean(list(case.turns))
    session, state = clean(case.session_input or {}), clean(case.final_session_state)
    given = clean(case.dataset_case)
    return case_bundle(turns, clean(scenario), session, clean(list(case.rubrics)), state, given)


def _values(record: Record, kind: Any) -> Mapping[str, str]:
    return {name: value for bundle in record.bundles for name, value in bundle.inputs.get(kind, {}).items()}


RECORDING = "recording"
"""The name of the frozen file among the inputs. Files beside it are listed under their own names."""
_BESIDE = re.compile(r"[0-9a-f]{20}\.json")
_NAMED = re.compile(rb'_in"\s*:\s*"([0-9a-f]{20}\.json)"')
_DECLARATION, _CODE = "declaration of ", "code of "
_DIFFERS, _EQUAL = "differs from the agent's", "equals the agent's"


def runs_live(mode: str, on_miss: str, recording: Path) -> bool:
    """Return whether a case of a frozen run runs live, because it has no recording and `--on-miss` is `live`."""
    return bool(mode) and on_miss == "live" and not os.path.lexists(recording)


def recording_files(file: Path) -> tuple[Path, ...]:
    """Return a frozen file and the files with large values that it names, or only the file if it cannot be read."""
    try:
        return file, *files_beside(file, read_regular(file))
    except (OSError, ValueError):
        return (file,)


def files_beside(file: Path, content: bytes) -> Sequence[Path]:
    """Return the files with large values that the content of a frozen file names, sorted."""
    return sorted(file.with_name(name.decode("ascii")) for name in set(_NAMED.findall(content)))


def frozen_bundle(
    files: Sequence[Path], root: Path, digests: Digests, frozen: Frozen, changed: Collection[Path] = (), mark: str = ""
) -> Bundle:
    """Return the inputs of a case that was replayed from `files` (as in `recording_files`).

    Tools that differ from the recorded ones are inputs, too. Files in `changed` have the value `mark` instead of a
    digest.
    """
    values = {path.name: mark if path in changed else digests.file(path) for path in files}
    values[RECORDING] = values.pop(files[0].name)
    for tool in frozen.drifted:
        values[f"{_DECLARATION if tool in frozen.redeclared else _CODE}{tool}"] = _DIFFERS
    return Bundle({"frozen": values}, relative_to(files[0], root))


def frozen_bundles_like(then: Record, root: Path, digests: Digests) -> tuple[Bundle, ...]:
    """Return the current values of the recordings in `then`.

    A tool that differed from its recording counts as equal now, so the verdict is stale until the case is frozen again.
    """
    found = []
    for bundle in (bundle for bundle in then.bundles if "frozen" in bundle.inputs):
        if bundle.file is not None:
            file = root / bundle.file
            values = {}
            for name in bundle.inputs["frozen"]:
                if name.startswith((_DECLARATION, _CODE)):
                    values[name] = _EQUAL
                else:
                    values[name] = digests.file(file.with_name(name) if _BESIDE.fullmatch(name) else file)
            bundle = Bundle({"frozen": values}, bundle.file)
        found.append(bundle)
    return tuple(found)


_NAME = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")


def other_files(config: CriteriaConfig, root: Path, folder: Path) -> dict[Input, list[Path]]:
    """Return the files of Python functions, sorted, by kind of input. `folder` is the agent's.

    Files of the kind `function` are those of custom metrics and judges, and the modules of the project that they
    import. Files of the kind `simulator` count only for cases with a simulated user.
    """
    named = [root / file for entry in config.custom_metrics.values() if (file := own_entry(entry).get("file"))]
    values = [{item.name: item.value for item in config.criteria}, config.custom_metrics]
    return {
        "function": sorted({*_files(values, root, folder, named), *_plugin_files(config)}),
        "simulator": _files(config.user_simulator_config, root, folder),
    }


def _files(settings: Any, root: Path, folder: Path, named: Iterable[Path] = ()) -> list[Path]:
    names = {text.removeprefix(FUNCTION) for text in _texts(settings)}
    files = {*named, *(function_file(name, root, folder) for name in names if _NAME.fullmatch(name))}
    start = [str(file) for file in files if file is not None]
    return sorted(Path(source.file) for source in imports_of(start, str(folder), str(root)).sources)


def _plugin_files(config: CriteriaConfig) -> Iterator[Path]:
    for criterion in config.criteria:
        if criterion.name in CRITERIA.others() and (info := CRITERIA.get(criterion.name)) is not None:
            yield from _modules(CRITERIA.extension(criterion.name).value, info.score)
        options = criterion.options.get(JUDGE)
        if JUDGES.others() and isinstance(options, dict):
            with contextlib.suppress(NotAvailableError, ValueError):
                kind = kind_of(read_judge_options(options).model)
                if not is_own(kind):
                    yield from _modules(JUDGES.extension(kind.name).value, kind.connect)


def _modules(*values: str) -> Iterator[Path]:
    for value in values:
        with contextlib.suppress(ImportError):
            yield module_file(value.partition(":")[0])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)

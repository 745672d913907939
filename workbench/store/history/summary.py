"""Summaries of runs for lists and comparisons, built from events.

The database stores them with the events. The events stay the source of truth: damaged rows are made from them again.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

from workbench.events.event_json import fields_as_json
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FilesRead,
    MetricScored,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files.invocation import texts, tool_steps
from workbench.store.execution import CaseRecord, Execution, Turn, apply_to_case
from workbench.store.inputs import Bundle, Record, RunInputs, digest, started_case, started_config
from workbench.store.rates import case_votes
from workbench.store.reasons import is_without_model, judged_by
from workbench.text.json_values import mapping, short_json

STATUSES: tuple[CaseStatus, ...] = get_args(CaseStatus)
_ExecutionT = TypeVar("_ExecutionT", bound=Execution)
_OfCase: TypeAlias = CaseStarted | TurnStarted | TurnFinished | MetricScored | CaseFinished


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list. Its database row has the fields up to `resumed` as JSON.

    - `path`: names the run (`workbench.store.database.database.run_path`), or is the result file of another program.
    - `seconds`: None if the end of the run is not stored, or if another program made the run.
    - `counts`: number of executions by status. `no_verdict`: number of executions without an end.
    - `decided`: digest of the cases that the run decided. `votes`: how many of them passed, one vote per case
      (`workbench.store.rates`).
    - `calls`, `tokens`: usage of the agents' models.
    - `dirty`: whether files differed from the commit; None if that is not known.
    - `by_function`: whether a function judged anything. `other_criteria`: whether criteria were changed for this run.
    - `injected`: whether faults were injected into calls. `fork`: the run that it forks, or "".
    - `frozen`: number of executions that were replayed. `resumed`: when the run was resumed, each time.
    - `made_by`: "" for our runs, else "adk" or "agents-cli".
    - `better`: how many more cases passed than in the last run of the same cases, one vote per case. None without
      such a run.
    - `trouble`: why the run cannot be read.
    """

    run_id: str
    path: str = ""
    started: str = ""
    seconds: float | None = None
    interrupted: bool = False
    scored_from: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    no_verdict: int = 0
    decided: str = ""
    votes: float = 0.0
    calls: int = 0
    tokens: int = 0
    commit: str = ""
    dirty: bool | None = None
    agents: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    by_function: bool = False
    other_criteria: bool = False
    injected: bool = False
    fork: str = ""
    frozen: int = 0
    resumed: tuple[str, ...] = ()
    made_by: str = ""
    better: float | None = None
    trouble: str = ""

    @property
    def file(self) -> Path:
        """The path that names the run, or that of a result file."""
        return Path(self.path)

    @property
    def is_foreign(self) -> bool:
        """Whether another program made the run."""
        return bool(self.made_by)

    @property
    def ended(self) -> bool:
        """Whether the run has ended, as far as stored. Runs of other programs always have."""
        return self.is_foreign or self.seconds is not None

    @property
    def name(self) -> str:
        """The name of the run for `open_summary`: its ID, or the path of a result file."""
        return self.path if self.is_foreign else self.run_id

    @property
    def total(self) -> int:
        """Number of cases, counting repeats."""
        return sum(self.counts.values())

    @property
    def outcomes(self) -> dict[str, int]:
        """The counts by status. Executions that the run never reached count as `not_run`, not as `cancelled`."""
        return split_unreached(self.counts, self.no_verdict if self.seconds is None else 0)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object that is stored in its database row."""
        return {name: getattr(self, name) for name in _LISTED_FIELDS}

    @classmethod
    def from_json(cls, text: str, path: str) -> "ListedRun":
        """Return the run from the JSON of its row, where missing values are null.

        Raises:
            ValueError, TypeError: The text has another form.
        """
        data = json.loads(text)
        if not isinstance(data, dict) or not isinstance(data.get("run_id"), str):
            raise ValueError("the entry of the run is malformed")
        known = {name: data[name] for name in _LISTED_FIELDS if data.get(name) is not None}
        known |= {name: tuple(known.get(name, ())) for name in ("agents", "files", "resumed")}
        return cls(**known, path=path)


_LISTED_FIELDS = tuple(
    each.name for each in fields(ListedRun) if each.name not in ("path", "made_by", "better", "trouble")
)


class RunBundles:
    """The distinct bundles of inputs of a run, as JSON text by number.

    Most belong to one case and are rarely needed, so each is parsed on first use.
    """

    def __init__(self, texts: Sequence[str] | Mapping[int, str] = ()) -> None:
        self.texts = texts
        self._parsed: dict[int, Bundle] = {}
        self._shared: dict[tuple[int, ...], Inputs] = {}

    def __getitem__(self, number: int) -> Bundle:
        """Return the bundle with this number. A bundle that cannot be read is empty."""
        found = self._parsed.get(number)
        if found is None:
            try:
                found = Bundle.from_json(json.loads(self.texts[number]))
            except (LookupError, ValueError, TypeError):
                found = Bundle({})
            self._parsed[number] = found
        return found

    def inputs(self, numbers: Iterable[int]) -> "Inputs":
        """Return the bundles with these numbers. Executions with the same inputs share one object."""
        wanted = tuple(numbers)
        found = self._shared.get(wanted)
        if found is None:
            found = self._shared[wanted] = Inputs(self, wanted)
        return found


class Inputs(Collection[Bundle]):
    """Some bundles of a run, selected by number and parsed on first use."""

    __slots__ = ("_run", "numbers")

    def __init__(self, run: RunBundles, numbers: tuple[int, ...]) -> None:
        self._run, self.numbers = run, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Bundle]:
        return map(self._run.__getitem__, self.numbers)

    def __repr__(self) -> str:
        return f"Inputs{self.numbers}"

    def __contains__(self, bundle: object) -> bool:
        return any(bundle == one for one in self)


@dataclass
class Summary:
    """Summary of one run, with its executions in plan order. `seconds` is None if the end of the run is not stored."""

    run_id: str = ""
    root: str = ""
    started: str = ""
    scored_from: str = ""
    versions: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    git: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    interrupted: bool = False
    until_sure: float | None = None
    salt_id: str = ""
    """Identifies the salt of its input digests; "" if it is not known."""
    has_verdicts: bool = True
    """Whether the cases of the run have verdicts. Cases of agents-cli have only scores."""
    fork: dict[str, Any] = field(default_factory=dict)
    """The fork that its executions try, as JSON of `ForkOf`; {} for all other runs."""
    options: dict[str, Any] = field(default_factory=dict)
    """Run options that affect results."""
    resumed: list[str] = field(default_factory=list)
    """When the run was resumed, each time (UTC, ISO 8601)."""
    bundles: RunBundles = field(default_factory=RunBundles)
    executions: dict[CaseRef, Execution] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """Messages about parts of the run that could not be read."""

    def counts(self) -> dict[str, int]:
        """Return the number of executions by status."""
        found: dict[str, int] = dict.fromkeys(STATUSES, 0)
        for execution in self.executions.values():
            found[self.status_of(execution)] += 1
        return found

    def status_of(self, execution: Execution) -> CaseStatus:
        """Return the status of an execution.

        An execution without an end is cancelled. If the run is complete, that end was lost, so the status is an error.
        """
        return "error" if self.is_complete and not execution.finished else execution.status

    def outcome_counts(self) -> dict[str, int]:
        """Return the number of executions by status. If the run has no end, those without an end count as `not_run`."""
        return split_unreached(self.counts(), self.unreached if self.seconds is None else 0)

    def record(self, execution: Execution, *, known: bool = True) -> Record:
        """Return the recorded inputs of an execution. If not `known`, return only those from evalset and config."""
        given = map(self.bundles.__getitem__, execution.given)
        return Record(execution.ref.evalset_file, (*given, *(execution.inputs if known else ())))

    @property
    def is_complete(self) -> bool:
        """Whether the run ended without being interrupted."""
        return self.seconds is not None and not self.interrupted

    @property
    def is_done(self) -> bool:
        """Whether nothing of the run is left to resume."""
        return self.is_complete and all(execution.state != "cancelled" for execution in self.executions.values())

    @property
    def unreached(self) -> int:
        """Number of executions without an end."""
        return sum(not execution.finished for execution in self.executions.values())

    @property
    def has_faults(self) -> bool:
        """Whether faults were injected into its calls."""
        return bool(self.options.get("inject"))

    @property
    def is_matrix(self) -> bool:
        """Whether the executions of the run are those of a matrix of tool faults."""
        return any(execution.planned.fault is not None for execution in self.executions.values())


def split_unreached(counts: Mapping[str, int], unreached: int) -> dict[str, int]:
    """Return the counts by status with `unreached` of the cancelled executions counted as `not_run`.

    At most all cancelled executions are moved, since the two numbers may come from different files.
    """
    cancelled = counts.get("cancelled", 0)
    unreached = max(min(unreached, cancelled), 0)
    return {**counts, "cancelled": cancelled - unreached, "not_run": unreached}


def listed_run(summary: Summary, run_id: str, path: str = "", made_by: str = "") -> ListedRun:
    """Return the entry of a run in the list."""
    executions = summary.executions.values()
    votes = case_votes(executions)
    return ListedRun(
        run_id,
        path,
        summary.started,
        None if made_by else summary.seconds,
        summary.interrupted,
        summary.scored_from,
        summary.counts(),
        summary.unreached,
        digest(sorted(votes)),
        math.fsum(votes.values()),
        sum(one.usage.model_calls for one in executions),
        sum(one.usage.input_tokens + one.usage.output_tokens for one in executions),
        summary.git.get("commit") or "",
        summary.git.get("dirty"),
        tuple(sorted({ref.agent for ref in summary.executions})),
        tuple(sorted({ref.evalset_file for ref in summary.executions})),
        any(is_without_model(judged_by(score.details)) for one in executions for score in one.scores.values()),
        any(one.planned.criteria_changed for one in executions),
        summary.has_faults,
        str(summary.fork.get("run_id") or ""),
        sum(one.frozen is not None for one in executions),
        tuple(summary.resumed),
        made_by,
    )


class SummaryBuilder:
    """Builder of a summary from the events of a run. Details of executions that have ended can be read from `file`."""

    def __init__(self, file: Path | None = None) -> None:
        self.texts: list[str] = []
        """The texts of the bundles."""
        self.summary = Summary(bundles=RunBundles(self.texts))
        self._file = file
        self._run_inputs = RunInputs()
        self._numbers: dict[str, int] = {}
        """Number of each bundle in the summary, by its text."""
        self._configs: dict[str, tuple[int, ...]] = {}
        """Numbers of the bundles of each config."""
        self._inputs: dict[tuple[int, ...], Inputs] = {}
        """Inputs by the run's own numbers, which many executions share."""

    def take(self, event: Event) -> None:
        """Add one event. Parts of unexpected form are ignored."""
        try:
            match event:
                case MetricScored() | CaseStarted() | TurnStarted() | TurnFinished() | CaseFinished():
                    self._take_of_case(event)
                case RunStarted() | RunResumed() | RunFinished() | FilesRead() | RepeatsDropped():
                    self._take_of_run(event)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return  # What agents say may have any form.

    def _take_of_run(self, event: Event) -> None:
        summary = self.summary
        match event:
            case RunStarted():
                self._start(event)
            case FilesRead():
                self._run_inputs.extend(event.bundles)
            case RepeatsDropped():
                for ref in event.cases:
                    summary.executions.pop(ref, None)
            case RunResumed():
                summary.seconds, summary.interrupted = None, False
                summary.resumed.append(event.started)
            case RunFinished():
                summary.seconds, summary.interrupted = float(event.duration_seconds), event.interrupted
                summary.git = event.git
                for agent, files in event.sources.items():
                    known = {**mapping(summary.sources.get(agent)), **mapping(files)}
                    summary.sources = {**summary.sources, agent: known}

    def _start(self, event: RunStarted) -> None:
        summary = self.summary
        for name in ("run_id", "root", "started", "scored_from", "versions", "models", "sources", "until_sure"):
            setattr(summary, name, getattr(event, name))
        self._run_inputs = RunInputs(event.inputs)
        summary.salt_id, summary.options = self._run_inputs.salt_id, self._run_inputs.options
        fork = event.cases[0].fork if event.cases else None
        summary.fork = {} if fork is None else fields_as_json(fork)
        for planned in event.cases:
            summary.executions[planned.case] = self._new(planned, Execution)

    def _new(self, planned: PlannedCase, kind: type[_ExecutionT]) -> _ExecutionT:
        run = self.summary
        apart = run.has_faults or bool(run.fork)
        rescored = bool(run.scored_from)
        return kind(planned, run_id=run.run_id, until_sure=run.until_sure, apart=apart, rescored=rescored)

    def _take_of_case(self, event: _OfCase) -> None:
        record = self._record(event.case, afresh=isinstance(event, CaseStarted))
        record.resumed = self.summary.resumed[-1] if self.summary.resumed else ""
        try:
            apply_to_case(record, event, self._run_inputs)
            if isinstance(event, CaseStarted):
                record.given = self._given(event, record.planned.config_file)
            elif isinstance(event, CaseFinished) and (record.started_at is not None or record.turns):
                record.steps = _steps(record.turns)
        finally:
            if isinstance(event, CaseFinished):
                record.inputs = self._inputs_of(event)
                self.summary.executions[event.case] = record.without_details(self._file, 0, reasons=True)

    def _record(self, ref: CaseRef, *, afresh: bool) -> CaseRecord:
        """Return the record of an execution. If a new attempt begins (`afresh`), the record has no details yet."""
        known = self.summary.executions.get(ref)
        if isinstance(known, CaseRecord) and not afresh:
            return known
        made = self._new(PlannedCase(ref, None, "not known") if known is None else known.planned, CaseRecord)
        if known is not None and known.finished and not afresh:
            # The start of another attempt is lost.
            made.take_verdict(known)
            made.scores = dict(known.scores)
        self.summary.executions[ref] = made
        return made

    def _given(self, event: CaseStarted, config: str | None) -> tuple[int, ...]:
        given = self._numbers_of([started_case(event)])
        simulator = None if event.scenario is None else [event.simulator]
        # Nearly all cases of a run have the same config.
        key = short_json([event.criteria, event.custom_metrics, simulator, config])
        if key not in self._configs:
            self._configs[key] = self._numbers_of(started_config(event, config))
        return given + self._configs[key]

    def _inputs_of(self, event: CaseFinished) -> Inputs:
        found = self._inputs.get(event.inputs)
        if found is None:
            numbers = self._numbers_of(self._run_inputs.bundles_of(event.inputs))
            found = self._inputs[event.inputs] = self.summary.bundles.inputs(numbers)
        return found

    def _numbers_of(self, bundles: Iterable[Bundle]) -> tuple[int, ...]:
        numbers = []
        for text in (bundle.as_text() for bundle in bundles):
            numbers.append(self._numbers.setdefault(text, len(self._numbers)))
            if len(self._numbers) > len(self.texts):
                self.texts.append(text)
        return tuple(numbers)


def summarize_events(events: Iterable[Event], file: Path | None = None) -> Summary:
    """Return the summary of a run, given its events. Details of its executions can be read from `file`."""
    builder = SummaryBuilder(file)
    for event in events:
        builder.take(event)
    return builder.summary


def _steps(turns: Iterable[Turn]) -> list[str]:
    finished = [turn.actual for turn in turns if turn.actual is not None]
    steps = (step for actual in finished for step in tool_steps(actual))
    found = [f"r{digest(result)}" if call is None else f"c{digest(call)}" for call, result in steps]
    return [*found, f"a{digest([texts(actual.get('final_response')) for actual in finished])}"]

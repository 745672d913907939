"""Summary of a run for lists and comparisons, built from the JSON of its events.

The database stores its rows with the events. The events stay the source of truth: damaged rows are made from them
again. They may be damaged or from another version, too, so each value is checked before use.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from workbench.causes.cause import Cause
from workbench.dependencies.record import Bundle, Record, digest
from workbench.dependencies.run_inputs import RunInputs
from workbench.event_json import sentences
from workbench.events import (
    FaultHandling,
    FaultOutcome,
    FaultWay,
    Frozen,
    MetricResult,
    ToolFault,
    Usage,
    drift_count,
    ended_as,
)
from workbench.execution import answer_digest, is_split
from workbench.json_values import mapping, objects, string
from workbench.judge.judge_details import judge_in, judged_by
from workbench.model.invocation import texts, tool_steps

STATUSES = ("passed", "failed", "error", "not_evaluated", "cancelled")
_MAX_TEXT = 2000
USAGE = tuple(item.name for item in fields(Usage))
"""The numbers of a row's `usage`, in order."""
_TYPES: dict[type, type] = {str: str, tuple: list}
_FROZEN = {item.name: _TYPES.get(type(item.default), int) for item in fields(Frozen)} | {"mode": str}
"""Field of `Frozen` → its type as JSON."""

Row = dict[str, Any]
"""One execution of a case, as a JSON object.

- `ref`: [agent, evalset_file, eval_set_id, eval_id, repeat].
- `status`: None until it ended.
- `error`: [kind, message] or None.
- `hint`: how to continue after the error. Missing without one.
- `seconds`, `calls`, `tokens`.
- `usage`: the numbers of `workbench.events.Usage` in order.
- `metrics`: name → [score, threshold, status, reason, judge, judged by].
- `given`: numbers of the summary's bundles with the inputs from evalset and config, the case first. [] if the case
  never started.
- `inputs`: numbers of the bundles with its other inputs. [] if unknown.
- `text`: digest of the case's text.
- `said`: digest of the agent's answers.
- `steps`: digests of tool calls (`c…`) and tool answers (`r…`) in order. None if unknown.
- `plan`: index into the summary's `plans`.
- `cause`: index into the summary's `causes`. None unless it failed or ended in an error.
- `frozen`: the fields of `workbench.events.Frozen` as JSON if it was replayed. Missing otherwise.
- `drifted`: how many changes a comparison with its recording found. Missing without one.
- `machine`: the other machine on which it ran. Missing for this machine.
- `unseen`: what it used that no comparison of inputs can see. Missing for none.
- `apart`: true if faults were injected into its calls, or if it tries a fork. Missing otherwise.
- `fault`: [tool, way] of its fault in a matrix of tool faults. Missing otherwise.
- `handling`: what the agent did about that fault, as `workbench.events.FaultHandling` with only the judge as details.
  Missing otherwise, and until it ended.
- `answer`: digest of the agent's answers and tool calls (`workbench.execution.answer_digest`). Missing until it ended.
- `split`: true if votes of a judge disagree. Missing otherwise.
- `size`: bytes of the events of its last attempt. Missing if unknown.
"""


@dataclass
class Summary:
    """Summary of one run.

    `rows` are in the order of the plan. `seconds` is None if the end of the run is not stored.
    """

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
    plans: list[list[Any]] = field(default_factory=list)
    """The distinct [config_file, criteria_source, criteria_changed, matched_by] of its cases."""
    causes: list[list[Any]] = field(default_factory=list)
    """The distinct causes of its failures, as `workbench.causes.cause.Cause.as_json`."""
    salt_id: str = ""
    """Identifies the salt of its input digests; "" for runs of old versions."""
    has_verdicts: bool = True
    """Whether its cases have verdicts, and not only scores, as those of agents-cli."""
    fork: dict[str, Any] = field(default_factory=dict)
    """The fork that its executions try, as JSON of `workbench.events.ForkOf`; {} for all other runs."""
    options: dict[str, Any] = field(default_factory=dict)
    """Run options that affect results."""
    bundles: Sequence[str] | Mapping[int, str] = field(default_factory=list)
    """The distinct bundles of inputs of its executions, as JSON text. Most belong to one case and are rarely needed."""
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """What of the run could not be read."""
    _read: dict[int, Bundle] = field(default_factory=dict)
    """Bundles that were parsed."""

    def counts(self) -> dict[str, int]:
        """Return the number of executions by status."""
        found = dict.fromkeys(STATUSES, 0)
        for row in self.rows.values():
            status = self.status_of(row)
            found[status if status in found else "error"] += 1
        return found

    def status_of(self, row: Row) -> str:
        """Return the status of a row.

        A row without an end is cancelled. If the run is complete, the row's end was lost, so it is an error.
        """
        return row["status"] or ("error" if self.is_complete else "cancelled")

    def outcome_counts(self) -> dict[str, int]:
        """Return the number of executions by status, with `not_run` for those without an end.

        `not_run` is 0 if the end of the run is stored.
        """
        return split_unreached(self.counts(), self.unreached if self.seconds is None else 0)

    def record(self, row: Row, *, known: bool = True) -> Record:
        """Return the recorded inputs of an execution. If not `known`, return only those from evalset and config."""
        given = tuple(map(self.bundle, row["given"]))
        return Record(row["ref"][1], (*given, *self.inputs(row)) if known else given)

    def inputs(self, row: Row) -> tuple[Bundle, ...]:
        """Return the known inputs besides those from evalset and config."""
        return tuple(map(self.bundle, row["inputs"]))

    def bundle(self, number: int) -> Bundle:
        """Return the bundle with this number. One that cannot be read is empty: nothing in it is known."""
        found = self._read.get(number)
        if found is None:
            try:
                found = Bundle.from_text(self.bundles[number])
            except (LookupError, ValueError, TypeError):
                found = Bundle({})
            self._read[number] = found
        return found

    @property
    def is_complete(self) -> bool:
        """Whether the run ended without being interrupted."""
        return self.seconds is not None and not self.interrupted

    @property
    def is_done(self) -> bool:
        """Whether nothing of the run is left to resume."""
        return self.is_complete and all(row["status"] != "cancelled" for row in self.rows.values())

    @property
    def unreached(self) -> int:
        """Number of executions without an end."""
        return sum(row["status"] is None for row in self.rows.values())

    @property
    def has_faults(self) -> bool:
        """Whether faults were injected into its calls."""
        return bool(self.options.get("inject"))

    @property
    def is_matrix(self) -> bool:
        """Whether its executions are those of a matrix of tool faults."""
        return any("fault" in row for row in self.rows.values())


def split_unreached(counts: Mapping[str, int], unreached: int) -> dict[str, int]:
    """Return the counts by status with `unreached` of the cancelled executions counted as `not_run`.

    At most all cancelled executions are moved, since the two numbers may come from different files.
    """
    cancelled = counts.get("cancelled", 0)
    unreached = max(min(unreached, cancelled), 0)
    return {**counts, "cancelled": cancelled - unreached, "not_run": unreached}


def has_verdict(row: Row) -> bool:
    """Return whether the case ended with a verdict.

    It was neither cancelled nor cut off by the end of its run, no faults were injected into its calls, and it tried no
    fork.
    """
    return bool(row["status"]) and row["status"] != "cancelled" and not is_apart(row)


def frozen_of(row: Row) -> Frozen | None:
    """Return how an execution was replayed, or None if its calls were live."""
    values = row.get("frozen")
    if not values:
        return None
    known: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in values.items()}
    return Frozen(**known)


_NO_FAULT: Any = ("", "")


def fault_of(row: Row) -> ToolFault | None:
    """Return the fault of an execution in a matrix of tool faults, or None for all others."""
    tool, way = row.get("fault", _NO_FAULT)
    return ToolFault(tool, way) if way in get_args(FaultWay) else None


def handling_of(row: Row) -> FaultHandling | None:
    """Return what the agent did about the fault, or None."""
    values = row.get("handling")
    if not values or values["outcome"] not in get_args(FaultOutcome):
        return None
    return FaultHandling(**{**values, "facts_without_source": tuple(values["facts_without_source"])})


def is_apart(row: Row) -> bool:
    """Return whether faults were injected, or a fork was tried.

    Such a result stands outside of all verdicts, rates and trends.
    """
    return bool(row.get("apart"))


class SummaryBuilder:
    """Builder of a summary from the JSON of a run's events, which it does not change."""

    def __init__(self) -> None:
        self.bundles: list[str] = []
        """The bundles of the summary."""
        self.summary = Summary(bundles=self.bundles)
        self._turns: dict[tuple[Any, ...], list[Any]] = {}
        """The invocations of the running cases, None for turns that did not finish."""
        self._run_inputs = RunInputs()
        self._bundles: dict[str, int] = {}
        """Number of each bundle in the summary, by its text."""
        self._inputs: dict[tuple[Any, ...], list[int]] = {}
        """Numbers in the summary by the run's own numbers, which many executions share."""
        self._metrics: dict[tuple[Any, ...], list[Any]] = {}
        """Verdicts shared by rows, to save memory."""
        self._failed: dict[tuple[Any, ...], dict[str, Cause]] = {}
        """The causes that the criteria of a running case gave so far."""
        self._causes: dict[Cause, int] = {}
        """Number of each cause in the summary."""
        self._takes: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "RunStarted": self._run_started,
            "CaseStarted": self._case_started,
            "TurnStarted": self._turn_started,
            "TurnFinished": self._turn_finished,
            "MetricScored": self._metric_scored,
            "CaseFinished": self._case_finished,
            "FilesRead": self._files_read,
            "RepeatsDropped": self._repeats_dropped,
            "RunResumed": self._run_resumed,
            "RunFinished": self._run_finished,
        }

    def take(self, data: Mapping[str, Any]) -> None:
        """Add one event. Events of unknown form are ignored."""
        take = self._takes.get(str(data.get("event")))
        try:
            if take is not None:
                take(data)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return

    def _run_started(self, data: Mapping[str, Any]) -> None:
        summary = self.summary
        for name in ("run_id", "root", "started", "scored_from"):
            setattr(summary, name, string(data.get(name)))
        for name in ("versions", "models", "sources"):
            setattr(summary, name, mapping(data.get(name)))
        summary.until_sure = number(data.get("until_sure"))
        self._run_inputs = RunInputs(mapping(data.get("inputs")))
        summary.salt_id, summary.options = self._run_inputs.salt_id, self._run_inputs.options
        places: dict[tuple[str | None, str, tuple[str, ...], str], int] = {}
        summary.fork = next((mapping(planned.get("fork")) for planned in data["cases"]), {})
        for planned in data["cases"]:
            config = planned.get("config_file")
            changed, rule = sentences(planned.get("criteria_changed")), string(planned.get("matched_by"))
            plan = config if isinstance(config, str) else None, string(planned.get("criteria_source")), changed, rule
            row = self._row(planned["case"])
            row["plan"], row["text"] = places.setdefault(plan, len(places)), string(planned.get("text"))
            if fault := mapping(planned.get("fault")):
                row["fault"] = [string(fault.get("tool")), string(fault.get("way"))]
        summary.plans = [[config, source, list(changed), rule] for config, source, changed, rule in places]

    def _run_resumed(self, data: Mapping[str, Any]) -> None:
        self.summary.seconds, self.summary.interrupted = None, False

    def _run_finished(self, data: Mapping[str, Any]) -> None:
        summary = self.summary
        summary.seconds, summary.interrupted = float(data["duration_seconds"]), bool(data.get("interrupted"))
        summary.git = mapping(data.get("git"))
        for agent, files in mapping(data.get("sources")).items():
            known = {**mapping(summary.sources.get(agent)), **mapping(files)}
            summary.sources = {**summary.sources, agent: known}

    def _repeats_dropped(self, data: Mapping[str, Any]) -> None:
        for case in data["cases"]:
            self.summary.rows.pop(row_key(case), None)

    def _case_started(self, data: Mapping[str, Any]) -> None:
        row = self._row(data["case"])
        row.update({**_new_row(row["ref"]), "plan": row["plan"], "text": row["text"]})
        self._turns[tuple(row["ref"])] = []
        self._failed.pop(tuple(row["ref"]), None)
        config = None if row["plan"] is None else self.summary.plans[row["plan"]][0]
        # Imported late: it needs pydantic, which is slow to load, and most lists of runs do not need it.
        from workbench.dependencies.case_inputs import started_bundles

        row["given"] = self._numbers(started_bundles(data, config))

    def _turn_started(self, data: Mapping[str, Any]) -> None:
        self._turns.setdefault(row_key(data["case"]), []).append(None)

    def _turn_finished(self, data: Mapping[str, Any]) -> None:
        turns = self._turns.setdefault(row_key(data["case"]), [])
        if turns and turns[-1] is None:
            turns.pop()
        turns.append(mapping(data["actual"]))

    def _metric_scored(self, data: Mapping[str, Any]) -> None:
        row, result = self._row(data["case"]), data["result"]
        judge = mapping(result.get("details")).get("judge")
        metric = (
            number(result.get("score")),
            number(result.get("threshold")),
            string(result["status"]),
            string(result.get("reason"))[:_MAX_TEXT],
            None if judge is None else _judge(judge),
            judged_by({"judge": judge}),
        )
        name = string(result["name"])
        row["metrics"][name] = self._metrics.setdefault(metric, list(metric))
        if is_split([mapping(one.get("details")) for one in (result, *(data.get("turns") or ()))]):
            row["split"] = True
        failed = self._failed.setdefault(tuple(row["ref"]), {})
        failed.pop(name, None)
        if metric[2] in ("failed", "error") and (cause := _criterion_cause(data)) is not None:
            failed[name] = cause

    def _case_finished(self, data: Mapping[str, Any]) -> None:
        row, error, usage = self._row(data["case"]), data.get("error"), mapping(data.get("usage"))
        row["error"] = None if error is None else [string(error["kind"]), string(error["message"])[:_MAX_TEXT]]
        if hint := string(mapping(error).get("hint"))[:_MAX_TEXT]:
            row["hint"] = hint
        row["status"] = ended_as(string(data["status"]) or "error", row["error"] and row["error"][0])
        row["cause"] = self._cause(row, None if error is None else string(error["message"]))
        row["seconds"] = float(data["duration_seconds"])
        row["calls"] = usage.get("model_calls", 0)
        row["tokens"] = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        row["usage"] = [usage.get(name, 0) for name in USAGE]
        if frozen := mapping(data.get("frozen")):
            known = {name: frozen[name] for name, kind in _FROZEN.items() if isinstance(frozen.get(name), kind)}
            row["frozen"] = {"mode": "tools", **known}
        if thawed := mapping(data.get("thawed")):
            row["drifted"] = drift_count(objects(thawed.get("changes")))
        if machine := string(data.get("machine")):
            row["machine"] = machine
        if unseen := data.get("unseen"):
            row["unseen"] = list(map(string, unseen))
        if handling := mapping(data.get("handling")):
            row["handling"] = _brief_handling(handling)
        numbers = tuple(number for number in data.get("inputs") or () if isinstance(number, int))
        if numbers not in self._inputs:
            self._inputs[numbers] = self._numbers(self._run_inputs.of(numbers))
        row["inputs"] = self._inputs[numbers]
        turns = self._turns.pop(tuple(row["ref"]), None)
        if turns is not None:
            finished = [turn for turn in turns if turn is not None]
            row["said"] = digest([texts(turn.get("final_response")) for turn in finished])
            row["steps"] = [step for turn in finished for step in step_digests(turn)]
            if row["status"] != "cancelled":
                broken = row["error"] if row["status"] != "failed" else None
                row["answer"] = answer_digest(turns, broken and broken[0])

    def _cause(self, row: Row, message: str | None) -> int | None:
        """Return the number of the cause of a case that has ended, or None if it does not fail."""
        failed = self._failed.pop(tuple(row["ref"]), {})
        if row["status"] not in ("failed", "error"):
            return None
        from workbench.causes.first_cause import first_cause

        cause = first_cause(row["status"], message, failed.items())
        if cause is None:
            return None
        number = self._causes.setdefault(cause, len(self._causes))
        if number == len(self.summary.causes):
            self.summary.causes.append(cause.as_json())
        return number

    def _files_read(self, data: Mapping[str, Any]) -> None:
        self._run_inputs.extend(data.get("bundles"))

    def _numbers(self, bundles: Iterable[Bundle]) -> list[int]:
        numbers = []
        for text in (bundle.as_text() for bundle in bundles):
            numbers.append(self._bundles.setdefault(text, len(self._bundles)))
            if len(self._bundles) > len(self.bundles):
                self.bundles.append(text)
        return numbers

    def _row(self, case: Mapping[str, Any]) -> Row:
        key = row_key(case)
        row = self.summary.rows.get(key)
        if row is None:
            row = self.summary.rows[key] = _new_row(list(key))
            if self.summary.has_faults or self.summary.fork:
                row["apart"] = True
        return row


def _brief_handling(handling: Mapping[str, Any]) -> dict[str, Any]:
    judge = judge_in(mapping(handling.get("details")))
    return {
        "outcome": string(handling.get("outcome")),
        "reason": string(handling.get("reason"))[:_MAX_TEXT],
        "details": {"judge": {name: judge.get(name) for name in ("model", "kind", "by")}} if judge else {},
        "facts_without_source": list(handling.get("facts_without_source") or ()),
    }


def summarize_events(events: Iterable[Mapping[str, Any]]) -> Summary:
    """Return the summary of a run, given the JSON of its events."""
    builder = SummaryBuilder()
    for event in events:
        builder.take(event)
    return builder.summary


def step_digests(actual: Mapping[str, Any]) -> list[str]:
    """Return the row's `steps` for one invocation."""
    return [f"r{digest(result)}" if call is None else f"c{digest(call)}" for call, result in tool_steps(actual)]


def number(value: Any) -> float | None:
    """Return a score, threshold or time from a file, or None if it is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _criterion_cause(scored: Mapping[str, Any]) -> Cause | None:
    """Return the cause that a failed criterion gives, from the JSON of a `MetricScored`."""
    # Imported late: it needs the descriptions of criteria, and most lists of runs read summaries only.
    from workbench.causes.first_cause import criterion_cause

    return criterion_cause(_result(scored["result"]), [_result(turn) for turn in scored.get("turns") or ()])


def _result(data: Mapping[str, Any]) -> MetricResult:
    status: Any = string(data.get("status"))
    score, threshold = number(data.get("score")), number(data.get("threshold"))
    return MetricResult(
        string(data.get("name")), status, score, threshold, string(data.get("reason")), mapping(data.get("details"))
    )


def _new_row(ref: list[Any]) -> Row:
    return {
        "ref": ref,
        "status": None,
        "error": None,
        "seconds": 0.0,
        "calls": 0,
        "tokens": 0,
        "metrics": {},
        "given": [],
        "inputs": [],
        "text": "",
        "said": "",
        "steps": None,
        "usage": [],
        "plan": None,
        "cause": None,
    }


def row_key(case: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of an execution in `Summary.rows`, from the JSON of its case."""
    return (case["agent"], case["evalset_file"], case["eval_set_id"], case["eval_id"], case.get("repeat", 1))


def _judge(judge: Any) -> str:
    known = mapping(judge)
    return " ".join(string(known.get(key)) for key in ("model", "base_url") if known.get(key)) or string(judge)

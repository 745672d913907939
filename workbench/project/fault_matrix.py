"""The matrix of tool faults: the tools that its cases call, and a plan in which each of them fails."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.agents.workspace import Workspace
from workbench.criteria.registry import descriptions
from workbench.events.events import CaseName, CaseRef, Event
from workbench.files.criteria import Criterion
from workbench.files.evalset import BrokenCaseError
from workbench.files.frozen_path import frozen_path
from workbench.files.own_file import OwnFileError
from workbench.freshness.staleness import stale_cases
from workbench.judges.clients import SERVICE_NAME
from workbench.run.fault_outcome import fault_question
from workbench.run.plan.plan import Plan, PlanEntry, new_run_id
from workbench.run.plan.preflight_cases import CallRange, criterion_calls, options_of
from workbench.run.plan.run_plan import fault_entries, matrix_of
from workbench.run.plan.source import AgentSource
from workbench.run.recordings.from_run import NotRecordedError, take_recording
from workbench.run.recordings.frozen_file import read_frozen
from workbench.run.recordings.recording import Origin
from workbench.store.execution import CaseRecord
from workbench.store.history.latest import LatestRun, latest_runs
from workbench.store.history.reading import case_events
from workbench.text.counting import counted


@dataclass(frozen=True, slots=True)
class Outlook:
    """The work that a matrix will do.

    `executions` has the number of executions of each case, 0 if it calls no tool. `tools` are the names of the tools
    that fail. `unknown` are the cases whose tools are not known. They first run once without faults, and do not count
    in `executions`, `tools` and `judges`. `blocked` is the number of cases that cannot start, `recorded` of those that
    have a recording. `judges` has the maximum number of calls to each judge.
    """

    executions: Mapping[CaseName, int]
    tools: tuple[str, ...]
    unknown: tuple[CaseName, ...]
    blocked: int
    recorded: int
    judges: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of executions."""
        return sum(self.executions.values())


class FaultMatrix:
    """A matrix of tool faults, in which each tool of each case fails in each way. `state` has the stored runs.

    If `first` is not None, run it and pass its records to `add`. Then run the plan that the method `plan` returns.
    """

    def __init__(self, plan: Plan, state: Path, workspace: Workspace) -> None:
        """Find the tools that each case calls: in its recording, else in its last stored run. Reads files.

        A stored run is ignored for a case if its verdict is stale for the files in `workspace`.
        """
        self._plan = plan
        self._state = state
        self._wanted = {
            entry.ref.name: entry.source.evalset.file
            for entry in plan.entries
            if entry.blocked is None and isinstance(entry.source, AgentSource)
        }
        """Case → its evalset."""
        self._tools = {name: tools for name, file in self._wanted.items() if (tools := _frozen_tools(file, name[1]))}
        unknown: dict[str, list[str]] = {}
        for file, eval_id in self._unknown():
            unknown.setdefault(file, []).append(eval_id)
        runs = list(latest_runs(state, unknown)) if unknown else []
        stale = stale_cases(runs, workspace)
        for run in runs:
            self._tools |= {name: tools for name, tools in self._stored_tools(run) if name not in stale}
        self._raised = 0

    @property
    def first(self) -> Plan | None:
        """The plan that runs the cases whose tools are unknown, once, live and without faults, or None."""
        unknown = self._unknown()
        if not unknown:
            return None
        entries = tuple(entry for entry in self._plan.entries if entry.ref.name in unknown)
        options = replace(self._plan.options, inject=None, frozen="")
        return replace(self._plan, run_id=new_run_id(), entries=entries, options=options)

    @property
    def first_message(self) -> str:
        """A message that says how many cases `first` runs, and why."""
        number = len(self._unknown())
        what = "runs" if number == 1 else "run"
        return f"{counted(number, 'case')} {what} once without faults first, to see which tools are called"

    def add(self, records: Iterable[CaseRecord]) -> None:
        """Add the tools that the cases of `first` called. May read files."""
        for record in records:
            events = [event for turn in record.turns for event in turn.calls]
            self._tools[record.ref.name] = self._called(record.ref, events)
            self._raised += record.state == "error" and not self._tools[record.ref.name]

    def plan(self) -> Plan:
        """Return the plan in which each tool of each case fails in each way.

        Raises:
            UsageFaultError: no case calls a tool.
        """
        return replace(matrix_of(self._plan, self._tools, self._raised), run_id=new_run_id())

    def outlook(self) -> Outlook:
        """Return what the matrix will do, as far as the tools are known. Reads files."""
        entries = list(fault_entries(self._plan, self._tools))
        runs = dict.fromkeys((name for name in self._wanted if name in self._tools), 0)
        judges: Counter[str] = Counter()
        for entry in entries:
            if entry.judging is not None and entry.planned.fault is not None:
                runs[entry.ref.name] += 1
                for criterion in fault_question(entry.planned.fault, entry.judging).criteria:
                    judges.update(_judge_calls(criterion, _turns(entry), all_votes=self._plan.options.all_votes))
        faults = [entry.planned.fault for entry in entries]
        return Outlook(
            executions=runs,
            tools=tuple(dict.fromkeys(fault.tool for fault in faults if fault is not None)),
            unknown=tuple(sorted(self._unknown())),
            blocked=faults.count(None),
            recorded=sum(frozen_path(file, name[1]).is_file() for name, file in self._wanted.items()),
            judges=judges,
        )

    def _unknown(self) -> set[CaseName]:
        return self._wanted.keys() - self._tools.keys()

    def _stored_tools(self, run: LatestRun) -> Iterator[tuple[CaseName, tuple[str, ...]]]:
        """Yield the tools that cases called in a stored run, except for cases that ended in an error without any call.

        The error may have prevented the calls.
        """
        found: dict[CaseName, tuple[str, ...]] = {}
        failed: set[CaseName] = set()
        for one in run.executions:
            name = one.ref.name
            with suppress(OSError, ValueError):
                events = list(case_events(run.file, [one.ref]))
                found[name] = (*found.get(name, ()), *self._called(one.ref, events))
                if one.state == "error":
                    failed.add(name)
        for name, tools in found.items():
            if tools or name not in failed:
                yield name, tools

    def _called(self, ref: CaseRef, events: Iterable[Event]) -> tuple[str, ...]:
        try:
            taken = take_recording(ref, events, self._state, Origin())
        except NotRecordedError:
            return ()
        return tuple(call.tool for call in taken.recording.calls)


def _turns(entry: PlanEntry) -> CallRange:
    """Return the number of turns of a case, as both ends of a range.

    A simulated conversation and a broken case count as one turn.
    """
    source, turns = entry.source, None
    if isinstance(source, AgentSource) and source.index is not None:
        with suppress(BrokenCaseError):
            turns = source.evalset.document.case(source.index).turns
    number = len(turns) if turns else 1
    return CallRange(number, number)


def _judge_calls(criterion: Criterion, turns: CallRange, *, all_votes: bool) -> dict[str, int]:
    info = descriptions()[criterion.name]
    if info.asks is None:
        return {}
    options = options_of(criterion)
    calls = criterion_calls(criterion, options.samples, turns, (), all_votes=all_votes)
    return {SERVICE_NAME if info.needs_service else options.model: calls.high}


def _frozen_tools(evalset: Path, eval_id: str) -> tuple[str, ...]:
    try:
        return tuple(call.tool for call in read_frozen(frozen_path(evalset, eval_id)).calls)
    except OwnFileError:
        return ()

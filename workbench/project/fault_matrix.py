"""The matrix of tool faults: which tools its cases call, and the plan that lets each of them fail."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from workbench.counting import counted
from workbench.engine.plan.fault_plan import matrix_of
from workbench.engine.plan.plan import Plan, new_run_id
from workbench.engine.plan.source import AgentSource
from workbench.events import CaseName, CaseRef, Event
from workbench.history.case_events import case_events
from workbench.history.latest import LatestRun, latest_runs
from workbench.history.state_dir import runs_dir
from workbench.model.own_file import OwnFileError
from workbench.recordings.from_run import NotRecordedError, take_recording
from workbench.recordings.frozen_file import read_frozen
from workbench.recordings.frozen_path import frozen_path
from workbench.recordings.recording import Origin
from workbench.store import CaseRecord


class FaultMatrix:
    """The matrix for the cases of `plan`. `state` is the state folder with the stored runs.

    Run `first`, if it is not None, and give its records to `add`. Then run the result of `plan`.
    """

    def __init__(self, plan: Plan, state: Path) -> None:
        """Find the tools that each case calls: in its recording, else in its last stored run. Reads files."""
        self._plan = plan
        self._state = state
        evalsets = {
            entry.ref.name: entry.source.evalset.file
            for entry in plan.entries
            if entry.blocked is None and isinstance(entry.source, AgentSource)
        }
        self._wanted = evalsets.keys()
        self._tools = {name: found for name, file in evalsets.items() if (found := _frozen_tools(file, name[1]))}
        unknown: dict[str, list[str]] = {}
        for file, eval_id in self._unknown():
            unknown.setdefault(file, []).append(eval_id)
        for run in latest_runs(state, unknown) if unknown else ():
            self._tools |= dict(self._stored_tools(run))

    @property
    def first(self) -> Plan | None:
        """The plan that runs the cases whose tools are unknown, once and without faults, or None."""
        unknown = self._unknown()
        if not unknown:
            return None
        entries = tuple(entry for entry in self._plan.entries if entry.ref.name in unknown)
        options = replace(self._plan.options, inject=None, frozen="")
        return replace(self._plan, run_id=new_run_id(), entries=entries, options=options)

    @property
    def first_message(self) -> str:
        """A sentence that says why `first` is run."""
        unknown = self._unknown()
        what = "runs" if len(unknown) == 1 else "run"
        return f"{counted(len(unknown), 'case')} {what} once without faults first, to see which tools are called"

    def add(self, records: Iterable[CaseRecord]) -> None:
        """Add the tools that the cases of `first` called. May read files."""
        for record in records:
            events = [event for turn in record.turns for event in turn.calls]
            self._tools[record.ref.name] = self._called(record.ref, events)

    def plan(self) -> Plan:
        """Return the plan with an execution for each case, tool and way to fail.

        Raises:
            UsageFaultError: no case calls a tool.
        """
        return replace(matrix_of(self._plan, self._tools), run_id=new_run_id())

    def _unknown(self) -> set[CaseName]:
        return self._wanted - self._tools.keys()

    def _stored_tools(self, run: LatestRun) -> Iterator[tuple[CaseName, tuple[str, ...]]]:
        """Yield the tools that cases called in a stored run.

        A case without any call that ended in an error is left out: the error may have come before the calls.
        """
        found: dict[CaseName, tuple[str, ...]] = {}
        failed: set[CaseName] = set()
        places = {ref: row["at"] for row, ref in zip(run.rows, run.refs, strict=True)}
        for row, ref in zip(run.rows, run.refs, strict=True):
            try:
                events = list(case_events(run.file, [ref], places.__getitem__))
            except (OSError, ValueError):
                continue
            found[ref.name] = (*found.get(ref.name, ()), *self._called(ref, events))
            if row["status"] == "error":
                failed.add(ref.name)
        for name, tools in found.items():
            if tools or name not in failed:
                yield name, tools

    def _called(self, ref: CaseRef, events: Iterable[Event]) -> tuple[str, ...]:
        try:
            taken = take_recording(ref, events, runs_dir(self._state), Origin())
        except NotRecordedError:
            return ()
        return tuple(call.tool for call in taken.recording.calls)


def _frozen_tools(evalset: Path, eval_id: str) -> tuple[str, ...]:
    """Return the tools in a case's recording; none if it has no recording, or one that cannot be read."""
    try:
        return tuple(call.tool for call in read_frozen(frozen_path(evalset, eval_id)).calls)
    except OwnFileError:
        return ()

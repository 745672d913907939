"""The flow of a case with an agent's part that a test plays."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.run.project import Project
from workbench.criteria.secrets import Secrets
from workbench.events.events import CallsRecorded, CaseError, CaseFinished, Event
from workbench.files.run_options import RunOptions
from workbench.run.conversation.case_flow import CaseFlow
from workbench.run.conversation.case_run import Execution
from workbench.run.conversation.transcript import RunContext, Transcript
from workbench.run.plan.run_plan import matrix_of
from workbench.run.processes.children import Children

INJECTED = {"kind": "tool", "tool": "find", "args": "a", "order": 0, "from": "injected", "error": {}}
ANSWER = {"final_response": {"parts": [{"text": "On 12 May"}]}}


class Part:
    """An agent's part with two attempts. `fault_in` is the attempt in which the agent calls the tool with the fault."""

    def __init__(self, execution: Execution, fault_in: int) -> None:
        self._execution, self._fault_in = execution, fault_in

    async def transcript(self) -> Transcript:
        for attempt in (1, 2):
            self._execution.begin("", None)
            calls = [INJECTED] if attempt == self._fault_in else []
            self._execution.emit(CallsRecorded(self._execution.ref, 0, json.dumps(calls)))
        return Transcript([ANSWER])

    def cancel(self, reason: CaseError, *, kill: bool) -> None: ...

    async def closed(self) -> None: ...

    async def finish(self) -> None: ...


@pytest.mark.parametrize(("fault_in", "outcome"), [(1, "not_called"), (2, "made_up")])
async def test_new_attempt_forgets_the_calls_of_the_last_one(project: Project, fault_in: int, outcome: str) -> None:
    project.agent("root_agent = str")
    project.cases("one")
    plan = project.plan()
    entry = matrix_of(plan, {plan.entries[0].ref.name: ["find"]}).entries[0]
    shown: list[Event] = []

    def environment(agent: str) -> Mapping[str, Any]:
        raise AssertionError("no judge is asked")

    async def with_inputs(finished: CaseFinished, transcript: Transcript, is_simulated: bool) -> CaseFinished:
        return finished

    async with Children() as children:
        context = RunContext(
            RunOptions(), children, shown.append, lambda: 0.0, Secrets([]), environment, with_inputs, root=plan.root
        )
        await CaseFlow(entry, context, lambda execution: Part(execution, fault_in), lambda: None).run()
    (finished,) = [event for event in shown if isinstance(event, CaseFinished)]
    assert finished.handling is not None
    assert finished.handling.outcome == outcome

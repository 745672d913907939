"""Plans for the matrix of tool faults."""

from dataclasses import replace

import pytest

from tests.run.project import Project, evalset, turn
from workbench.events.events import CaseError
from workbench.files.injection_rules import Injection
from workbench.files.run_options import RunOptions, UsageFaultError, stored_options
from workbench.run.fault_outcome import WAYS
from workbench.run.plan.run_plan import matrix_of

AGENT = "def root_agent(message, session): return 'ok'\n"
FILE = "desk/a.evalset.json"


@pytest.fixture
def desk(project: Project) -> Project:
    project.agent(AGENT)
    project.write(FILE, evalset("a", {"one": [turn("hi")], "two": [turn("hi")], "three": [turn("hi")]}))
    return project


def test_matrix_has_an_execution_for_each_case_tool_and_fault(desk: Project) -> None:
    plan = matrix_of(
        desk.plan(RunOptions(inject="matrix")), {(FILE, "one"): ["find", "refund"], (FILE, "two"): ["find"]}
    )
    found = [(entry.ref.eval_id, entry.planned.fault) for entry in plan.entries if entry.planned.fault is not None]
    assert [(case, fault.tool) for case, fault in found] == [
        *[("one", "find")] * len(WAYS),
        *[("one", "refund")] * len(WAYS),
        *[("two", "find")] * len(WAYS),
    ]
    assert [fault.way for _, fault in found[: len(WAYS)]] == list(WAYS)
    assert len({entry.ref for entry in plan.entries}) == len(plan.entries)
    assert plan.notices[-1].message == "1 case calls no tool and is left out"
    raised = matrix_of(desk.plan(), {(FILE, "one"): ["find"], (FILE, "two"): ["find"]}, 1)
    assert raised.notices[-1].message == "1 case ended with an error before any tool call and is left out"


def test_matrix_scores_no_criteria_but_keeps_them_for_the_judge(desk: Project) -> None:
    entry = matrix_of(desk.plan(), {(FILE, "one"): ["find"]}).entries[0]
    assert not entry.config.criteria
    assert entry.judging is not None
    assert len(entry.judging.criteria) == 2


def test_case_that_cannot_start_keeps_its_error(desk: Project) -> None:
    plan = desk.plan()
    blocked = replace(plan.entries[0], blocked=CaseError("config", "wrong"))
    found = matrix_of(replace(plan, entries=(blocked, *plan.entries[1:])), {(FILE, "two"): ["find"]})
    assert found.entries[0] is blocked
    assert len(found.entries) == 1 + len(WAYS)


def test_matrix_of_cases_without_tool_calls_is_refused(desk: Project) -> None:
    with pytest.raises(UsageFaultError, match="no case calls a tool") as caught:
        matrix_of(desk.plan(), {})
    assert caught.value.kind == "nothing"


def test_runs_store_what_was_injected() -> None:
    assert "inject" not in stored_options(RunOptions())
    assert stored_options(RunOptions(inject="matrix"))["inject"] == "matrix"
    assert stored_options(RunOptions(inject=Injection((), name="faults.json 12ab")))["inject"] == "faults.json 12ab"

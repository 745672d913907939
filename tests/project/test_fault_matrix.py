"""The matrix of tool faults with real ADK agents: one retries, one apologises, one invents."""

import json
from pathlib import Path

import pytest

from tests.injection.fault_agents import STYLES, write_project
from workbench import Project, RunOptions, UsageFaultError
from workbench.events import FaultOutcome
from workbench.history.run_names import run_ids
from workbench.injection.injection_file import parse_injection
from workbench.injection.matrix import WAYS
from workbench.rendering.fault_table import fault_rows
from workbench.store import Store

EXPECTED: dict[str, dict[str, FaultOutcome]] = {
    "retrying": dict.fromkeys(WAYS, "recovered"),
    "apologising": dict.fromkeys(WAYS, "reported"),
    "inventing": {**dict.fromkeys(WAYS, "made_up"), "error": "crashed", "timeout": "crashed"},
}


def outcomes(store: Store) -> dict[str, dict[str, FaultOutcome]]:
    rows = fault_rows(store.current_records())
    assert all(len(cell) == 1 for row in rows for cell in row.cells.values())
    return {row.agent: {way: cell[0].outcome for way, cell in row.cells.items()} for row in rows}


async def test_matrix_of_agents_that_retry_apologise_and_invent(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_project(tmp_path)
    async with Project.open(tmp_path) as project:
        plan = await project.plan(options=RunOptions(inject="matrix"))
        with pytest.raises(UsageFaultError, match="injects no faults"):
            project.run(plan)
        matrix = await project.fault_matrix(plan)
        # Nothing is stored yet, so each case runs once as usual, and this run counts.
        assert matrix.first is not None
        assert matrix.first_message == "3 cases run once without faults first, to see which tools are called"
        store = await project.run(matrix.first).result()
        assert {record.state for record in store.current_records()} == {"passed"}
        ordinary = store.run.run_id
        matrix.add(store.current_records())
        assert outcomes(await project.run(matrix.plan()).result()) == EXPECTED
        by_rules = [record for record in store.current_records() if record.handling and record.handling.details]
        assert {record.ref.agent for record in by_rules} == {"apologising", "inventing"}

        # The tools are known from the stored run now, and the matrix has not replaced the verdicts.
        assert (await project.fault_matrix(plan)).first is None
        assert {(verdict.status, verdict.run_id) for verdict in await project.status()} == {("passed", ordinary)}
        with pytest.raises(UsageFaultError, match="is not scored again"):
            await project.score()

        # With recordings, the tool is called in none of the executions.
        await project.freeze(ordinary)
        for style in STYLES:
            source = (tmp_path / style / "agent.py").read_text("utf-8")
            broken = source.replace("    return {", "    raise SystemExit(1)\n    return {", 1)
            (tmp_path / style / "agent.py").write_text(broken, "utf-8")
        frozen = await project.plan(options=RunOptions(inject="matrix", frozen="tools"))
        matrix = await project.fault_matrix(frozen)
        assert matrix.first is None
        assert outcomes(await project.run(matrix.plan()).result()) == EXPECTED
        assert sum(record.frozen.tools for record in store.current_records() if record.frozen) == 5 + 3

        # A file injects into an ordinary run. The call that is made again gets the recorded answer.
        rules = {"schema": "agent-workbench/inject/1", "rules": [{"tool": "*", "only": 1, "dropped": "no_answer"}]}
        injection = parse_injection(tmp_path / "faults.json", json.dumps(rules).encode())
        options = RunOptions(inject=injection, frozen="tools")
        await project.run(await project.plan("retrying", "apologising", options=options)).result()
        states = {record.ref.agent: record.metrics["response_match_score"].status for record in store.current_records()}
        assert states == {"retrying": "passed", "apologising": "failed"}
        assert {verdict.run_id for verdict in await project.status()} == {ordinary}
        assert len(run_ids(tmp_path / ".workbench")) == 4

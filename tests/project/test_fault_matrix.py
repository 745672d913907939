"""The matrix of tool faults with real agents: what they did, and which exit code that gives."""

import json
from pathlib import Path

import pytest

from tests.run.injection import eight_agents
from tests.run.injection.fault_agents import STYLES, write_project
from workbench import Project, RunOptions, UsageFaultError
from workbench.cli.exit_codes import exit_code
from workbench.events.events import FaultOutcome
from workbench.files.injection_rules import parse_injection
from workbench.results import faults
from workbench.run.fault_outcome import WAYS
from workbench.store.details import read_details
from workbench.store.history.run_names import run_ids
from workbench.store.store import Store

EXPECTED: dict[str, dict[str, FaultOutcome]] = {
    "retrying": dict.fromkeys(WAYS, "recovered"),
    "apologising": dict.fromkeys(WAYS, "reported"),
    "inventing": {**dict.fromkeys(WAYS, "made_up"), "error": "crashed", "timeout": "crashed"},
}


def outcomes(store: Store) -> dict[str, dict[str, FaultOutcome]]:
    rows = faults.fault_rows(store.current_records())
    assert all(len(cell) == 1 for row in rows for cell in row.cells.values())
    return {row.agent: {way: faults.outcomes(cell)[0].outcome for way, cell in row.cells.items()} for row in rows}


async def test_matrix_distinguishes_agents_that_retry_apologise_and_invent(tmp_path: Path) -> None:
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
        matrix.add(store.read_current())
        assert outcomes(await project.run(matrix.plan()).result()) == EXPECTED
        invented = [record.handling for record in store.current_records() if record.state == "failed"]
        assert {handling.facts_without_source for handling in invented if handling} == {("10:30",)}

        # The tools are known from the stored run now, and the matrix has not replaced the verdicts.
        assert (await project.fault_matrix(plan)).first is None
        assert {(verdict.status, verdict.run_id) for verdict in await project.status()} == {("passed", ordinary)}
        # Another agent may call other tools.
        agent = tmp_path / "retrying" / "agent.py"
        before = agent.read_text("utf-8")
        agent.write_text(before + "\n# changed\n", "utf-8")
        changed = (await project.fault_matrix(plan)).first
        assert changed is not None
        assert [entry.ref.agent for entry in changed.entries] == ["retrying"]
        agent.write_text(before, "utf-8")
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
        states = {
            record.ref.agent: read_details(record).metrics["response_match_score"].status
            for record in store.current_records()
        }
        assert states == {"retrying": "passed", "apologising": "failed"}
        assert {verdict.run_id for verdict in await project.status()} == {ordinary}
        assert len(run_ids(tmp_path / ".workbench")) == 4


BY_RULES: dict[str, FaultOutcome] = {
    "inventing": "made_up",
    "not_late": "not_evaluated",
    "polling": "not_evaluated",
    "inventing_first": "made_up",
    "retrying": "recovered",
    "other_tool": "recovered",
    "apologising": "reported",
    "unavailable": "reported",
}


@pytest.mark.parametrize("judge", [False, True])
async def test_invented_answer_never_counts_as_recovery(
    tmp_path: Path, judge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    eight_agents.write_project(tmp_path, judge=judge)
    async with Project.open(tmp_path) as project:
        matrix = await project.fault_matrix(await project.plan(options=RunOptions(inject="matrix")))
        assert matrix.first is not None
        matrix.add((await project.run(matrix.first).result()).read_current())
        store = await project.run(matrix.plan()).result()
    decided = {**BY_RULES, "not_late": "made_up", "polling": "made_up"} if judge else BY_RULES
    assert outcomes(store) == {style: dict.fromkeys(WAYS, outcome) for style, outcome in decided.items()}
    facts = {
        record.ref.agent: record.handling.facts_without_source for record in store.current_records() if record.handling
    }
    assert {agent for agent, found in facts.items() if found} == {"inventing", "polling", "inventing_first"}
    assert set(facts.values()) == {(), ("29 May",)}
    assert exit_code(store) == (1 if judge else 3)

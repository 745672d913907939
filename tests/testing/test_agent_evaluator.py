"""ADK's `AgentEvaluator`: a test module for ADK works with our import, and ours handles more."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import BAD, GOOD, RAISES, Project
from tests.testing.pytest_runs import run_pytest
from workbench.testing import AgentEvaluator

AGENT = '''
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Echo(BaseLlm):
    """Says what it is told, under a name."""

    model: str = "echo"
    lead: str = "You said"

    async def generate_content_async(self, llm_request, stream=False):
        said = [part.text for content in llm_request.contents if content.role == "user" for part in content.parts]
        answer = types.Part(text=f"{self.lead} {said[-1]}")
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


child = LlmAgent(name="child", model=Echo(lead="The child heard"))
root_agent = LlmAgent(name="parent", model=Echo(), sub_agents=[child])
'''

MODULE = """
import json
import pytest
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet
from {where} import AgentEvaluator


@pytest.mark.asyncio
async def test_single_file_is_evaluated():
    await AgentEvaluator.evaluate(agent_module="talker", eval_dataset_file_path_or_dir="talker/good.test.json")


@pytest.mark.asyncio
async def test_folder_fails_if_one_of_its_files_fails():
    with pytest.raises(AssertionError, match="response_match_score"):
        await AgentEvaluator.evaluate("talker", "talker", num_runs=1)


@pytest.mark.asyncio
async def test_sub_agent_is_evaluated():
    await AgentEvaluator.evaluate("talker.agent", "talker/sub/child.test.json", num_runs=1, agent_name="child")


@pytest.mark.asyncio
async def test_eval_set_object_is_evaluated():
    with open("talker/good.test.json") as file:
        eval_set = EvalSet.model_validate_json(file.read())
    config = EvalConfig(criteria={{"response_match_score": 0.9}})
    await AgentEvaluator.evaluate_eval_set("talker", eval_set, eval_config=config, output_file="rows.csv")
    with pytest.raises(AssertionError):
        config = EvalConfig(criteria={{"response_match_score": 0.9}})
        await AgentEvaluator.evaluate_eval_set("talker", eval_set, eval_config=config, agent_name="child")


@pytest.mark.asyncio
async def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="num_runs"):
        await AgentEvaluator.evaluate("talker", "talker/good.test.json", num_runs=0)
    with pytest.raises(ValueError, match="test.json"):
        await AgentEvaluator.evaluate("talker", "nothing_here")
    with pytest.raises((ValueError, OSError)):
        await AgentEvaluator.evaluate("talker", "")
    with pytest.raises(ValueError):
        await AgentEvaluator.evaluate("talker", "talker/good.test.json", agent_name="nobody")


def test_old_file_is_migrated():
    AgentEvaluator.migrate_eval_data_to_new_schema("old.test.json", "new.test.json")
    with open("new.test.json") as file:
        assert len(EvalSet.model_validate(json.load(file)).eval_cases) == 1
"""

OLD = [{"query": "hello", "expected_tool_use": [], "reference": "You said hello"}]


def turn(message: str, answer: str) -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": message}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
    }


@pytest.mark.parametrize("where", ["google.adk.evaluation.agent_evaluator", "workbench.testing"], ids=["adk", "ours"])
def test_adks_test_module_passes_after_changing_only_the_import(tmp_path: Path, where: str) -> None:
    project = Project(tmp_path)
    project.write("talker/__init__.py", "from . import agent\n")
    project.write("talker/agent.py", AGENT)
    project.evalset(GOOD, path="talker/good.test.json")
    project.evalset(GOOD, BAD, path="talker/more/bad.test.json")
    child = {"eval_id": "child", "conversation": [turn("hello", "The child heard hello")]}
    project.evalset(child, path="talker/sub/child.test.json")
    (tmp_path / "nothing_here").mkdir()
    (tmp_path / "old.test.json").write_text(json.dumps(OLD), encoding="utf-8")
    project.write("conftest.py", "import tests.criteria.no_services\n")
    project.write("test_talker.py", MODULE.format(where=where))
    plugins = ("workbench.testing.plugin", "pytest_asyncio.plugin")
    done = run_pytest(tmp_path, "-W", "ignore", "-o", "pythonpath=.", "test_talker.py", plugins=plugins)
    assert done.counts == {"PASSED": 6}, done.output
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = [row for row in rows if row["metric_name"] == "response_match_score"]
    assert [(row["eval_id"], row["eval_status"], row["score"]) for row in wanted] == [("good", "PASSED", "1.0")] * 2
    assert {row["actual_response"] for row in wanted} == {"You said hello"}


@pytest.fixture
def talker(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a module with an agent in plain Python."""
    project.write("plain_talker/__init__.py", "from . import agent\n")
    code = 'def root_agent(message, session):\n    return "You said " + message if message != "raise" else 1 / 0\n'
    project.write("plain_talker/agent.py", code)
    monkeypatch.syspath_prepend(project.root)
    for name in ("plain_talker", "plain_talker.agent"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return project


async def test_one_failed_execution_fails_the_case(talker: Project) -> None:
    code = (
        "count = 0\ndef root_agent(message, session):\n    global count\n    count += 1\n"
        "    return f'You said {message}' if count > 1 else 'No'\n"
    )
    talker.write("plain_talker/agent.py", code)
    talker.write("plain_talker/test_config.json", {"criteria": {"response_match_score": 0.5}})
    file = talker.evalset(GOOD, path="plain_talker/good.test.json")
    with pytest.raises(AssertionError, match="1 of 3 did not pass"):
        await AgentEvaluator.evaluate("plain_talker", str(file), num_runs=3)


async def test_all_files_of_a_folder_run_even_if_the_first_fails(talker: Project) -> None:
    talker.evalset(BAD, path="plain_talker/a.test.json")
    talker.evalset(RAISES, path="plain_talker/b.test.json")
    with pytest.raises(AssertionError) as raised:
        await AgentEvaluator.evaluate("plain_talker", str(talker.root), num_runs=1)
    assert "2 of 2 did not pass (1 failed, 1 error)" in str(raised.value)
    assert "ZeroDivisionError" in str(raised.value)


async def test_details_are_printed_on_request(talker: Project, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(talker.evalset(GOOD, path="plain_talker/good.test.json"))
    await AgentEvaluator.evaluate("plain_talker", file, num_runs=1)
    assert "response_match_score  1.00" in capsys.readouterr().out
    await AgentEvaluator.evaluate("plain_talker", file, num_runs=1, print_detailed_results=False)
    assert capsys.readouterr().out == ""


async def test_eval_set_can_be_a_dict_with_criteria(talker: Project) -> None:
    eval_set = {"eval_set_id": "a/" + "漢" * 100, "eval_cases": [GOOD, BAD]}
    with pytest.raises(AssertionError, match="1 of 2 did not pass"):
        await AgentEvaluator.evaluate_eval_set("plain_talker", eval_set, {"response_match_score": 0.8}, num_runs=1)
    with pytest.raises(ValueError, match="eval_config"):
        await AgentEvaluator.evaluate_eval_set("plain_talker", eval_set)
    with pytest.raises(ValueError, match="no eval cases"):
        await AgentEvaluator.evaluate_eval_set("plain_talker", {"eval_set_id": "a"}, {"response_match_score": 0.8})


async def test_unsupported_arguments_and_missing_agents_are_refused(talker: Project) -> None:
    file = str(talker.evalset(GOOD, path="plain_talker/good.test.json"))
    with pytest.raises(NotImplementedError, match="agent-workbench export"):
        await AgentEvaluator.evaluate("plain_talker", file, app_name="app", eval_set_results_manager=object())
    with pytest.raises(ValueError, match="has no member `agent`"):
        await AgentEvaluator.evaluate("json", file)
    talker.write("plain_talker/agent.py", "root_agent = 3\n")
    with pytest.raises(ValueError, match="neither an ADK agent nor callable"):
        await AgentEvaluator.evaluate("plain_talker.agent", file)


def test_migration_refuses_current_and_broken_files(project: Project) -> None:
    new = str(project.root / "new.test.json")
    with pytest.raises(ValueError, match="already has the current"):
        AgentEvaluator.migrate_eval_data_to_new_schema(str(project.evalset(GOOD)), new)
    with pytest.raises(ValueError, match="empty"):
        AgentEvaluator.migrate_eval_data_to_new_schema("", new)
    assert not Path(new).exists()

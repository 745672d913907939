"""Models with an announced end, and replies from other models."""

import json
from datetime import date
from pathlib import Path

import pytest

from tests.run.plan.preflight.cases import KEY, config, criteria, looked, said, texts
from tests.ui.judged import GEMINI, judged_case
from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import agent_environment
from workbench.editing.check.agent_rules import agent_problems
from workbench.editing.check.criteria_rules import CaseCounts, retiring_models
from workbench.events.event_json import from_json, to_json
from workbench.events.events import Noticed, RunStarted
from workbench.exporting.report import model_warnings, report_pieces
from workbench.judges.base import DEFAULT_MODEL
from workbench.judges.kinds import RETIRING, retirement, successor_hint
from workbench.store.store import Store
from workbench.worker.spans import is_other_model


def test_retirement_date_is_compared_with_the_current_day() -> None:
    before, after = (retirement("models/gemini-2.5-flash", day) for day in (date(2026, 10, 1), date(2026, 11, 23)))
    assert before.startswith("gemini-2.5-flash ends on 2026-10-16 (release notes of adk-python 2.2.0), ends on 2026-10")
    assert "ended on 2026-10-20 (Vertex AI, model lifecycle), ends on 2026-12-01 (Gemini API, " in after
    assert "ended on 2026-12-01" in retirement("gemini-2.5-flash", date(2026, 12, 1))


def test_default_model_retires_and_names_its_successor() -> None:
    assert retirement(DEFAULT_MODEL)
    assert "gemini-3.5-flash-lite" in successor_hint(DEFAULT_MODEL)


def test_current_models_and_successors_do_not_retire() -> None:
    assert retirement("gemini-3.5-flash") == ""
    assert not [row.successor for row in RETIRING.values() if retirement(row.successor)]


@pytest.mark.parametrize(
    ("asked", "answered", "is_other"),
    [
        ("gemini-2.5-flash", "gemini-3.5-flash-lite", True),
        ("models/gemini-2.5-pro", "gemini-3.8-flash", True),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite", True),
        ("gpt-4", "gpt-4o", True),
        ("claude-sonnet-4", "claude-sonnet-4-5", True),
        ("gemini-2.5-flash", "gemini-2.5-flash", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-001", False),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash", False),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", False),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929", False),
        ("gemini-flash-latest", "gemini-3.5-flash", False),
        ("azure/desk", "gpt-4o", False),
        ("python:judges:decide", "python:judges:decide", False),
        ("gemini-2.5-flash", "", False),
    ],
)
def test_version_or_deployment_of_a_model_is_not_another_model(asked: str, answered: str, is_other: bool) -> None:
    assert is_other_model(asked, answered) is is_other


def test_report_warns_of_replies_from_other_models() -> None:
    found = set(model_warnings(judged_case(GEMINI)))
    assert "the judge of hallucinations_v1 asked gemini-2.5-flash, but gemini-2.5-flash-SCRIPTED answered" in found


def test_run_warns_of_retiring_judges_and_simulated_users_as_check_does() -> None:
    judged = config(criteria(hallucinations_v1={}))
    kinds = ((looked(judged), CaseCounts(conversations=1), 1), (looked(judged, turns=None), CaseCounts(scenarios=1), 2))
    for case, counts, many in kinds:
        expected = [(breach.message, breach.hint) for _, breach in retiring_models(judged, counts)]
        assert len(expected) == many
        for values in ({}, KEY):  # A model without a key retires, too.
            assert [(one.message, one.hint) for one in said(case, values=values) if one.in_report] == expected
    current = {"judge_model_options": {"judge_model": "gemini-3.5-flash"}}
    assert not any("retires" in text for text in texts(looked(config(criteria(hallucinations_v1=current)))))


def test_report_has_only_warnings_marked_for_the_report() -> None:
    store = Store()
    store.apply(RunStarted("r", "/", "2026-11-23T00:00:00Z", ()))
    for notice in (Noticed("warning", "the agent desk uses …", in_report=True), Noticed("warning", "no key is set")):
        store.apply(from_json(json.loads(json.dumps(to_json(notice)))))
    assert json.loads(b"".join(report_pieces(store)))["warnings"] == ["the agent desk uses …"]


def test_check_warns_of_retiring_models(tmp_path: Path) -> None:
    judged = config(criteria(hallucinations_v1={}))
    found = [breach.message for _, breach in retiring_models(judged, CaseCounts(scenarios=1))]
    assert found[0].startswith("the judge of `hallucinations_v1`, the default as in ADK, uses a model that retires: ")
    assert found[1].startswith("the simulated user, the default as in ADK, uses a model that retires: gemini-2.5-flash")
    assert not list(retiring_models(config(criteria(response_match_score={})), CaseCounts(conversations=1)))
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text("root_agent = Agent(model='gemini-2.5-pro')\n")
    agent = AgentFolder("desk", folder, "python", folder / "agent.py", "root_agent")
    environment = agent_environment(folder, {"GOOGLE_API_KEY": "k"})
    (problem,) = agent_problems(agent, ["gemini-2.5-pro"], environment)
    assert problem.fault.message.startswith("the agent desk uses a model that retires: gemini-2.5-pro ended on 2026-10")
    assert (problem.fault.line, problem.fault.hint) == (1, "Name gemini-3.8-flash or another current model")

"""Tests of files and of cases that have not run."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from tests.ui.transcripts import turn
from workbench.agents.workspace import EvalsetEntry, open_workspace
from workbench.results import evidence
from workbench.results.document import Subject
from workbench.results.lines import Line, View
from workbench.results.panes import PANES
from workbench.results.title import notes, verdict

Texts = Callable[[Iterable[Line]], list[str]]
Open = Callable[..., EvalsetEntry]


@pytest.fixture
def open_file(tmp_path: Path) -> Open:
    """Open an evalset beside an agent, given as data or as the text of its file."""

    def opened(data: Any, config: Any = None) -> EvalsetEntry:
        folder = tmp_path / "order_desk"
        folder.mkdir()
        (folder / "agent.py").write_text("root_agent = None\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from . import agent\n", encoding="utf-8")
        text = data if isinstance(data, str) else json.dumps(data)
        (folder / "refunds.evalset.json").write_text(text, encoding="utf-8")
        if config is not None:
            (folder / "test_config.json").write_text(json.dumps(config), encoding="utf-8")
        return open_workspace(tmp_path).evalsets[0]

    return opened


def evalset(**case: Any) -> dict[str, Any]:
    conversation = (
        {} if "conversation_scenario" in case else {"conversation": [turn("hi", [("look", {"at": 1})], "Seen.")]}
    )
    return {"eval_set_id": "refunds", "name": "Refunds", "eval_cases": [{"eval_id": "one", **conversation, **case}]}


def test_case_without_a_run_shows_its_expected_turns(open_file: Open, texts: Texts) -> None:
    session = {"app_name": "order_desk", "user_id": "ann", "state": {"tier": "gold"}}
    config = {"criteria": {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"}}}
    entry = open_file(evalset(session_input=session), config)
    lines = texts(evidence.build(Subject(None, entry, entry.document.case(0)), View(76)).lines)
    assert " criteria      tool_trajectory_avg_score ≥ 1.00, match type IN_ORDER" in lines
    assert any("test_config.json" in line for line in lines)
    narrow = texts(evidence.build(Subject(None, entry, entry.document.case(0)), View(48)).lines)
    assert narrow[narrow.index(" criteria      tool_trajectory_avg_score") + 1].startswith(" " * 15 + "≥ 1.00, match")
    assert " session       user ann  app order_desk" in lines
    assert '               state {"tier": "gold"}' in lines
    assert lines[:5] == [
        "  not run yet; expected:",
        "  user      hi",
        "",
        "  call 1    look(at=1)",
        "  answer    Seen.",
    ]


def test_scenario_shows_its_plan_and_rubrics(open_file: Open, texts: Texts) -> None:
    scenario = {"starting_prompt": "Where is it?", "conversation_plan": "Get angry."}
    rubrics = [{"rubric_id": "polite", "rubric_content": {"text_property": "Stays polite."}}]
    entry = open_file(evalset(conversation_scenario=scenario, rubrics=rubrics))
    lines = texts(evidence.build(Subject(None, entry, entry.document.case(0)), View(76)).lines)
    assert " starts with   Where is it?" in lines
    assert " plan          Get angry." in lines
    assert " rubrics       polite: Stays polite." in lines


def test_evalset_shows_its_agent_and_criteria(open_file: Open, texts: Texts) -> None:
    entry = open_file(evalset())
    lines = texts(evidence.build(Subject(None, entry, None), View(76)).lines)
    assert " evalset       Refunds" in lines
    assert " cases         1" in lines
    assert any(line.startswith(" agent         order_desk, because") for line in lines)
    assert any("tool_trajectory_avg_score ≥ 1.00" in line for line in lines)


def test_every_fault_of_a_broken_file_is_listed_errors_first(open_file: Open, texts: Texts) -> None:
    entry = open_file({"eval_set_id": "x", "eval_cases": [{"eval_id": "a", "conversatoin": []}, {"eval_id": 7}]})
    subject = Subject(None, entry, None)
    document = evidence.build(subject, View(76))
    lines = texts(document.lines)
    faults = entry.document.check()
    entries = [line for line in lines if line.startswith((" ! ", " ~ "))]
    assert len(entries) == len(faults) >= 2
    assert [entry[1] for entry in entries] == sorted((entry[1] for entry in entries), key="!~".index)
    assert any("order_desk/refunds.evalset.json:1:" in line for line in lines)
    assert verdict(subject).plain == "! ERROR"
    assert "in the file" in notes(subject, 76).plain


def test_evalset_without_an_agent_has_a_reason(open_file: Open, texts: Texts, tmp_path: Path) -> None:
    entry = open_file(evalset())
    lonely = EvalsetEntry(entry.file, entry.relative, entry.document, None, "no agent near it", entry.criteria)
    assert " agent         none: no agent near it" in texts(evidence.build(Subject(None, lonely), View(76)).lines)


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\ud800" not in text])
def test_hostile_file_stays_safe(text: str, open_file: Open, texts: Texts) -> None:
    entry = open_file({**evalset(**{text[:50] or "x": text}), "name": text, "description": text})
    for case in (None, entry.document.case(0)):
        for pane in PANES:
            for line in pane.build(Subject(None, entry, case), View(50)).lines:
                assert line.cell_len <= 50
                assert not leaks(line.plain)

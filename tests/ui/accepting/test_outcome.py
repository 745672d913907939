"""Previewed scores equal the scores after the change is saved."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ui.transcripts import CRITERIA, execute, recorded, turn
from workbench.criteria.session_state import rules_of
from workbench.editing.accept import Comparison, NotComparableError
from workbench.files.criteria import Criterion
from workbench.files.dataset import in_evalset_form
from workbench.files.run_options import UsageFaultError
from workbench.ui.accepting import outcome
from workbench.ui.accepting.outcome import Transcript, concerns, of_last_run, outcomes

FIND = ("find_order", {"id": "A-7"})


def test_previewed_scores_equal_the_real_scores() -> None:
    turns = [turn("Hi", (), "Hello you"), turn("Where?", [FIND], "Here it is.")]
    case = {"eval_id": "x", "conversation": turns}
    actual = [recorded("Hi", (), "Hello there"), recorded("Where?", (), "こちらです")]
    before = execute(turns, actual)
    comparison = Comparison(case, actual)
    verdicts = [made.metrics for made in before.turns]
    for chosen in ((), comparison.hunks[:1], comparison.hunks[-1:], comparison.hunks):
        changed = comparison.accepted(chosen)
        after = execute(changed["conversation"], actual)
        told = {one.name: (one.before, one.after) for one in outcomes(CRITERIA, case, changed, actual, verdicts)}
        names = [criterion.name for criterion in CRITERIA]
        assert told == {name: (before.metrics[name].score, after.metrics[name].score) for name in names}


def test_unknown_scores_are_not_previewed() -> None:
    case = {"eval_id": "x", "conversation": [turn("Hi", (), "Hello you")]}
    actual = [recorded("Hi", (), "Hello there")]
    assert [one.name for one in outcomes(CRITERIA, case, case, actual)] == ["tool_trajectory_avg_score"]
    assert outcomes(CRITERIA, case, case, [*actual, None], []) != []
    assert outcomes(CRITERIA, case, case, [None], []) == []


def test_score_of_an_accepted_end_state_is_previewed() -> None:
    criteria = [Criterion("session_state_match", 1.0, {"threshold": 1.0}, {})]
    case = {"eval_id": "x", "conversation": [turn("Hi", (), "Hello")], "finalSessionState": {"total": "2"}}
    actual, state = [recorded("Hi", (), "Hello")], {"total": 2}
    comparison = Comparison(case, actual, state, rules_of(criteria))
    changed = comparison.accepted(comparison.hunks)
    assert changed["finalSessionState"] == state
    (found,) = outcomes(criteria, case, changed, actual, (), (), state)
    assert (found.before, found.after, found.passes) == (0.0, 1.0, True)
    assert concerns("state", ["tool_trajectory_avg_score", "session_state_match"]) == ["session_state_match"]


def test_case_of_a_dataset_without_expected_calls_has_no_earlier_score() -> None:
    user = {"role": "user", "parts": [{"text": "Where?"}]}
    case = in_evalset_form({"eval_case_id": "x", "prompt": user}, "x")
    actual = [recorded("Where?", [FIND], "Here it is.")]
    comparison = Comparison(case, actual)
    (found,) = outcomes(CRITERIA, case, comparison.accepted(comparison.hunks), actual)
    assert (found.name, found.before, found.after) == ("tool_trajectory_avg_score", None, 1.0)


def test_each_difference_names_the_criteria_it_concerns() -> None:
    failed = ["tool_trajectory_avg_score", "response_match_score", "final_response_match_v2"]
    assert concerns("answer", failed) == failed[1:]
    assert concerns("argument", failed) == failed[:1]
    assert concerns("text added", failed) == []


def test_outcome_loads_no_heavy_library(repository: Path) -> None:
    code = """
import sys
from workbench.files.criteria import default_config
from workbench.files.dataset import in_evalset_form
from workbench.ui.accepting.outcome import outcomes
turn = {"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Hello"}]}}
case = {"eval_id": "x", "conversation": [turn]}
found = outcomes(default_config().criteria, case, case, [turn], [{}])
assert len(found) == 2, found
assert not {"nltk", "numpy", "rouge_score"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=repository)


def test_calls_inside_agent_tools_are_accepted_where_the_criterion_compares_them() -> None:
    inner = {"call": None, "tool": "ask", "agent": "clerk", "name": "find_order", "args": {"id": "A-8"}}
    case = {"eval_id": "x", "conversation": [turn("Hi", [("ask", {}), FIND], "Hello")]}
    made = (recorded("Hi", [("ask", {})], "Hello"),)
    criteria = [Criterion("tool_trajectory_avg_score", 1.0, 1.0, {"include_agent_tools": True})]
    transcript = Transcript("run", 1, made, None, ((inner,),))
    assert transcript.compared(CRITERIA) is transcript
    comparison = Comparison(case, transcript.compared(criteria).turns)
    assert [hunk.what for hunk in comparison.hunks] == ["find_order: change id"]
    changed = comparison.accepted(comparison.hunks)
    assert changed["conversation"][0]["intermediate_data"]["tool_uses"][1]["args"] == {"id": "A-8"}
    (found,) = outcomes(criteria, case, changed, transcript.compared(criteria).turns)
    assert (found.before, found.after) == (0.0, 1.0)
    with pytest.raises(NotComparableError, match="were not recorded"):
        Transcript("run", 1, made, None, (None,)).compared(criteria)


def test_run_that_cannot_be_read_has_nothing_to_accept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*names: object) -> None:
        raise UsageFaultError("runs.db is damaged")

    monkeypatch.setattr(outcome, "last_run", lambda state: state)
    monkeypatch.setattr(outcome, "open_run", unreadable)
    with pytest.raises(NotComparableError, match=r"runs\.db is damaged"):
        of_last_run(tmp_path, "desk/refunds.evalset.json", "late_parcel")

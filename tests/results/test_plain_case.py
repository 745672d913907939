"""Tests of the plain text of a case, as printed by `--print-detailed-results`."""

import subprocess
import sys
from pathlib import Path

from tests.ui.judged import FUNCTION, judged_case, record_of, scenario_events
from tests.ui.transcripts import RAISED, execute, late_parcel, recorded, turn
from workbench.events.events import MetricResult, Usage
from workbench.results.panes import plain_case

GOLDEN = Path(__file__).parent / "golden"


def test_failed_case_matches_its_golden_file() -> None:
    found = "\n".join(plain_case(late_parcel(), 80)) + "\n"
    assert found == (GOLDEN / "late_parcel_80.txt").read_text(encoding="utf-8")


def test_wide_terminal_shows_two_columns() -> None:
    found = "\n".join(plain_case(late_parcel(), 120)) + "\n"
    assert found == (GOLDEN / "late_parcel_120.txt").read_text(encoding="utf-8")


def test_error_matches_its_golden_file() -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi")], error=RAISED, unfinished=True)
    found = "\n".join(plain_case(record, 60)) + "\n"
    assert found == (GOLDEN / "raised_60.txt").read_text(encoding="utf-8")


def test_singular_is_used_for_one_call() -> None:
    record = late_parcel()
    record.usage = Usage(model_calls=1, judge_calls=1, judge_calls_cached=1)
    found = "\n".join(plain_case(record, 80))
    assert "s · 1 model call · 1 judge call, 1 from the cache" in found


def test_plain_case_does_not_import_textual(repository: Path) -> None:
    code = "import sys, workbench.results.panes; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_results_of_judges_are_below_their_scores() -> None:
    found = "\n".join(plain_case(judged_case(FUNCTION), 100))
    _, rubrics, rest = found.partition("\n ✗ rubric_based_final_response_quality_v1 ")
    rubrics, claims, rest = rest.partition("\n ✗ hallucinations_v1 ")
    claims, votes, rest = rest.partition("\n ! final_response_match_v2 ")
    assert votes, "the parts stand in this order"
    assert "✗ It will arrive tomorrow before noon" in claims
    assert '− "expected": "2026-11-20 (Friday)"' in claims
    assert "find_order, a tool result in turn 1" in claims
    apology = claims.partition("ご不便")[2].partition("±")[0]
    assert apology.splitlines()[1:-1] == ["   An apology claims nothing."]
    assert "a Python function" in claims
    assert "3 of 5 votes" in rubrics
    assert "◐ split" in rubrics
    assert "It says Friday, as the tool result does" in rubrics
    assert "quota 429 RESOURCE_EXHAUSTED: Resource has been exhausted" in rest


def test_plain_case_has_no_prompts_and_no_keys() -> None:
    for record in (judged_case(), record_of(scenario_events())):
        found = "\n".join(plain_case(record, 100))
        assert "Compare the answer with the reference" not in found
        assert '"prompt"' not in found
        assert "enter" not in found


def test_simulated_conversation_shows_its_plan() -> None:
    found = "\n".join(plain_case(record_of(scenario_events()), 80))
    assert "Ask for order A-7. If it is late, ask for the money back." in found
    assert "4 of 5 votes" in found
    assert "ended by the user's stop signal" in found


def test_successful_rating_of_the_service_shows_no_error() -> None:
    details = {"explanation": "Harmless.", "error": None, "seconds": 1.0, "attempts": 1, "cached": False}
    record = judged_case()
    record.scores = {"safety_v1": MetricResult("safety_v1", "failed", 0.0, 0.8, "rated 0", {})}
    record.turns[0].metrics = {"safety_v1": MetricResult("safety_v1", "failed", 0.0, 0.8, "rated 0", details)}
    del record.turns[1:]
    found = "\n".join(plain_case(record, 100))
    assert "Harmless." in found
    assert "unknown" not in found

"""What differs between the conditions under which two runs were made."""

import json
from typing import Any

import pytest

from tests.cli.stores import PASSED, case_events, started
from workbench.event_json import to_json
from workbench.events import RunFinished
from workbench.history.compare import compare
from workbench.history.conditions import condition_changes, kept_conditions
from workbench.history.summary import Summary, gather

THEN: dict[str, Any] = {
    "salt": "a",
    "options": {"timeout": 300.0, "use_cache": True, "later": 1},
    "packages": {"desk": "aa", "": "bb"},
    "environment": {"desk": {"GEMINI_MODEL": "01", "LEFT": "02"}},
    "cases": {"f": {"one": "aa", "two": "bb"}},
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"salt": "b", "environment": {"desk": {"GEMINI_MODEL": "77", "LEFT": "78"}}}, []),
        ({"options": {"timeout": 7.0, "use_cache": False}}, ["--timeout 300.0 -> 7.0", "--no-cache true -> false"]),
        ({"packages": {"desk": "cc", "": "bb"}}, ["interpreter of desk, or what is installed there"]),
        (
            {"environment": {"desk": {"GEMINI_MODEL": "01", "CAME": "03"}}},
            ["environment of desk: CAME new", "environment of desk: LEFT gone"],
        ),
        (
            {"cases": {"f": {"one": "cc", "two": "cc"}}},
            ["what cases say besides what is expected, such as their session (1 case)"],
        ),
        ({"options": [], "packages": None, "environment": 3, "cases": {"f": "x"}}, []),
    ],
)
def test_every_condition_that_differs_is_named(changed: dict[str, Any], said: list[str]) -> None:
    now = {**THEN, **changed}
    same = {("f", "one")}
    assert list(condition_changes(kept_conditions(THEN), kept_conditions(now), same)) == said


def test_of_a_run_that_kept_nothing_nothing_is_said() -> None:
    assert not list(condition_changes({}, kept_conditions(THEN), set()))
    assert not list(condition_changes(kept_conditions(THEN), kept_conditions(None), set()))


def test_another_session_is_listed_although_no_verdict_changed(tmp_path: Any) -> None:
    def run(digest: str) -> Summary:
        begun = to_json(started([PASSED])) | {"determined": {"cases": {PASSED.evalset_file: {PASSED.eval_id: digest}}}}
        return gather([begun, *map(to_json, case_events(PASSED, "passed")), to_json(RunFinished(1.0))])

    again = Summary.from_json(json.loads(json.dumps(run("bb").as_json(), default=list)))
    assert [line for line in compare(run("aa"), again, tmp_path).differences if "session" in line]

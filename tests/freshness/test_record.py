"""Changed inputs between two records of the same case."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.freshness.staleness import compare, criterion_of
from workbench.store.inputs import (
    EFFECTS,
    KINDS,
    Bundle,
    Change,
    Input,
    Record,
    Values,
    describe,
    describe_few,
    strongest,
)

FILE = "desk/talk.evalset.json"
CONFIG = "desk/test_config.json"


def record(kind: Input, values: Values, file: str | None = None) -> Record:
    return Record(FILE, (Bundle({"packages": {"python": "3.13"}}), Bundle({kind: values}, file)))


def test_every_kind_of_input_has_a_row_in_the_table() -> None:
    assert set(KINDS) == set(get_args(Input))


@pytest.mark.parametrize(
    ("kind", "file", "said", "named"),
    [
        ("agent_file", None, "x", "x"),
        ("environment", "desk/.env", ".env x", "desk/.env"),
        ("environment", None, "environment x", None),
        ("case", None, "case: x", FILE),
        ("session", None, "session: x", FILE),
        ("scenario", None, "scenario: x", FILE),
        ("simulator", CONFIG, "simulator: x", CONFIG),
        ("frozen", None, "frozen: x", None),
        ("owner", None, "owner: x", None),
        ("options", None, "x", None),
        ("expected", None, "expected: x", FILE),
        ("judge", CONFIG, "judge: x", CONFIG),
        ("function", None, "function x", "x"),
    ],
)
def test_changed_value_is_named_with_its_file_and_effect(
    kind: Input, file: str | None, said: str, named: str | None
) -> None:
    (change,) = compare(record(kind, {"x": "1", "y": "1"}, file), record(kind, {"x": "2", "y": "1"}, file))
    assert change == Change(kind, "x", named, KINDS[kind].effect)
    assert describe(change) == said


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ({"a": "1.0"}, {"a": "1.1"}, ["packages: a 1.0 → 1.1"]),
        ({"a": "1.0"}, {"b": "2.0"}, ["packages: a 1.0 is gone", "packages: b 2.0 is new"]),
        ({}, {"a": "1", "b": "1", "c": "1"}, ["3 packages"]),
        (
            {"interpreter": "/a", "a": "1", "b": "1", "c": "1"},
            {"interpreter": "/b"},
            ["packages: interpreter", "3 packages"],
        ),
        ({"interpreter": "/a", "a": "1.0"}, {"interpreter": "/b", "a": "1.0"}, ["packages: interpreter"]),
    ],
)
def test_changed_packages_are_named_with_their_versions_unless_there_are_many(
    then: Values, now: Values, said: list[str]
) -> None:
    assert [describe(change) for change in compare(record("packages", then), record("packages", now))] == said


def test_new_file_counts_as_a_change_of_its_folder() -> None:
    (change,) = compare(record("agent_file", {}), record("agent_file", {"desk/tools.py": "1"}))
    assert change == Change("agent_folder", "desk/tools.py", "desk/tools.py", "run")
    assert describe(change) == "desk/tools.py is new"


CALLED = "tool_trajectory_avg_score"
CALLS = {f"{CALLED} threshold": "1.0"}
MATCH = {"match threshold": "0.8"}
OWN = {"mine threshold": "0.8", "mine custom_metrics": "1"}


@pytest.mark.parametrize(
    ("then", "now", "name", "effect"),
    [
        (MATCH, {"match threshold": "0.5"}, "match threshold", "decide"),
        (CALLS, {**CALLS, f"{CALLED} match_type": '"IN_ORDER"'}, f"{CALLED} match_type", "decide"),
        (MATCH, {**MATCH, "match rubrics": "1"}, "match rubrics", "score"),
        (MATCH, {**MATCH, "other threshold": "1.0", "other rubrics": "1"}, "other", "score"),
        ({**MATCH, "other threshold": "1.0", "other rubrics": "1"}, MATCH, "other", "decide"),
        (OWN, {**OWN, "mine threshold": "0.5"}, "mine threshold", "score"),
    ],
)
def test_criteria_change_has_the_weakest_effect_that_updates_the_verdict(
    then: Values, now: Values, name: str, effect: str
) -> None:
    (change,) = compare(record("criteria", then, CONFIG), record("criteria", now, CONFIG))
    assert (change.name, change.effect, change.file) == (name, effect, CONFIG)


@pytest.mark.parametrize(
    ("added", "name", "criterion"),
    [
        ({"my match threshold": "1", "my match rubrics": "1"}, "my match", "my match"),
        ({"match old rubrics": "1"}, "match old rubrics", "match"),
    ],
)
def test_names_of_criteria_and_options_may_have_blanks(added: Values, name: str, criterion: str) -> None:
    judge = {f"{criterion} judge_model": "1"} if criterion == name else {}
    then, now = (
        Record(FILE, (Bundle({"criteria": criteria, "judge": asked}),))
        for criteria, asked in ((MATCH, {}), ({**MATCH, **added}, judge))
    )
    (change,) = compare(then, now)
    assert (change.name, criterion_of(change)) == (name, criterion)


def test_removing_a_judged_criterion_only_decides_again() -> None:
    then = Record(FILE, (Bundle({"criteria": {**MATCH, "v2 threshold": "1.0"}, "judge": {"v2 judge_model": "1"}}),))
    changes = compare(then, Record(FILE, (Bundle({"criteria": MATCH, "judge": {}}),)))
    assert [(change.name, change.effect) for change in changes] == [("v2", "decide")]


def test_variable_moved_to_another_file_is_unchanged() -> None:
    environment: tuple[tuple[Values, Values], ...] = ({"A": "1"}, {"B": "2"}), ({}, {"A": "1", "B": "2"})
    then, now = (
        Record(FILE, (Bundle({"environment": own}, "desk/.env"), Bundle({"environment": rest})))
        for own, rest in environment
    )
    assert compare(then, now) == ()


def test_unrecorded_input_counts_as_changed() -> None:
    now = record("session", {"state": "1"})
    (change,) = compare(Record(FILE, now.bundles[:1]), now)
    assert (change.input, change.name, describe(change)) == ("session", "", "session not recorded")
    (change,) = compare(None, now)
    assert (change.effect, describe(change)) == ("run", "agent file not recorded")


def test_first_value_of_an_empty_recorded_kind_is_named_as_the_change() -> None:
    (change,) = compare(record("session", {}), record("session", {"state": "1"}))
    assert change.name == "state"


@given(
    st.lists(
        st.tuples(st.sampled_from(list(KINDS)), st.dictionaries(st.text(min_size=1), st.text(), max_size=3)),
        max_size=6,
    )
)
def test_record_survives_json(parts: "list[tuple[Input, dict[str, str]]]") -> None:
    bundles = tuple(Bundle({kind: values}, "f") for kind, values in parts)
    again = tuple(Bundle.from_json(json.loads(json.dumps(bundle.as_json()))) for bundle in bundles)
    assert compare(Record(FILE, bundles), Record(FILE, again)) == ()


@pytest.mark.parametrize("data", [None, 3, [], ["f"], ["f", []], [1, 2, 3]])
def test_invalid_bundle_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="not a bundle"):
        Bundle.from_json(data)


def test_many_changes_have_the_strongest_effect_and_one_description() -> None:
    changes = [Change("criteria", f"match option{number}", None, "score") for number in range(4)]
    changes.append(Change("agent_file", "desk/agent.py", "desk/agent.py", "run"))
    assert strongest([]) is None
    assert strongest(changes) == EFFECTS[-1] == "run"
    assert describe_few(changes) == "desk/agent.py, criteria: match option0, criteria: match option1 and 2 more"


def test_several_unrecorded_inputs_are_described_together() -> None:
    changes = compare(Record(FILE, ()), record("session", {"state": "1"}))
    assert describe_few(changes) == "inputs not recorded"

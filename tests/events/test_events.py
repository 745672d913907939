import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.events import event_json
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    Event,
    MetricResult,
    MetricScored,
    Usage,
)

_text = st.text(alphabet=st.characters(), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)
_ref = st.builds(CaseRef, _text, _text, _text, _text, st.integers(1, 9))
st.register_type_strategy(CaseRef, _ref)
st.register_type_strategy(float, st.floats(allow_nan=False))
st.register_type_strategy(dict, lambda _: st.dictionaries(_text, _json, max_size=3))
_events = st.one_of([st.builds(kind) for kind in get_args(Event)])


@given(_events)
def test_every_event_survives_ascii_json(event: Event) -> None:
    line = json.dumps(event_json.to_json(event), ensure_ascii=True)
    assert line.isascii()
    assert event_json.from_json(json.loads(line)) == event


def test_no_field_of_an_event_is_called_event() -> None:
    for kind in get_args(Event):
        assert "event" not in {field.name for field in fields(kind)}


def test_fields_of_a_newer_version_are_ignored() -> None:
    event = MetricScored(CaseRef("a", "f", "s", "c"), MetricResult("m", "passed", 1.0, 1.0))
    data = {**event_json.to_json(event), "added_later": 1}
    assert event_json.from_json(data) == event


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"event": "Unheard"},
        {"event": "CaseFinished"},
        {"event": "CaseFinished", "case": "x", "status": "passed", "error": None, "duration_seconds": 1},
        {"event": "RunFinished", "duration_seconds": "soon"},
        {"event": "Noticed", "level": "loud", "message": "x"},
    ],
)
def test_invalid_event_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        event_json.from_json(data)


def test_labels_distinguish_repeats() -> None:
    assert CaseRef("desk", "f", "refunds", "late").label == "desk/refunds/late"
    assert CaseRef("desk", "f", "refunds", "late", 2).label == "desk/refunds/late#2"


def test_finished_case_keeps_its_error() -> None:
    event = CaseFinished(CaseRef("a", "b", "c", "d"), "error", CaseError("timeout", "no answer"), 3.0, Usage(2))
    assert event_json.from_json(event_json.to_json(event)) == event


def test_case_references_that_differ_only_in_the_file_have_different_hashes() -> None:
    for eval_id in ("", "case_1"):
        refs = [CaseRef("agent", f"{number}.evalset.json", "set", eval_id) for number in range(100)]
        assert len({hash(ref) for ref in refs}) > 90

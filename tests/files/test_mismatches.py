"""Each mark of an evalset is left out, doubled or exchanged: the error is where a strict reader stops."""

import json
import re
import time
from collections.abc import Iterator

import pytest

from workbench.files.faults import Places
from workbench.files.json_text.scanner import Flaw, scan

_TURN = {
    "user_content": {"role": "user", "parts": [{"text": "Where, my {parcel}? [x]"}]},
    "final_response": {"parts": [{"text": "It is late."}]},
    "intermediate_data": {
        "tool_uses": [{"name": "find", "args": {"id": "A", "tags": ["a", "b"], "n": {"x": 1}}}, {"name": "refund"}],
        "intermediate_responses": [],
    },
}
_CASES = [{"eval_id": f"c{number}", "conversation": [_TURN, _TURN]} for number in range(2)]
_CONTENT = {
    "eval_set_id": "s",
    "eval_cases": _CASES,
    "creation_timestamp": 1.5,
}
_TEXT = json.dumps(_CONTENT, indent=2)
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


def _marks(wanted: str) -> Iterator[int]:
    """Return the offsets of a mark in the text; for '"', those that open a string."""
    return (match.start() for match in _MARK.finditer(_TEXT) if match.group()[0] == wanted)


def _errors(text: str) -> list[Flaw]:
    return [flaw for flaw in scan(text).flaws if flaw.severity == "error"]


def _one_error_near(text: str, offset: int, within: int = 1) -> None:
    (flaw,) = _errors(text)
    places = Places(text)
    assert abs(places.line(flaw.offset) - places.line(offset)) <= within, flaw


def _error_where_json_stops(text: str) -> Flaw:
    """Return the first error. It is on the line on which Python's reader stops, or ends the text before that line."""
    flaw = _errors(text)[0]
    with pytest.raises(json.JSONDecodeError) as stopped:
        json.loads(text)
    lines = stopped.value.lineno - Places(text).line(flaw.offset)
    assert 0 <= lines <= 1, (flaw, stopped.value)
    return flaw


@pytest.mark.parametrize("mark", [",", ":"])
def test_missing_comma_or_colon_is_one_error(mark: str) -> None:
    for offset in _marks(mark):
        _one_error_near(_TEXT[:offset] + _TEXT[offset + 1 :], offset)


@pytest.mark.parametrize("mark", ["[", "]", "{", "}", '"'])
def test_missing_bracket_or_quote_is_reported_where_reading_fails(mark: str) -> None:
    for offset in _marks(mark):
        _error_where_json_stops(_TEXT[:offset] + _TEXT[offset + 1 :])


@pytest.mark.parametrize("mark", [",", "]", "}", "[", "{"])
def test_doubled_mark_is_reported_where_reading_fails(mark: str) -> None:
    for offset in _marks(mark):
        _error_where_json_stops(_TEXT[:offset] + mark + _TEXT[offset:])


@pytest.mark.parametrize(("mark", "other"), [("}", "]"), ("]", "}")])
def test_wrong_kind_of_bracket_is_one_error(mark: str, other: str) -> None:
    for offset in _marks(mark):
        _one_error_near(_TEXT[:offset] + other + _TEXT[offset + 1 :], offset)


def test_hint_finds_the_missing_bracket_by_indentation() -> None:
    lines = _TEXT.splitlines()
    for number, line in enumerate(lines[:-1]):
        if line.strip().rstrip(",") in ("}", "]"):
            text = "\n".join([*lines[:number], *lines[number + 1 :]])
            flaw = _errors(text)[-1]
            assert f"should be closed before line {number + 1}" in flaw.hint, (line, flaw)


def test_text_without_indentation_gets_no_indentation_hint() -> None:
    flat = "\n".join(line.strip() for line in _TEXT.splitlines()[:-1])
    assert "indentation" not in _errors(flat)[0].hint


def test_trailing_comma_is_found_in_every_place() -> None:
    for closer in "}]":
        for offset in _marks(closer):
            end = len(_TEXT[:offset].rstrip())
            if _TEXT[end - 1] not in "{[":
                text = _TEXT[:end] + "," + _TEXT[end:]
                _one_error_near(text, end, within=0)
                assert _errors(text)[0].message == f"a trailing comma before `{closer}`"


def test_comment_is_found_on_every_line() -> None:
    offset = -1
    while (offset := _TEXT.find("\n", offset + 1)) >= 0:
        text = f"{_TEXT[:offset]} // why{_TEXT[offset:]}"
        _one_error_near(text, offset, within=0)
        root = scan(text).root
        assert root is not None
        assert root.value() == _CONTENT


def test_truncated_file_is_reported_as_unclosed() -> None:
    text = json.dumps({**_CONTENT, "eval_cases": _CASES[:1]}, indent=2)
    for end in range(1, len(text) - 1):
        flaws = _errors(text[:end])
        assert 1 <= len(flaws) <= 2
        assert any(words in flaws[-1].message for words in ("unclosed brackets", "never closed"))


@pytest.mark.parametrize(
    "unit", ['{"a":', "[", '{"a":[', '{"a" ', "[1 ", "]", '"a', "'a", '[{"a":1}', '{"a":}', "x ", "{,", "/*"]
)
def test_reading_time_is_linear(unit: str) -> None:
    """A quadratic reader would take minutes for this text."""
    began = time.process_time()
    assert _errors(unit * 300_000)
    assert time.process_time() - began < 2

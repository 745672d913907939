"""One slip of the pen is one fault, on its line: every mark of an evalset left out, doubled or exchanged in turn."""

import json
import re
from collections.abc import Iterator

import pytest

from workbench.model.open_frames import Flaw
from workbench.model.places import Places
from workbench.model.scanner import scan

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
    """The offsets of a mark in the text; of '"' those that open a text."""
    return (match.start() for match in _MARK.finditer(_TEXT) if match.group()[0] == wanted)


def _errors(text: str) -> list[Flaw]:
    return [flaw for flaw in scan(text).flaws if flaw.severity == "error"]


def _one_error_near(text: str, offset: int, within: int = 1) -> None:
    (flaw,) = _errors(text)
    places = Places(text)
    assert abs(places.line(flaw.offset) - places.line(offset)) <= within, flaw


@pytest.mark.parametrize("mark", [",", ":", "]", "}", '"'])
def test_a_mark_that_is_left_out(mark: str) -> None:
    for offset in _marks(mark):
        _one_error_near(_TEXT[:offset] + _TEXT[offset + 1 :], offset)


@pytest.mark.parametrize("mark", [",", "]"])
def test_a_mark_that_stands_twice(mark: str) -> None:
    for offset in _marks(mark):
        _one_error_near(_TEXT[:offset] + mark + _TEXT[offset:], offset)


def test_a_brace_that_stands_twice() -> None:
    """In an object inside an object that shows only where the outer one ends, some lines below."""
    for offset in _marks("}"):
        text = _TEXT[:offset] + "}" + _TEXT[offset:]
        _one_error_near(text, offset, within=6)
        assert _errors(text)[0].message.startswith("a surplus brace `}`")


@pytest.mark.parametrize(("mark", "other"), [("}", "]"), ("]", "}")])
def test_a_bracket_of_the_other_kind(mark: str, other: str) -> None:
    for offset in _marks(mark):
        _one_error_near(_TEXT[:offset] + other + _TEXT[offset + 1 :], offset)


def test_a_trailing_comma_in_every_place() -> None:
    for closer in "}]":
        for offset in _marks(closer):
            end = len(_TEXT[:offset].rstrip())
            if _TEXT[end - 1] not in "{[":
                text = _TEXT[:end] + "," + _TEXT[end:]
                _one_error_near(text, end, within=0)
                assert _errors(text)[0].message == f"a trailing comma before `{closer}`"


def test_a_comment_on_every_line() -> None:
    offset = -1
    while (offset := _TEXT.find("\n", offset + 1)) >= 0:
        text = f"{_TEXT[:offset]} // why{_TEXT[offset:]}"
        _one_error_near(text, offset, within=0)
        root = scan(text).root
        assert root is not None
        assert root.value() == _CONTENT


def test_a_file_that_was_cut_off_anywhere() -> None:
    """One case of two turns: each place is read anew from the beginning."""
    text = json.dumps({**_CONTENT, "eval_cases": _CASES[:1]}, indent=2)
    for end in range(1, len(text) - 1):
        flaws = _errors(text[:end])
        assert 1 <= len(flaws) <= 2
        assert "never closed" in flaws[-1].message

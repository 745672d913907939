"""JSON paths, and lines and columns checked against a one-line definition."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.files.breaches import resolve
from workbench.files.faults import Places, json_path
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import scan
from workbench.files.json_text.text_file import TextFile

_TEXT = st.text(st.sampled_from("ab\té€😀\n\r"), max_size=30)


def _place(text: str, offset: int) -> tuple[int, int]:
    """Return the place that an editor shows. Lines end with \\r\\n, \\n or \\r."""
    before = re.split(r"\r\n|\n|\r(?!\n)", text[:offset] + ("\r" if text[offset - 1 : offset + 1] == "\r\n" else ""))
    return len(before), len(before[-1].rstrip("\r") if text[offset - 1 : offset + 1] == "\r\n" else before[-1]) + 1


@given(_TEXT, st.data())
@settings(deadline=None)
def test_places_equal_those_of_an_editor(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    if text[max(offset - 1, 0) : offset + 1] == "\r\n":
        return  # there is nothing between the two halves of a line break
    assert Places(text).at(offset) == _place(text, offset)


@given(_TEXT, st.data())
@settings(deadline=None)
def test_bytes_and_characters_have_the_same_places(text: str, data: st.DataObject) -> None:
    file = TextFile(text.encode())
    for offset in sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4))):
        if text[max(offset - 1, 0) : offset + 1] != "\r\n":
            assert file.at(len(text[:offset].encode())) == Places(text).at(offset)


def test_places_in_a_piece_continue_those_of_the_file() -> None:
    file = TextFile(b'[\n  {"a": 1,\n   "b": 2}]')
    places = file.places(4, 22)
    assert places.at(0) == (2, 3)
    assert places.at(5) == (2, 8)
    assert places.at(file.text(4, 22).index('"b"')) == (3, 4)


@pytest.mark.parametrize(
    ("location", "written"),
    [
        ((), ""),
        (("eval_cases", 2, "conversation", 0, "user_content"), "eval_cases[2].conversation[0].user_content"),
        ((0, "data", 1), "[0].data[1]"),
        (("state", "first name"), 'state["first name"]'),
        (("state", 'a"b\\c'), 'state["a\\"b\\\\c"]'),
        (("", "x"), '[""].x'),
    ],
)
def test_json_path_quotes_unusual_keys(location: tuple[str | int, ...], written: str) -> None:
    assert json_path(location) == written


def _root(text: str) -> Node:
    root = scan(text).root
    assert root is not None
    return root


def test_resolve_accepts_both_spellings_and_stops_at_the_nearest_parent() -> None:
    root = _root('{"evalCases": [{"user_content": 1}]}')
    assert resolve(root, ("eval_cases", 0, "userContent"))[0] == ("evalCases", 0, "user_content")
    assert resolve(root, ("eval_cases", 0, "parts", 3))[0] == ("evalCases", 0)
    assert resolve(root, ("nothing",)) == ((), None)

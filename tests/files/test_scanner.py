"""The tolerant scanner reads valid text like json, with exact offsets, and explains broken text."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from pydantic_core import from_json

from tests.files.documents import broken_texts, texts
from workbench.files.faults import Places, json_path
from workbench.files.json_text.scanner import MOST_FLAWS, Flaw, scan


def _reported(text: str) -> list[str]:
    """Return `line:column message` of every flaw."""
    places = Places(text)
    return ["{}:{} {}".format(*places.at(flaw.offset), flaw.message) for flaw in scan(text).flaws]


def _errors(flaws: tuple[Flaw, ...]) -> list[Flaw]:
    """Return the flaws at which ADK's reader stops, including lone surrogates."""
    return [flaw for flaw in flaws if flaw.severity == "error" or "surrogate" in flaw.message]


@given(texts())
@settings(deadline=None)
def test_valid_text_has_its_json_value_and_exact_offsets(made: tuple[Any, str]) -> None:
    _, text = made
    found = scan(text)
    assert found.root is not None
    assert found.root.value() == json.loads(text)
    assert not _errors(found.flaws)
    waiting = [found.root]
    while waiting:
        node = waiting.pop()
        assert json.loads(text[node.start : node.end]) == node.value()
        for child in node.children:
            waiting.append(child.node)
            if child.key is not None:
                assert json.loads(text[child.key_start : child.key_end]) == child.key


@given(broken_texts())
@example("'\\")
@example("['a\\\nb'")
@settings(deadline=None, max_examples=200)
def test_text_has_an_error_exactly_if_adks_reader_refuses_it(text: str) -> None:
    flaws = scan(text).flaws
    assert all(0 <= flaw.offset < max(len(text), 1) for flaw in flaws)
    try:
        from_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        assert _errors(flaws)
    else:
        assert not _errors(flaws)


@given(texts())
@settings(deadline=None)
def test_every_truncation_is_noticed(made: tuple[Any, str]) -> None:
    _, text = made
    for end in range(0, len(text), max(1, len(text) // 20)):
        cut = text[:end]
        flaws = scan(cut).flaws
        try:
            json.loads(cut)
        except ValueError:
            assert _errors(flaws)
            assert all(0 <= flaw.offset < max(end, 1) for flaw in flaws)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1} // why', "1:10 a comment (//): JSON does not allow comments"),
        ('{"a": 1 # why\n}', "1:9 a comment (#): JSON does not allow comments"),
        ('{"a": /* why */ 1}', "1:7 a comment (/* */): JSON does not allow comments"),
        ('{"a": 1,\n}', "1:8 a trailing comma before `}`"),
        ("[1, 2, ]", "1:6 a trailing comma before `]`"),
        ('{"a": 1\n "b": 2}', "1:8 a comma is missing here"),
        ('["a" 1]', "1:5 a comma is missing here"),
        ('{"a": 1,, "b": 2}', "1:9 two commas in a row"),
        ("[,1]", "1:2 a comma with nothing before it"),
        ('{"a" 1}', "1:5 a colon is missing after this key"),
        ('{"a": , "b": 1}', "1:7 the key `a` has no value"),
        ('{"a":\n"b": 1}', "1:6 the key `a` has no value"),
        ('{"a": {"b": 1}}}', "1:16 a surplus brace `}`: nothing is open here"),
        ('{"a": [1]], "b": 2}', "1:10 found `]`, but `}` is needed to close the `{` on line 1"),
        ('{"a": {"x": 1}}, "b": 2}', "1:16 a comma outside any object or list"),
        ('[{"a": {"x": 1}}, "b": 2}, {"a": 2}]', "1:19 a key in a list"),
        ('{"a": [1, 2}', "1:12 found `}`, but `]` is needed to close the `[` on line 1"),
        ('[{"x": 1, {"y": 2}]', "1:11 a key is missing before this `{`"),
        ('{"a": [1, 2}, "b": 3}', "1:12 found `}`, but `]` is needed to close the `[` on line 1"),
        ('{"a": [1', "1:8 the file ends with unclosed brackets: `{` on line 1, `[` on line 1"),
        ('{"a": "b\n}', "1:7 this text is never closed: the line ends inside it"),
        ('{"a": "b, "c": 1}', "1:11 text continues after this quote"),
        ('["a', "1:2 this text is never closed: the file ends inside it"),
        ('{"a": "say "hi" now"}', "1:12 text continues after this quote"),
        ("{'a': 1}", "1:2 single quotes: JSON needs double quotes"),
        ("['it's']", "1:2 single quotes: JSON needs double quotes"),
        ("[`a`]", "1:2 backquotes: JSON needs double quotes"),
        ("[“a”]", "1:2 typographic quotes (“): JSON needs double quotes"),
        ('["""a\nb"""]', '1:2 text in three quotes (""") is Python, not JSON'),
        ("{a: 1}", "1:2 the key `a` is not in quotes"),
        ("{5: 1}", "1:2 a key must be text in double quotes"),
        ("[True]", "1:2 `True` is not JSON (it is Python)"),
        ("[None]", "1:2 `None` is not JSON (it is Python)"),
        ("[undefined]", "1:2 `undefined` is not JSON"),
        ("[hello]", "1:2 `hello` is neither true, false, null nor a number"),
        ("[NaN]", "1:2 NaN is not valid JSON, but ADK accepts it"),
        ("[-Infinity]", "1:2 -Infinity is not valid JSON, but ADK accepts it"),
        ("[01]", "1:2 `01` is not a JSON number"),
        ("[.5]", "1:2 `.5` is not a JSON number"),
        ("[1.]", "1:2 `1.` is not a JSON number"),
        ("[+1]", "1:2 `+1` is not a JSON number"),
        ("[0x1F]", "1:2 `0x1F` is not a JSON number"),
        ("[2024-01-31]", "1:2 `2024-01-31` is not a JSON number"),
        ('["a\tb"]', "1:4 a raw tab inside text"),
        ('["a\x1bb"]', "1:4 a raw ESC inside text"),
        ('["a\nb"]', "1:4 a line break inside text"),
        ('["\\x41"]', "1:3 `\\x` is not a JSON escape"),
        ('["\\u12"]', '1:3 `\\u12"]` is not an escape: \\u needs four hexadecimal digits'),
        ('["\\ud800"]', "1:2 half a character (\\ud800, a lone surrogate), which ADK cannot read"),
        ('{"a": 1, "a": 2}', "1:10 duplicate key `a`: this one is used, the one on line 1 is ignored"),
        ('{"a": 1} {"b": 2}', "1:10 text after the end of the JSON"),
        ('{"a" = 1}', "1:6 `=` where JSON needs a colon"),
        ('{"a": 1; "b": 2}', "1:8 `;` where JSON needs a comma or nothing"),
        ("[1, ...]", "1:5 `...` is a placeholder, not JSON"),
        ("```json\n[1]\n```", "1:1 a Markdown fence (```) around the JSON"),
        ("{\ufeff}", "1:2 a byte-order mark in the middle of the file"),
        ("{\u00a0}", "1:2 the character U+00A0 (no-break space) is not allowed in JSON"),
        ('"a": 1', "1:1 a key outside any object"),
        ('["a": 1, "b": 2]', "1:2 a key in a list"),
        ("[" + "1" * 4301 + "]", "1:2 an integer of 4,301 digits: ADK reads at most 4,300"),
        ("", "1:1 the file is empty"),
        (" \n ", "1:1 the file is empty"),
        ("// nothing", "1:1 a comment (//): JSON does not allow comments"),
    ],
)
def test_each_flaw_is_reported_at_its_place(text: str, expected: str) -> None:
    assert _reported(text)[0] == expected


def test_all_faults_are_found_in_one_reading() -> None:
    text = '{\n  "a": 1, // one\n  "b": [1, 2,],\n  "c": {"d": True,}\n  e: \'f\'\n}}'
    assert [line.split(":")[0] for line in _reported(text)] == ["2", "3", "4", "4", "4", "5", "5", "6"]
    root = scan(text).root
    assert root is not None
    assert root.value() == {"a": 1, "b": [1, 2], "c": {"d": True}, "e": "f"}


def test_trailing_comma_and_surplus_brace_are_both_found() -> None:
    text = """{
  "criteria": {
    "some_score": {
      "threshold": 0.5,
      "options": {
            "samples": 5
          }
        }
    },
  }
}
"""
    assert _reported(text) == ["9:6 a trailing comma before `}`", "11:1 a surplus brace `}`: nothing is open here"]


def test_reading_stops_at_a_mismatched_bracket() -> None:
    text = '{\n  "a": [\n    1\n  },\n  "b": nil,\n}\n'
    assert _reported(text) == ["4:3 found `}`, but `]` is needed to close the `[` on line 2"]


def test_many_warnings_do_not_become_an_error() -> None:
    flaws = scan("[" + "NaN, " * (2 * MOST_FLAWS) + "1]").flaws
    assert len(flaws) == MOST_FLAWS
    assert {flaw.severity for flaw in flaws} == {"warning"}


@pytest.mark.parametrize("depth", [201, 202, 5_000, 100_000])
def test_reading_stops_at_adks_depth_limit(depth: int) -> None:
    found = scan("[" * depth + "]" * depth)
    deep = [flaw for flaw in found.flaws if "nested deeper" in flaw.message]
    assert [flaw.offset for flaw in deep] == ([] if depth == 201 else [201])
    value, levels = found.root and found.root.value(), 0
    while value:
        value, levels = value[0], levels + 1
    assert levels == min(depth, 202) - 1


def test_depth_limit_equals_that_of_adks_reader() -> None:
    from_json("[" * 201 + "]" * 201)
    with pytest.raises(ValueError, match="recursion"):
        from_json("[" * 202 + "]" * 202)


def test_reading_stops_after_many_faults() -> None:
    flaws = scan("lorem ipsum, dolor: " * 10_000).flaws
    assert len(flaws) <= MOST_FLAWS + 1
    assert flaws[-1].message.startswith("text after the end") or flaws[-1].message.startswith("more than")


def test_flaw_has_its_location_in_the_tree() -> None:
    text = '{"eval_cases": [{"a": 1}, {"first name": [true, nil]}]}'
    (flaw,) = scan(text).flaws
    assert json_path(flaw.location) == 'eval_cases[1]["first name"][1]'


def test_depth_of_a_piece_counts_the_brackets_around_it() -> None:
    text = "[" * 200 + "]" * 200
    assert not scan(text, depth=1).flaws
    assert len(scan(text, depth=2).flaws) == 1

"""JSON edits change nothing else, whatever the text and the change."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.files.breaches import resolve
from workbench.files.json_text.json_edit import EditError, revise, revised, same
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import scan

SPREAD = """{
  "evalSetId": "refunds",  "note": null,
  "eval_cases": [
    {
      "eval_id": "late",
      "amount": 1.0,
      "big": 1e3,
      "text": "caf\\u00e9"
    },
    {"eval_id": "inline", "tags": ["a","b"]}
  ],
  "empty": {}
}
"""


def _changed(text: str, change: Any) -> str:
    value = json.loads(text)
    change(value)
    return revised(text, value)


def test_setting_the_same_value_changes_nothing() -> None:
    assert revise(SPREAD, json.loads(SPREAD)) == []


def test_only_the_changed_scalar_is_rewritten() -> None:
    after = _changed(SPREAD, lambda doc: doc["eval_cases"][0].update(eval_id="later"))
    assert after == SPREAD.replace('"late"', '"later"')


def test_edit_can_turn_a_float_into_an_integer() -> None:
    after = _changed(SPREAD, lambda doc: doc["eval_cases"][0].update(amount=1))
    assert after == SPREAD.replace("1.0", "1")


def test_new_letters_are_escaped_if_the_file_escapes_them() -> None:
    after = _changed(SPREAD, lambda doc: doc.update(note="né"))
    assert after == SPREAD.replace("null", '"n\\u00e9"')


def test_new_letters_are_not_escaped_if_the_file_has_no_escapes() -> None:
    assert revised('{"a": "é", "b": 1}', {"a": "é", "b": "日本"}) == '{"a": "é", "b": "日本"}'


def test_lone_surrogate_is_always_an_escape() -> None:
    assert revised('{"a": "é"}', {"a": "é\ud800"}) == '{"a": "é\\ud800"}'


def test_member_is_added_on_a_line_of_its_own() -> None:
    after = _changed(SPREAD, lambda doc: doc["eval_cases"][0].update(rubrics=[{"id": 1}]))
    added = ',\n      "rubrics": [\n        {\n          "id": 1\n        }\n      ]'
    assert after == SPREAD.replace('"caf\\u00e9"', f'"caf\\u00e9"{added}')


def test_member_is_added_to_an_object_on_one_line() -> None:
    after = _changed(SPREAD, lambda doc: doc["eval_cases"][1].update(x={"y": [1]}))
    assert after == SPREAD.replace('["a","b"]}', '["a","b"], "x": {"y": [1]}}')


@pytest.mark.parametrize(
    "line",
    [
        '{"a": 1.0, "b": 0.8}',
        '{"b": 0.8, "a": 1.0}',
        '{"a": 1.0   }',
        '{   "a"\t:\t1.0   }',
        '{"b\\": \\"": 0,   "a": 1.0   }',
    ],
)
def test_value_stays_on_the_line_that_it_shares(line: str) -> None:
    text = f'{{\n  "criteria": {line}\n}}\n'
    after = _changed(text, lambda doc: doc["criteria"].update(a={"threshold": 1.0}))
    assert after == text.replace("1.0", '{"threshold": 1.0}')


@pytest.mark.parametrize("ending", ["", ",", " , ", "\t,\r"])
def test_value_with_a_line_of_its_own_may_span_several_lines(ending: str) -> None:
    after = ' "b": 0.8\n' if "," in ending else ""
    text = f'{{\n  "a{{,\\"": 1.0{ending}\n{after}}}\n'
    written = _changed(text, lambda doc: doc.update({'a{,"': {"threshold": 1.0}}))
    assert written == text.replace("1.0", '{\n    "threshold": 1.0\n  }')


def test_first_member_is_added_to_an_empty_object() -> None:
    after = _changed(SPREAD, lambda doc: doc["empty"].update(a=1))
    assert after == SPREAD.replace("{}", '{\n    "a": 1\n  }')


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (0, '["b", "c"]'),
        (1, '["a", "c"]'),
        (2, '["a", "b"]'),
    ],
)
def test_removed_item_takes_its_comma(gone: int, left: str) -> None:
    items = ["a", "b", "c"]
    del items[gone]
    assert revised('["a", "b", "c"]', items) == left


def test_removed_line_takes_its_comma_and_line_break() -> None:
    after = _changed(SPREAD, lambda doc: doc["eval_cases"][0].pop("big"))
    assert after == SPREAD.replace('      "big": 1e3,\n', "")


def test_removed_last_line_takes_the_comma_before_it() -> None:
    after = _changed(SPREAD, lambda doc: doc["eval_cases"][0].pop("text"))
    assert after == SPREAD.replace(',\n      "text": "caf\\u00e9"', "")


def test_renamed_key_stays_in_place() -> None:
    def rename(doc: Any) -> None:
        case = doc["eval_cases"][0]
        case["sum"] = case.pop("amount")

    assert _changed(SPREAD, rename) == SPREAD.replace('"amount": 1.0', '"sum": 1.0')


def test_moved_items_keep_their_text() -> None:
    text = '[{"a":1.0},  {"b" : 1e3}, 3]'
    assert revised(text, [3, {"b": 1e3}, {"a": 1.0}]) in (
        '[3, {"b" : 1e3}, {"a":1.0}]',
        '[3,  {"b" : 1e3}, {"a":1.0}]',
    )


def test_added_object_has_the_format_of_its_neighbour() -> None:
    text = '{\n  "calls": [\n    {"args": {"a": 1.0, "b": 1e3}, "name": "x"},\n    { "name":"y" }\n  ]\n}'
    item = {"name": "neu", "args": {}}
    after = _changed(text, lambda value: value["calls"].insert(1, item))
    assert after == text.replace('"x"},\n', '"x"},\n    {"args": {}, "name": "neu"},\n')


def test_copy_keeps_every_spelling() -> None:
    text = '[\n  {"a": 1e3, "b": "\\u00e9 \\/ é",\t"id": 1}\n]'
    after = _changed(text, lambda value: value.append({**value[0], "id": 2}))
    line = text.split("\n")[1]
    assert after == text.replace(line, line + ",\n" + line.replace('"id": 1', '"id": 2'))


def test_value_of_a_duplicate_key_is_not_copied() -> None:
    after = _changed('[{"a": 1, "a": 2}]', lambda value: value.append({"a": 3}))
    assert after == '[{"a": 1, "a": 2}, {"a": 3}]'


def test_carriage_returns_and_tabs_stay() -> None:
    text = '{\r\n\t"a": [\r\n\t\t1\r\n\t]\r\n}\r\n'
    assert revised(text, {"a": [1, {"b": 2}]}) == (
        '{\r\n\t"a": [\r\n\t\t1,\r\n\t\t{\r\n\t\t\t"b": 2\r\n\t\t}\r\n\t]\r\n}\r\n'
    )


def test_last_of_duplicate_keys_is_edited() -> None:
    assert revised('{"a": 1, "a": 2}', {"a": 3}) == '{"a": 1, "a": 3}'
    assert revised('{"a": 1, "b": 0, "a": 2}', {"b": 0}) == '{"b": 0}'


@pytest.mark.parametrize("text", ["", "{", '{"a": 1,}', "[1] 2", "{'a': 1}"])
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        revise(text, {"a": 2})


def test_nesting_too_deep_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EditError, match="too deep"):
        revise("[]", deep)


def test_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(EditError, match="not valid JSON"):
        revise("[]", [object()])


# Any text, any change

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8") | st.sampled_from('"\\/\n\t\x7f\u2028é日'), max_size=6)
)
_keys = st.text(st.sampled_from("abcdeé"), max_size=2)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4), max_leaves=20
)


@dataclass
class _Writer:
    """Write JSON with random white space and spellings."""

    draw: Any

    def text(self, value: Any) -> str:
        return f"{self.blank()}{self.value(value)}{self.blank()}"

    def blank(self) -> str:
        return str(self.draw(st.sampled_from(["", "", " ", "\n", "\r\n\t", "\n  "])))

    def value(self, value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{self.string(key)}{self.blank()}:{self.text(item)}" for key, item in value.items()]
            return "{" + self.blank() + ",".join(self.blank() + member for member in members) + "}"
        if isinstance(value, list):
            return "[" + (",".join(map(self.text, value)) if value else self.blank()) + "]"
        return self.string(value) if isinstance(value, str) else json.dumps(value)

    def string(self, value: str) -> str:
        return json.dumps(value, ensure_ascii=self.draw(st.booleans()))


@st.composite
def _texts(draw: Any) -> str:
    return _Writer(draw).text(draw(_values))


@given(_texts(), _values)
def test_any_text_can_be_changed_to_any_value(text: str, wanted: Any) -> None:
    assert same(json.loads(revised(text, wanted)), wanted)


@st.composite
def _edits(draw: Any) -> tuple[str, tuple[str | int, ...], Any, Any]:
    """Draw a text, a place in it, the value after one change there, and the new value there (_GONE: none)."""
    text = draw(_texts())
    value = json.loads(text)
    location: tuple[str | int, ...] = ()
    holder: Any = None
    inner = value
    while isinstance(inner, dict | list) and inner and (not location or draw(st.booleans())):
        step = draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        holder, inner, location = inner, inner[step], (*location, step)
    new = draw(_values)
    if holder is None:
        return text, location, new, new
    if draw(st.booleans()):
        del holder[location[-1]]
        return text, location, value, _GONE
    holder[location[-1]] = new
    return text, location, value, new


_GONE = object()


@given(_edits())
def test_everything_outside_the_edited_value_keeps_its_bytes(edit: tuple[str, tuple[str | int, ...], Any, Any]) -> None:
    text, location, wanted, new = edit
    after = revised(text, wanted)
    root = scan(text).root
    assert root is not None
    _, child = resolve(root, location)
    node = root if child is None else child.node
    if new is not _GONE:
        if same(node.value(), new):
            assert after == text
        tail = len(text) - node.end
        assert after.startswith(text[: node.start])
        assert after.endswith(text[len(text) - tail :])
        return
    assert child is not None
    _, holder = resolve(root, location[:-1])
    before, behind = _neighbours(root if holder is None else holder.node, child.key_start)
    assert after.startswith(text[:before])
    assert after.endswith(text[behind:])


def _neighbours(holder: Node, start: int) -> tuple[int, int]:
    """Return the end of the previous sibling and the start of the next one: a removal may take the space between.

    Of equal neighbours it is unclear which one went, and of a duplicate key both go.
    """
    number = next(number for number, one in enumerate(holder.children) if one.key_start == start)
    children = holder.children
    first = last = number
    gone = children[number].node.value()
    while holder.kind == "array" and first > 0 and same(children[first - 1].node.value(), gone):
        first -= 1
    while holder.kind == "array" and last + 1 < len(children) and same(children[last + 1].node.value(), gone):
        last += 1
    before = children[first - 1].node.end if first > 0 else holder.start + 1
    behind = children[last + 1].key_start if last + 1 < len(children) else holder.end - 1
    return before, behind

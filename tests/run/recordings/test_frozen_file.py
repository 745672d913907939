"""Frozen files: written, read again, and refused with the place of each mistake."""

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.run.recordings.recordings import RECORDINGS, recording
from workbench.files.frozen_path import frozen_path
from workbench.files.own_file import OwnFileError
from workbench.run.recordings.frozen_file import read_frozen
from workbench.run.recordings.frozen_schema import FrozenFile, frozen_contents, json_schema
from workbench.run.recordings.recording import Recording, ToolCall, digest
from workbench.worker.value_forms import decoded

_SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
_DOCS = Path(__file__).parents[3] / "docs"


def _saved(folder: Path, made: Recording) -> Path:
    path = frozen_path(folder / "refunds.evalset.json", made.eval_id)
    path.parent.mkdir(exist_ok=True)
    for file, content in frozen_contents(path, made).items():
        file.write_bytes(content)
    return path


def _first_fault(path: Path) -> str:
    with pytest.raises(OwnFileError) as raised:
        read_frozen(path)
    return raised.value.faults[0].sentence(path.name)


@given(made=RECORDINGS)
@_SHARED
def test_written_recording_is_read_again_unchanged(tmp_path: Path, made: Recording) -> None:
    path = _saved(tmp_path, made)
    assert read_frozen(path) == made
    text = path.read_text("utf-8")
    assert frozen_contents(path, read_frozen(path))[path].decode() == text
    assert not set(text) & set("\x1b\u202e\x7f\u200b")


def test_nan_and_infinity_are_kept(tmp_path: Path) -> None:
    calls = (ToolCall(1, "desk", "f", {"x": float("inf"), "long": [float("-inf")] * 9_000}, answer=[float("nan")]),)
    made = recording(calls=calls)
    path = _saved(tmp_path, made)
    (call,) = read_frozen(path).calls
    assert call.args == calls[0].args
    assert repr(decoded(call.answer)) == "[nan]"
    assert frozen_contents(path, read_frozen(path)) == frozen_contents(path, made)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", f"-{'9' * 400}.5"])
def test_number_that_is_not_finite_is_an_error_at_its_place(tmp_path: Path, number: str) -> None:
    path = _saved(tmp_path, recording(calls=(ToolCall(1, "desk", "f", {"x": 1}, answer={"y": "here"}),)))
    text = path.read_text("utf-8")
    path.write_text(text.replace('"here"', number))
    line = text[: text.index('"here"')].count("\n") + 1
    with pytest.raises(OwnFileError) as raised:
        read_frozen(path)
    (fault,) = raised.value.faults
    assert fault.line == line
    assert fault.message.startswith(f"`{number[:30]}")
    assert "is not a finite number" in fault.message


def test_file_is_readable_with_one_paragraph_for_each_call(tmp_path: Path) -> None:
    text = _saved(tmp_path, recording(models=(), parts={})).read_text("utf-8")
    assert text == (Path(__file__).parent / "late_parcel.frozen.json").read_text("utf-8")


def test_changed_answer_changes_only_its_line(tmp_path: Path) -> None:
    before = recording()
    changed = ToolCall(1, "desk", "find", {"order": "A-18"}, answer={"status": "delivered"}, seconds=0.25)
    texts = [
        _saved(tmp_path, made).read_text("utf-8").splitlines()
        for made in (before, recording(calls=(changed, *before.calls[1:])))
    ]
    assert [line for line in texts[1] if line not in texts[0]] == ['      "answer": {"status": "delivered"},']
    assert len(texts[0]) == len(texts[1])


def test_large_values_are_stored_beside_the_file(tmp_path: Path) -> None:
    large = {"text": "x" * 20_000}
    made = recording(
        calls=(ToolCall(1, "desk", "find", {}, answer=large), ToolCall(1, "desk", "find", {}, answer=large))
    )
    path = _saved(tmp_path, made)
    assert {file.name for file in path.parent.iterdir()} == {f"{digest(large)}.json", path.name}
    assert f'"answer_in": "{digest(large)}.json"' in path.read_text("utf-8")
    assert read_frozen(path) == made


_PLACES = [
    ({"schema": "agent-workbench/frozen/2"}, "2:13 (schema): it has the schema", "Update agent-workbench"),
    ({"schema": "other"}, "2:13 (schema): this is not a frozen file", ""),
    ({"eval_id": "other"}, "4:14 (eval_id): the file is named late_parcel.frozen.json", "other.frozen.json"),
    ({"agent": 5}, "5:12 (agent): `agent` must be text, not the number 5", ""),
    ({"calls": None}, "(calls): `calls` must be a list, not null", ""),
    ({"cals": []}, "(cals): unknown key `cals`", "Did you mean `calls`?"),
    ({"calls": [{"turn": 0, "agent": "a", "tool": "f", "args": {}, "answer": 1}]}, "(calls[0].turn)", "equal to 1"),
    ({"calls": [{"turn": 1, "agent": "a", "tool": "f", "args": {}}]}, "(calls[0]): this call needs `answer`", "`lost`"),
    (
        {"calls": [{"turn": 1, "agent": "a", "tool": "f", "args": {}, "answer": 1, "lost": "x"}]},
        "(calls[0].lost): `answer` and `lost` exclude each other",
        "Keep one",
    ),
    (
        {"calls": [{"turn": 1, "agent": "a", "tool": "f", "args": {}, "answer_in": "../../secret.json"}]},
        "(calls[0].answer_in): `answer_in`",
        "",
    ),
    (
        {"calls": [{"turn": 1, "agent": "a", "tool": "f", "args": {}, "answer_in": "0123456789abcdef0123.json"}]},
        "(calls[0].answer_in): 0123456789abcdef0123.json: there is no such file",
        "Freeze the case again",
    ),
    ({"requests": [{"part": "d", "value": 1}] * 2}, "(requests[1].part): the part d occurs twice", ""),
]


@pytest.mark.parametrize(("changes", "where", "also"), _PLACES)
def test_mistake_is_named_at_its_place(tmp_path: Path, changes: dict[str, Any], where: str, also: str) -> None:
    path = _saved(tmp_path, recording(models=(), parts={}))
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes, indent=2))
    fault = _first_fault(path)
    assert where in fault
    assert also in fault


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "late_parcel.frozen.json:1:1: the file is empty"),
        (b"\xff\xfe{", "UTF-16"),
        (b'{"schema": "\xff"}', "1:13: the byte 0xff is not UTF-8"),
        (b"[]", "does not hold an object"),
        (b"hello", "the file is not JSON: it begins with `hello`"),
        (b'{"schema": "agent-workbench/frozen/1", "a": 1,\n"a": 2}', "2:1: duplicate key `a`: it is on line 1, too"),
        (b'{"schema": "agent-workbench/frozen/1", "calls": [}', "1:50 (calls[0])"),
        (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 200 levels"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 200 levels"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "integer"),
        (b"{}", "this is not a frozen file"),
        (b'{"a": {"b": 1, "b": 2' + b"," * 200_000, "this is not a frozen file"),
    ],
)
def test_damaged_file_is_an_error_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = _saved(tmp_path, recording())
    path.write_bytes(content)
    assert message in _first_fault(path)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    assert _first_fault(tmp_path / "a.frozen.json") == "a.frozen.json: there is no such file"


def test_folder_instead_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.frozen.json").mkdir()
    assert "cannot be read" in _first_fault(tmp_path / "a.frozen.json")


def test_frozen_file_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    path = _saved(tmp_path, recording())
    path.symlink_to(path.rename(tmp_path / "outside.json"))
    assert "is a link, which is not followed" in _first_fault(path)


def test_linked_folder_of_recordings_is_not_followed(tmp_path: Path) -> None:
    path = _saved(tmp_path, recording())
    outside = path.parent.rename(tmp_path.with_name(f"{tmp_path.name}_outside"))
    path.parent.symlink_to(outside)
    assert "its folder is a link, which is not followed" in _first_fault(path)


def test_values_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    large = "x" * 20_000
    path = _saved(tmp_path, recording(calls=(ToolCall(1, "desk", "find", {}, answer=large),)))
    beside = path.with_name(f"{digest(large)}.json")
    outside = tmp_path / "outside.json"
    beside.rename(outside)
    beside.symlink_to(outside)
    assert "is a link, which is not followed" in _first_fault(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'"y"', "its content does not match its name"),
        (b'"x', "is damaged: it is not JSON"),
        (b"1}, {", "is damaged: it is not JSON"),
        (b"[" * 1_000, "is damaged: it is not JSON"),
    ],
)
def test_changed_value_beside_the_file_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    large = "x" * 20_000
    path = _saved(tmp_path, recording(calls=(ToolCall(1, "desk", "find", {}, answer=large),)))
    path.with_name(f"{digest(large)}.json").write_bytes(content)
    assert message in _first_fault(path)


def test_file_that_names_one_large_value_many_times_is_refused(tmp_path: Path) -> None:
    large = "x" * (4 << 20)
    call = ToolCall(1, "desk", "find", {}, answer=large)
    path = _saved(tmp_path, recording(calls=(call,)))
    content = json.loads(path.read_bytes())
    content["calls"] *= 20
    path.write_text(json.dumps(content))
    assert "larger than 64 MiB together" in _first_fault(path)


@given(st.randoms(use_true_random=False))
@_SHARED
def test_mutated_file_is_read_or_refused(tmp_path: Path, chance: random.Random) -> None:
    path = _saved(tmp_path, recording())
    content = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(content))
        content[start : start + chance.choice([0, 1, 9])] = chance.choice(
            [b"", b'"', b"{", b"5", b"null", b"\xff", b","]
        )
    path.write_bytes(content)
    with contextlib.suppress(OwnFileError):
        read_frozen(path)


def test_schema_is_the_committed_one_and_describes_what_is_written(tmp_path: Path) -> None:
    import jsonschema

    committed = json.loads((_DOCS / "frozen.schema.json").read_text("utf-8"))
    assert committed == json_schema(), "python -m workbench.run.recordings.frozen_schema > docs/frozen.schema.json"
    path = _saved(tmp_path, recording())
    jsonschema.validate(json.loads(path.read_bytes()), committed)
    assert set(committed["properties"]) == set(FrozenFile.__annotations__)

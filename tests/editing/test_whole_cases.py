"""Edits of whole cases in files that another program has changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.run.recordings.recordings import recording
from workbench.editing.evalset_file import EvalsetFile, RejectedError
from workbench.editing.saving import Contents, Saver
from workbench.editing.whole_cases import (
    CaseSelection,
    GoneError,
    added,
    deleted,
    duplicated,
    moved_to,
    renamed,
    renamed_content,
)
from workbench.files.frozen_path import frozen_folder, frozen_path
from workbench.files.json_text.json_edit import EditError
from workbench.run.recordings.frozen_file import read_frozen
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import ToolCall, digest
from workbench.ui.editing.drafts import open_case

FILE, OTHER = Path("/a.json"), Path("/b.json")
SHOWN = ["one", "two", "three"]


def opened(*ids: str, other: tuple[str, ...] = ()) -> dict[Path, EvalsetFile]:
    """Return two files with cases of these IDs."""
    return {file: EvalsetFile(_content(names)) for file, names in ((FILE, ids), (OTHER, other))}


def _content(ids: tuple[str, ...]) -> bytes:
    cases = [{"eval_id": name, "conversation": [], "theirs": 1} for name in ids]
    return json.dumps({"eval_set_id": "x", "eval_cases": cases}).encode()


def ids_of(content: bytes | None) -> list[str]:
    return [case["eval_id"] for case in json.loads(content or b"")["eval_cases"]]


def chosen(*numbers: int) -> CaseSelection:
    return CaseSelection(FILE, SHOWN, numbers)


NOW = ("new", "three", "two", "one")


def test_case_is_found_at_its_current_place() -> None:
    files = opened(*NOW)
    assert ids_of(deleted(files, [chosen(1)])[FILE][1]) == ["new", "three", "one"]
    contents, names = duplicated(files, [chosen(0, 2)])
    assert ids_of(contents[FILE][1]) == ["new", "three", "three_2", "two", "one", "one_2"]
    assert names == ["three_2", "one_2"]
    assert ids_of(renamed(files, chosen(1), "zwei")[FILE][1]) == ["new", "three", "zwei", "one"]
    assert ids_of(added(files, FILE, {"eval_id": "x", "conversation": []}, after=chosen(1))[FILE][1])[3] == "x"


def test_edits_start_from_the_current_content() -> None:
    files = opened(*NOW, other=("b",))
    contents = moved_to(files, chosen(1), OTHER)
    assert [before for before, _ in contents.values()] == [files[OTHER].content, files[FILE].content]
    assert [ids_of(after) for _, after in contents.values()] == [["b", "two"], ["new", "three", "one"]]
    assert list(contents) == [OTHER, FILE], "a case may stand in both for a moment, never in none"


def test_missing_case_is_reported_and_nothing_changes() -> None:
    with pytest.raises(GoneError, match=r"a\.json was changed by another program: two no longer exists"):
        deleted(opened("one", "three"), [chosen(0, 1)])
    with pytest.raises(GoneError, match="two is no longer unique"):
        deleted(opened("two", "two", "three", "four"), [chosen(1)])


def test_new_case_is_added_even_if_its_predecessor_is_gone() -> None:
    case = {"eval_id": "x", "conversation": []}
    assert ids_of(added(opened("one"), FILE, case, after=chosen(1))[FILE][1]) == ["one", "x"]
    assert ids_of(added(opened("one"), FILE, case, after=None)[FILE][1]) == ["one", "x"]
    with pytest.raises(RejectedError):
        added(opened("one", "x"), FILE, case, after=None)


def test_duplicate_ids_are_distinguished_by_place_in_an_unchanged_file() -> None:
    files = {FILE: EvalsetFile(_content(("one", "one")).replace(b"1}", b"2}", 1))}
    after = deleted(files, [CaseSelection(FILE, ["one", "one"], [1])])[FILE][1]
    assert json.loads(after or b"")["eval_cases"][0]["theirs"] == 2


_LARGE = "x" * 20_000
_BESIDE = f"{digest(_LARGE)}.json"


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    """An evalset with the cases `late_parcel` and `other`, and a recording of the first with a large answer."""
    file = tmp_path / "refunds.evalset.json"
    cases: list[Any] = [{"eval_id": name, "conversation": []} for name in ("late_parcel", "other")]
    file.write_text(json.dumps({"eval_set_id": "refunds", "eval_cases": cases}))
    path = frozen_path(file, "late_parcel")
    path.parent.mkdir()
    for one, content in frozen_contents(path, recording(calls=(ToolCall(1, "desk", "f", {}, answer=_LARGE),))).items():
        one.write_bytes(content)
    return file


def _opened(*files: Path) -> dict[Path, EvalsetFile]:
    return {file: EvalsetFile(file.read_bytes()) for file in files}


def _first(file: Path) -> CaseSelection:
    return CaseSelection(file, ["late_parcel", "other"], [0])


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in frozen_folder(folder).iterdir()}


def _undone(root: Path, contents: Contents) -> Saver:
    """Save the contents, and return the saver."""
    saver = Saver(root / ".workbench", root)
    saver.save("edit", contents)
    return saver


def test_renamed_case_keeps_its_recording(tmp_path: Path, evalset: Path) -> None:
    before = _files(evalset)
    saver = _undone(tmp_path, renamed(_opened(evalset), _first(evalset), "Very late"))
    assert set(_files(evalset)) == {"%56ery%20late.frozen.json", _BESIDE}
    assert read_frozen(frozen_path(evalset, "Very late")).calls[0].answer == _LARGE
    saver.undo()
    assert _files(evalset) == before


def test_case_renamed_in_the_editor_keeps_its_recording(tmp_path: Path, evalset: Path) -> None:
    draft = open_case(_first(evalset))
    value = {**draft.value, "eval_id": "later"}
    contents = draft.with_recordings(value, {evalset: (evalset.read_bytes(), draft.after(value).content)})
    _undone(tmp_path, contents)
    assert read_frozen(frozen_path(evalset, "later")).eval_id == "later"
    draft = open_case(CaseSelection(evalset, ["later", "other"], [0]))
    kept = {evalset: (b"", evalset.read_bytes())}
    assert draft.with_recordings(draft.value, kept) == kept


def test_copy_gets_its_own_recording(tmp_path: Path, evalset: Path) -> None:
    contents, (name,) = duplicated(_opened(evalset), [_first(evalset)])
    _undone(tmp_path, contents)
    assert set(_files(evalset)) == {"late_parcel.frozen.json", f"{name}.frozen.json", _BESIDE}
    assert read_frozen(frozen_path(evalset, name)).calls == read_frozen(frozen_path(evalset, "late_parcel")).calls


def test_recording_of_a_deleted_case_is_deleted_and_restored_by_undo(tmp_path: Path, evalset: Path) -> None:
    before = _files(evalset)
    saver = _undone(tmp_path, deleted(_opened(evalset), [_first(evalset)]))
    assert not frozen_folder(evalset).exists()
    saver.undo()
    assert _files(evalset) == before


def test_recording_moves_with_its_case_to_another_evalset(tmp_path: Path, evalset: Path) -> None:
    target = tmp_path / "more.test.json"
    target.write_text('{"eval_set_id": "more", "eval_cases": []}')
    saver = _undone(tmp_path, moved_to(_opened(evalset, target), _first(evalset), target))
    assert not frozen_folder(evalset).exists()
    recorded = read_frozen(frozen_path(target, "late_parcel"))
    assert (recorded.eval_set_id, recorded.calls[0].answer) == ("more", _LARGE)
    saver.undo()
    assert not frozen_folder(target).exists()
    assert set(_files(evalset)) == {"late_parcel.frozen.json", _BESIDE}


def test_large_value_stays_as_long_as_another_case_names_it(tmp_path: Path, evalset: Path) -> None:
    contents, _ = duplicated(_opened(evalset), [_first(evalset)])
    _undone(tmp_path, contents)
    shown = list(EvalsetFile(evalset.read_bytes()).ids)
    _undone(tmp_path, deleted(_opened(evalset), [CaseSelection(evalset, shown, [0])]))
    assert set(_files(evalset)) == {"late_parcel_2.frozen.json", _BESIDE}


def test_case_is_not_changed_if_its_recording_cannot_be_read(evalset: Path) -> None:
    path = frozen_path(evalset, "late_parcel")
    path.unlink()
    path.mkdir()
    with pytest.raises(EditError, match="cannot be read"):
        deleted(_opened(evalset), [_first(evalset)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"eval_id":  "a", "x": 1.50}', b'{"eval_id":  "b", "x": 1.50}'),
        (b'{\r\n  "eval_id": "a\\"", "x": "\\u00e4"}', b'{\r\n  "eval_id": "b", "x": "\\u00e4"}'),
        (b"{", b"{"),
        (b"[]", b"[]"),
        (b"\xff", b"\xff"),
        (b'{"other": 1}', b'{"other": 1}'),
    ],
)
def test_renaming_a_recording_keeps_other_bytes_and_damaged_content(before: bytes, after: bytes) -> None:
    assert renamed_content(before, {"eval_id": "b"}) == after

"""Edits of whole cases in files that another program has changed."""

import json
from pathlib import Path

import pytest

from workbench.editing.evalset_file import EvalsetFile, RejectedError
from workbench.editing.whole_cases import CaseSelection, GoneError, added, deleted, duplicated, moved_to, renamed

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

"""Whole cases in files that somebody else has changed meanwhile."""

import json
from pathlib import Path

import pytest

from workbench.authoring.evalset_file import EvalsetFile, RejectedError
from workbench.authoring.whole_cases import Chosen, GoneError, added, deleted, duplicated, moved_to, renamed

FILE, OTHER = Path("/a.json"), Path("/b.json")
SHOWN = ["one", "two", "three"]


def opened(*ids: str, other: tuple[str, ...] = ()) -> dict[Path, EvalsetFile]:
    """Two files with cases of these ids."""
    return {file: EvalsetFile(_content(names)) for file, names in ((FILE, ids), (OTHER, other))}


def _content(ids: tuple[str, ...]) -> bytes:
    cases = [{"eval_id": name, "conversation": [], "theirs": 1} for name in ids]
    return json.dumps({"eval_set_id": "x", "eval_cases": cases}).encode()


def ids_of(content: bytes | None) -> list[str]:
    return [case["eval_id"] for case in json.loads(content or b"")["eval_cases"]]


def chosen(*numbers: int) -> Chosen:
    return Chosen(FILE, SHOWN, numbers)


NOW = ("new", "three", "two", "one")


def test_a_case_is_found_where_it_stands_now() -> None:
    files = opened(*NOW)
    assert ids_of(deleted(files, [chosen(1)])[FILE][1]) == ["new", "three", "one"]
    contents, names = duplicated(files, [chosen(0, 2)])
    assert ids_of(contents[FILE][1]) == ["new", "three", "three_2", "two", "one", "one_2"]
    assert names == ["three_2", "one_2"]
    assert ids_of(renamed(files, chosen(1), "zwei")[FILE][1]) == ["new", "three", "zwei", "one"]
    assert ids_of(added(files, FILE, {"eval_id": "x", "conversation": []}, after=chosen(1))[FILE][1])[3] == "x"


def test_each_change_starts_from_what_the_file_holds_now() -> None:
    files = opened(*NOW, other=("b",))
    contents = moved_to(files, chosen(1), OTHER)
    assert [before for before, _ in contents.values()] == [files[OTHER].content, files[FILE].content]
    assert [ids_of(after) for _, after in contents.values()] == [["b", "two"], ["new", "three", "one"]]
    assert list(contents) == [OTHER, FILE], "a case may stand in both for a moment, never in none"


def test_a_case_that_is_gone_is_said_and_nothing_is_made() -> None:
    with pytest.raises(GoneError, match=r"a\.json was changed by another program: two no longer exists"):
        deleted(opened("one", "three"), [chosen(0, 1)])
    with pytest.raises(GoneError, match="two is no longer unique"):
        deleted(opened("two", "two", "three", "four"), [chosen(1)])


def test_a_new_case_does_not_need_the_one_it_was_to_follow() -> None:
    case = {"eval_id": "x", "conversation": []}
    assert ids_of(added(opened("one"), FILE, case, after=chosen(1))[FILE][1]) == ["one", "x"]
    assert ids_of(added(opened("one"), FILE, case, after=None)[FILE][1]) == ["one", "x"]
    with pytest.raises(RejectedError):
        added(opened("one", "x"), FILE, case, after=None)


def test_ids_that_stand_twice_are_told_apart_by_their_place_while_the_file_is_as_it_was() -> None:
    files = {FILE: EvalsetFile(_content(("one", "one")).replace(b"1}", b"2}", 1))}
    after = deleted(files, [Chosen(FILE, ["one", "one"], [1])])[FILE][1]
    assert json.loads(after or b"")["eval_cases"][0]["theirs"] == 2

"""Storage of the user's answers and of last owners."""

from pathlib import Path

import pytest

from tests.stored import sql
from workbench.files.state_folder import state_dir
from workbench.store.owners import LastOwner, OwnersFileError, StoredOwners, read_owners, save_last_owners, save_owner


def test_saved_answers_are_read_back(tmp_path: Path) -> None:
    root = tmp_path / "project"
    assert read_owners(tmp_path) == StoredOwners()
    save_owner(tmp_path, "evals/b.evalset.json", root / "agents" / "desk", root)
    save_owner(tmp_path, "evals/a.evalset.json", tmp_path / "elsewhere", root)
    save_owner(tmp_path, "evals/b.evalset.json", root, root)
    assert read_owners(tmp_path).answers == {
        "evals/a.evalset.json": (tmp_path / "elsewhere").as_posix(),
        "evals/b.evalset.json": ".",
    }


def test_answer_for_a_folder_of_a_stranger_stays_in_memory(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".workbench/runs").mkdir(parents=True)
    one, two = state_dir(tmp_path / "one"), state_dir(tmp_path / "two")
    save_owner(one, "a", tmp_path, tmp_path)
    assert read_owners(one).answers == {"a": "."}
    assert read_owners(two) == StoredOwners()
    assert [file.name for file in tmp_path.rglob("*")].count("runs.db") == 0


def test_write_that_fails_leaves_the_old_answers(tmp_path: Path) -> None:
    save_owner(tmp_path, "a", tmp_path, tmp_path)
    sql(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON owner BEGIN SELECT RAISE(FAIL, 'No space'); END")
    with pytest.raises(OwnersFileError, match="No space"):
        save_owner(tmp_path, "b", tmp_path, tmp_path)
    assert read_owners(tmp_path).answers == {"a": "."}


@pytest.mark.parametrize("name", ["a\ud800b", '"quoted"', "\udc80", "ä", ""])
def test_any_name_of_a_file_is_read_back(tmp_path: Path, name: str) -> None:
    save_owner(tmp_path, name, tmp_path / "desk", tmp_path)
    save_last_owners(tmp_path, {name: LastOwner(name, name.encode("utf-8", "replace").decode())})
    stored = read_owners(tmp_path)
    assert stored.answers == {name: "desk"}
    assert stored.last[name].folder == name


def test_last_owners_are_read_back_beside_the_answers(tmp_path: Path) -> None:
    save_owner(tmp_path, "evals/a.evalset.json", tmp_path / "desk", tmp_path)
    save_last_owners(tmp_path, {"evals/a.evalset.json": LastOwner("desk", "")})
    save_last_owners(tmp_path, {"evals/b.evalset.json": LastOwner("bots/shop", "shop")})
    stored = read_owners(tmp_path)
    assert stored.answers == {"evals/a.evalset.json": "desk"}
    assert stored.last == {
        "evals/a.evalset.json": LastOwner("desk", ""),
        "evals/b.evalset.json": LastOwner("bots/shop", "shop"),
    }


def test_unchanged_last_owners_are_not_written(tmp_path: Path) -> None:
    save_last_owners(tmp_path, {"a": LastOwner("desk", None)})
    sql(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON owner BEGIN SELECT RAISE(FAIL, 'No space'); END")
    save_last_owners(tmp_path, {"a": LastOwner("desk", None)})
    with pytest.raises(OwnersFileError):
        save_last_owners(tmp_path, {"a": LastOwner("other", None)})


def test_damaged_owners_are_named_and_count_as_missing(tmp_path: Path) -> None:
    save_last_owners(tmp_path, {"a": LastOwner("desk", ""), "b": LastOwner("desk", "")})
    sql(tmp_path, "UPDATE owner SET agent = 'evil' WHERE evalset = 'a'")
    found = read_owners(tmp_path)
    assert list(found.last) == ["b"]
    assert "1 owner in" in found.faults[0]
    save_last_owners(tmp_path, {"a": LastOwner("desk", "")})
    assert read_owners(tmp_path).faults == ()

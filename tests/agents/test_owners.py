"""Storage of the user's answers and of last owners."""

import json
import os
from pathlib import Path

import pytest

from workbench.agents.owners import LastOwner, OwnersFileError, StoredOwners, read_owners, save_last_owners, save_owner


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
    assert [path.name for path in tmp_path.iterdir()] == ["owners.json"]
    assert (tmp_path / "owners.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": "agent-workbench/owners/2", "owners": {}}'])
def test_foreign_answers_count_as_missing_and_are_not_overwritten(tmp_path: Path, text: str) -> None:
    file = tmp_path / "owners.json"
    file.write_text(text)
    found = read_owners(tmp_path)
    assert (dict(found.answers), len(found.faults)) == ({}, 1)
    assert f"{file} is ignored" in found.faults[0]
    with pytest.raises(OwnersFileError):
        save_owner(tmp_path, "a", tmp_path, tmp_path)
    assert file.read_text() == text


def test_answers_of_the_wrong_shape_count_as_missing(tmp_path: Path) -> None:
    (tmp_path / "owners.json").write_text(json.dumps({"schema": "agent-workbench/owners/1", "owners": {"a": 1}}))
    assert (dict(read_owners(tmp_path).answers), len(read_owners(tmp_path).faults)) == ({}, 1)


def test_missing_state_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OwnersFileError, match="gone"):
        save_owner(tmp_path / "gone", "a", tmp_path, tmp_path)


def test_write_that_fails_leaves_the_old_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_owner(tmp_path, "a", tmp_path, tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OwnersFileError, match="No space"):
        save_owner(tmp_path, "b", tmp_path, tmp_path)
    assert read_owners(tmp_path).answers == {"a": "."}
    assert [path.name for path in tmp_path.iterdir()] == ["owners.json"]


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
    assert (tmp_path / "last_owners.json").stat().st_mode & 0o777 == 0o600


def test_unchanged_last_owners_are_not_written(tmp_path: Path) -> None:
    save_last_owners(tmp_path, {"a": LastOwner("desk", None)})
    before = (tmp_path / "last_owners.json").stat().st_ino
    save_last_owners(tmp_path, {"a": LastOwner("desk", None)})
    assert (tmp_path / "last_owners.json").stat().st_ino == before


@pytest.mark.parametrize("owner", ["desk", {"agent": 1}, {"app_name": "desk"}, {"agent": "desk", "app_name": []}])
def test_last_owners_of_the_wrong_shape_count_as_missing(tmp_path: Path, owner: object) -> None:
    content = {"schema": "agent-workbench/last-owners/1", "owners": {"a": owner}}
    (tmp_path / "last_owners.json").write_text(json.dumps(content))
    assert "last_owners" in read_owners(tmp_path).faults[0]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 10_000])
def test_damaged_last_owners_are_replaced_by_the_next_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "last_owners.json").write_bytes(content)
    assert "last_owners.json is ignored" in read_owners(tmp_path).faults[0]
    save_last_owners(tmp_path, {"a": LastOwner("desk", "")})
    assert read_owners(tmp_path) == StoredOwners({}, {"a": LastOwner("desk", "")})

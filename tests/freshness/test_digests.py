"""Digests of files that are stored between sessions."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.stored import sql
from workbench.files.file_access import open_regular
from workbench.store import digests as cache_module
from workbench.store.digests import ABSENT, DigestCache, Digests, digest_cache, project_digests

HOUR = 3_600_000_000_000


@pytest.fixture(autouse=True)
def _kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep each digest, and take a file for unchanged that was written just now."""
    monkeypatch.setattr(cache_module, "_WORTH_KEEPING", 1)
    monkeypatch.setattr(cache_module, "_GRANULARITY", 0)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / ".workbench"
    folder.mkdir()
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the files whose content is read for a digest."""
    found: list[str] = []

    def noted(path: Path) -> BinaryIO:
        found.append(path.name)
        return open_regular(path)

    monkeypatch.setattr(cache_module, "open_regular", noted)
    return found


def _anew(state: Path) -> Digests:
    """Begin as another program would."""
    digest_cache.cache_clear()
    return project_digests(state)


def _write_with_old_time(file: Path) -> None:
    file.write_bytes(b"2" * 1000)
    os.utime(file, ns=(HOUR, HOUR))


def test_unchanged_file_is_not_read_again(state: Path, reads: list[str]) -> None:
    file = state.parent / "data.bin"
    file.write_bytes(b"1" * 1000)
    first = _anew(state).files([file])
    assert _anew(state).files([file]) == first
    assert reads == ["data.bin"]


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b"2" * 1000),
        _write_with_old_time,
        lambda file: (file.with_name("new").write_bytes(b"2" * 1000), file.with_name("new").replace(file)),
        lambda file: os.truncate(file, 999),
    ],
    ids=["written", "with its old time", "replaced", "cut"],
)
def test_changed_file_is_read_again(state: Path, change: Callable[[Path], object]) -> None:
    file = state.parent / "data.bin"
    file.write_bytes(b"1" * 1000)
    os.utime(file, ns=(HOUR, HOUR))
    before = _anew(state).files([file])
    change(file)
    assert _anew(state).files([file]) != before


def test_rewriting_the_same_bytes_keeps_the_digest(state: Path) -> None:
    file = state.parent / "data.bin"
    file.write_bytes(b"1" * 1000)
    before = _anew(state).files([file])
    file.write_bytes(b"1" * 1000)
    assert _anew(state).files([file]) == before


def test_recently_changed_file_is_read_again(state: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_GRANULARITY", 2_000_000_000)
    file = state.parent / "data.bin"
    file.write_bytes(b"1" * 1000)
    for _ in range(2):
        _anew(state).files([file])
    assert reads == ["data.bin"] * 2


@pytest.mark.parametrize(
    "harm",
    ["digest = '0123456789abcdef'", "path = path || 'x'", "size = 7", "crc = 0", "digest = x'ff'", "kind = 'other'"],
)
def test_damaged_digest_is_ignored_and_replaced(state: Path, harm: str, reads: list[str]) -> None:
    file = state.parent / "data.bin"
    file.write_bytes(b"1" * 1000)
    before = _anew(state).files([file])
    sql(state, f"UPDATE file_digest SET {harm}")
    for _ in range(2):
        assert _anew(state).files([file]) == before
    assert reads == ["data.bin"] * 2


def test_digests_with_another_salt_are_ignored(state: Path) -> None:
    file = state.parent / "data.bin"
    file.write_bytes(b"1" * 1000)
    before = _anew(state).files([file])
    sql(state, "UPDATE meta SET value = 'another' WHERE name = 'salt'")
    assert _anew(state).files([file]) != before


def test_number_of_stored_digests_is_limited(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST", 3)
    files = [state.parent / f"{number}.bin" for number in range(5)]
    for file in files:
        file.write_bytes(b"1")
    _anew(state).files(files)
    _anew(state).files(files[3:])
    assert len(sql(state, "SELECT path FROM file_digest")) == 3


def test_digest_of_a_file_with_a_large_inode_is_stored(state: Path) -> None:
    file = state.parent / "data.bin"
    file.write_bytes(b"1")
    status = file.stat()
    values = (status.st_mode, 1 << 63 | status.st_ino, *status[2:])
    large = os.stat_result(values, {name: getattr(status, name) for name in ("st_mtime_ns", "st_ctime_ns")})
    cache = DigestCache(state, "salt")
    cache.add(file, large, large, "ab", time.time_ns())
    cache.keep()
    assert DigestCache(state, "salt").find(file, large) == "ab"


def test_two_processes_keep_each_others_digests(state: Path, reads: list[str]) -> None:
    files = [state.parent / name for name in ("a.bin", "b.bin")]
    for file in files:
        file.write_bytes(b"1")
    one, other = _anew(state), _anew(state)
    other.files([state.parent / "none"])
    one.files(files[:1])
    other.files(files[1:])
    _anew(state).files(files)
    assert reads == ["a.bin", "b.bin"]


def test_without_a_state_folder_no_digests_are_stored(tmp_path: Path) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(b"1")
    _anew(tmp_path / "none").files([file])
    assert [path.name for path in tmp_path.iterdir()] == ["data.bin"]


def test_empty_log_of_a_database_counts_as_absent(tmp_path: Path) -> None:
    for name in ("a.db-wal", "a.txt"):
        (tmp_path / name).write_bytes(b"")
    digests = Digests("salt")
    assert digests.file(tmp_path / "a.db-wal") == ABSENT == digests.file(tmp_path / "b.db-wal")
    assert digests.file(tmp_path / "a.txt") != ABSENT

"""The host program in the cache of a machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.places.echo_host import echo_program
from workbench.places.landing import NotLandedError, host_arguments, land, landed
from workbench.places.remote.program import HostProgram

PROGRAM = echo_program()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "cache/agent-workbench/hosts"


def test_landed_program_runs_from_its_folder() -> None:
    assert landed(PROGRAM.digest) is None
    folder = land(PROGRAM.digest, PROGRAM.archive)
    assert landed(PROGRAM.digest) == folder
    assert land(PROGRAM.digest, PROGRAM.archive) == folder
    command = host_arguments(folder, "--stdio")
    assert subprocess.run(command, input=b"some bytes", capture_output=True, check=True).stdout == b"some bytes"
    assert command[0] == sys.executable


def test_home_that_cannot_be_written_is_replaced(cache: Path, tmp_path: Path) -> None:
    cache.parents[1].write_text("a file, not a folder")
    folder = land(PROGRAM.digest, PROGRAM.archive)
    assert folder.is_relative_to(tmp_path / "temporary")
    assert landed(PROGRAM.digest) == folder


def test_folder_that_others_may_write_is_not_trusted(cache: Path) -> None:
    land(PROGRAM.digest, PROGRAM.archive)
    cache.chmod(0o777)
    assert landed(PROGRAM.digest) is None


def test_no_place_at_all_is_an_error_with_reasons(cache: Path, tmp_path: Path) -> None:
    cache.parents[1].write_text("")
    (tmp_path / "temporary").rmdir()
    (tmp_path / "temporary").write_text("")
    with pytest.raises(NotLandedError, match=r"cannot be stored here .*: Not a directory; .*: Not a directory"):
        land(PROGRAM.digest, PROGRAM.archive)


def test_old_programs_are_removed(cache: Path) -> None:
    old = land("old", PROGRAM.archive)
    long_ago = time.time() - 15 * 86400
    os.utime(old, (long_ago, long_ago))
    land(PROGRAM.digest, PROGRAM.archive)
    assert [folder.name for folder in cache.iterdir()] == [PROGRAM.digest]


def test_digest_depends_on_names_and_contents_only() -> None:
    one = HostProgram.of({"a": b"1", "b": b"2"})
    assert one == HostProgram.of({"b": b"2", "a": b"1"})
    assert len({one.digest, HostProgram.of({"a": b"12"}).digest, HostProgram.of({"a": b"1", "c": b"2"}).digest}) == 3

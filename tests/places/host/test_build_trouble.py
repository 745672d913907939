"""Why a build failed is said in one line, from what pip and uv print."""

import os
from pathlib import Path

import pytest

from workbench.places.host.build_trouble import trouble, without_noise

PIP = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(Failed to establish a new connection:
ERROR: No matching distribution found for google-adk
"""
UV = "error: Failed to fetch: https://pypi.org/simple/x/\n  dns error: failed to lookup address information\n"


@pytest.mark.parametrize("log", [PIP, UV])
def test_unreachable_index_has_a_way_out(log: str, tmp_path: Path) -> None:
    assert trouble(log, tmp_path).startswith("the package index cannot be reached; name an interpreter")


def test_full_disk_is_found_in_the_log_and_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = f"the disk is full at {tmp_path.parent.parent}"
    assert trouble("OSError: [Errno 28] No space left on device", tmp_path) == full
    values = list(os.statvfs(tmp_path))
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result([*values[:4], 0, *values[5:]]))
    assert trouble("something else", tmp_path) == full


def test_other_failures_are_left_to_the_log(tmp_path: Path) -> None:
    assert trouble("ERROR: No matching distribution found for a-private-package", tmp_path) == ""
    assert trouble("", tmp_path / "gone") == ""


def test_noise_is_left_out() -> None:
    assert without_noise(PIP) == "ERROR: No matching distribution found for google-adk\n"
    assert without_noise(UV) == UV

"""Cached listings of folders are dropped before a project's modules are imported."""

import sys
from pathlib import Path

import pytest

from workbench.worker import project_files


class Finder:
    dropped = False

    def invalidate_caches(self) -> None:
        self.dropped = True


def test_cached_directory_listings_of_a_project_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Finder()
    known = {str(tmp_path / "shared"): own, str(tmp_path / "none.zip"): None}
    monkeypatch.setattr(sys, "path_importer_cache", known)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    monkeypatch.setattr(project_files, "_roots", [])
    project_files.import_from_source(str(tmp_path))
    assert own.dropped
    assert str(tmp_path / "none.zip") not in known

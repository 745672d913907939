"""Cached listings of folders: those of a project are dropped before its modules are imported."""

import sys
import sysconfig
from pathlib import Path

import pytest

from workbench.worker import project_files

LIBRARIES = Path(sysconfig.get_path("purelib"))


class Finder:
    def __init__(self) -> None:
        self.dropped = False

    def invalidate_caches(self) -> None:
        self.dropped = True


@pytest.mark.parametrize("noted", [True, False], ids=["zygote", "solo"])
@pytest.mark.parametrize("inside", [True, False], ids=["among the libraries", "beside them"])
def test_cached_directory_listings_of_a_project_are_dropped(
    noted: bool, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the zygote had them, or they came later. Reading those of the libraries again would take long."""
    root = LIBRARIES / "project" if inside else tmp_path
    library, own, later = Finder(), Finder(), Finder()
    known = {str(LIBRARIES / "rich"): library, str(root / "shared"): own, str(tmp_path / "none.zip"): None}
    monkeypatch.setattr(sys, "path_importer_cache", known)
    monkeypatch.setattr(sys, "meta_path", [])
    for name in ("_roots", "_noted", "_doubtful"):
        monkeypatch.setattr(project_files, name, [])
    if noted:
        project_files.note_listings()
    sys.path_importer_cache[str(root / "later")] = later  # type: ignore[assignment]
    project_files.import_from_source(str(root))
    assert [finder.dropped for finder in (library, own, later)] == [False, True, True]
    assert str(tmp_path / "none.zip") not in known

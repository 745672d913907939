"""Paths relative to the root of a project."""

from pathlib import Path

import pytest

from workbench.files.walk import relative_to


@pytest.mark.parametrize("root", ["/a", "/a/b", "/", ".", "..", "/a/b/c", "a"])
@pytest.mark.parametrize("path", ["/a/b/c", "/a", "/ab/c", "a/b", "../x", ".", "/"])
def test_relative_path_is_that_of_pathlib(path: str, root: str) -> None:
    expected = Path(path).relative_to(root) if Path(path).is_relative_to(root) else Path(path)
    assert relative_to(Path(path), Path(root)) == expected.as_posix()

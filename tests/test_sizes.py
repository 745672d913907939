from pathlib import Path

from tests.sizes import LOOSE, Size, allowed, faults, sizes, written

PROJECT = """[tool.other]
lines = 1

[tool.sizes]
"files" = [10, 2]
"gone" = [1, 1]

[tool.more]
lines = 2
"""


def test_a_package_counts_with_the_folders_inside_it(tmp_path: Path) -> None:
    (tmp_path / "files" / "json").mkdir(parents=True)
    (tmp_path / "files" / "__init__.py").write_text("a\n")
    (tmp_path / "files" / "json" / "scanner.py").write_text("a\n\nb")
    (tmp_path / "text.py").write_text("a\n")
    assert sizes(tmp_path) == {"files": Size(4, 2), LOOSE: Size(1, 1)}


def test_a_larger_unknown_or_missing_package_is_a_fault() -> None:
    said = faults({"files": Size(11, 2), "run": Size(5, 1)}, allowed(PROJECT))
    assert [line.partition(":")[0] for line in said] == ["files", "run", "gone"]


def test_a_smaller_package_is_no_fault() -> None:
    assert faults({"files": Size(9, 2)}, {"files": Size(10, 2)}) == []


def test_writing_replaces_the_table_and_nothing_else() -> None:
    text = written(PROJECT, {"files": Size(11, 2)})
    assert allowed(text) == {"files": Size(11, 2)}
    assert text.startswith("[tool.other]\nlines = 1\n")
    assert text.endswith("[tool.more]\nlines = 2\n")


def test_size_table_is_added_to_a_file_without_one() -> None:
    assert allowed(written("[project]\n", {"files": Size(1, 1)})) == {"files": Size(1, 1)}

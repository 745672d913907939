"""The diff of a file."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.editing.proposals import DiffLine, file_diff


def test_diff_has_three_lines_of_context() -> None:
    before = "\r\n".join(f"    line {number}" for number in range(1, 21)).encode()
    lines = file_diff(before, before.replace(b"line 10", b"other"))
    assert lines == [
        DiffLine("@", "line 7"),
        *(DiffLine(" ", f"line {number}") for number in (7, 8, 9)),
        DiffLine("-", "line 10"),
        DiffLine("+", "other"),
        *(DiffLine(" ", f"line {number}") for number in (11, 12, 13)),
    ]


def test_diff_of_a_one_line_file_shows_text_around_the_change() -> None:
    before = b'{"a": "' + b"x" * 10_000 + b'", "amount": 12, "b": "' + b"y" * 10_000 + b'"}'
    found = file_diff(before, before.replace(b"12,", b"12.5,"))
    assert [line.sign for line in found] == ["@", "-", "+"]
    assert '"amount": 12.5,' in found[2].text
    assert all(len(line.text) < 200 for line in found)


def test_diff_of_many_lines_is_safe_text() -> None:
    found = file_diff(b"a\n" * 4_100, b"\x1b[2J\n" * 4_100)
    assert not any("\x1b" in line.text for line in found)
    assert not any("\x1b" in line.text for line in file_diff(b"\x1b[2J\n" * 4_100, b"a\n" * 4_100))


def test_equal_files_have_no_diff() -> None:
    assert file_diff(b"a", b"a") == []


@given(
    st.lists(st.sampled_from(["a", "b", "é", ""]), max_size=12), st.lists(st.sampled_from(["a", "c", "é"]), max_size=12)
)
def test_diff_lines_are_lines_of_the_files(old: list[str], new: list[str]) -> None:
    before, after = ("\n".join(lines).encode() for lines in (old, new))
    found = file_diff(before, after)
    assert bool(found) == (before.removesuffix(b"\n") != after.removesuffix(b"\n"))
    assert {line.text for line in found if line.sign == "-"} <= {*old, ""}
    assert {line.text for line in found if line.sign == "+"} <= {*new, ""}

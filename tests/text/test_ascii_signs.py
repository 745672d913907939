"""Our signs in ASCII: every one has a spelling, and those that are told apart stay so."""

import ast
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import workbench
from workbench.results import faces
from workbench.results.faces import Face
from workbench.text.ascii_signs import CELLS, in_cells, in_lines, shows_unicode

_ON_SCREENS = ("ui", "rendering", "actions", "cli")
_OF_OTHERS = set("‰℃")
"""Signs in rules about where a line may break."""


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module, without its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def _is_sign(char: str) -> bool:
    is_near = char < "\u0250" or "\u2000" <= char < "\u2c00"
    return not char.isascii() and is_near and unicodedata.category(char)[0] in "SP"


def test_every_sign_of_a_screen_has_an_ascii_spelling() -> None:
    root = Path(str(workbench.__file__)).parent
    texts = (text for name in _ON_SCREENS for path in (root / name).rglob("*.py") for text in _texts(path))
    signs = {char for text in texts for char in text if _is_sign(char)} - _OF_OTHERS
    assert "✗" in signs
    assert sorted(char for char in signs if not in_cells(char, foreign=False).isascii()) == []


@pytest.mark.parametrize(
    "alike",
    [faces.FACES.values(), faces.LABELS.values(), faces.CHECKED.values(), (faces.TRIAGED, faces.TRIAGED_EARLIER)],
)
def test_statuses_stay_distinct_in_ascii(alike: Iterable[Face]) -> None:
    shown = [in_cells(face.glyph, foreign=True) for face in alike]
    assert len(set(shown)) == len(shown)


def test_spellings_are_one_ascii_character_each() -> None:
    assert {len(spelled) for spelled in CELLS.values()} == {1}
    assert all(spelled.isascii() for spelled in CELLS.values())


@given(st.text(st.sampled_from([*CELLS, *" ab≥→…↓大─╭█"])))
def test_ascii_spelling_keeps_the_width_in_cells(text: str) -> None:
    assert cell_len(in_cells(text, foreign=True)) == cell_len(text)
    assert in_cells(text, foreign=True).isascii()


@pytest.mark.parametrize(
    ("text", "in_a_row", "in_a_line"),
    [
        ("0.56 ≥ 0.80", "0.56 >=0.80", "0.56 >=0.80"),
        ("≥0.80", ">0.80", ">=0.80"),
        ("0.92  ≥0.80", "0.92 >=0.80", "0.92 >=0.80"),
        ("case▾  v", "case\\  v", "casev  v"),
        ("late…moved", "late~moved", "late...moved"),
        ("everyth… 236", "everyth~ 236", "everyth... 236"),
        ("… 3 more lines", "..3 more lines", "... 3 more lines"),
        ("j ↓        ", "j down     ", "j v        "),
        ("╭─ cases ─╮│", "+- cases -+|", "+- cases -+|"),
        ("大阪 ✓", "???? +", "大阪 +"),
    ],
)
def test_ascii_examples_have_the_expected_signs(text: str, in_a_row: str, in_a_line: str) -> None:
    assert (in_cells(text, foreign=True), in_lines(text)) == (in_a_row, in_a_line)


@pytest.mark.parametrize(
    ("environment", "encoding", "expected"),
    [
        ({}, "utf-8", True),
        ({"LANG": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.UTF-8", "LC_CTYPE": "C"}, "utf-8", False),
        ({"LANG": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", False),
        ({"LC_CTYPE": "UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "POSIX"}, "utf-8", False),
        ({"LANG": "de_DE"}, "iso8859-1", False),
        ({"LANG": "de_DE.UTF-8"}, "UTF8", True),
        ({}, "no such encoding", False),
        ({}, None, False),
    ],
)
def test_locale_decides_whether_a_terminal_shows_unicode(
    environment: dict[str, str], encoding: str | None, expected: bool
) -> None:
    assert shows_unicode(environment, encoding) is expected

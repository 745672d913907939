import itertools
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from workbench.criteria.rouge_words import _combines, rouge_words, words_with_offsets

_SCRIPTS = "aZ9_-'. ½İßΣςéﬁｶﾞ①가각ᄀ\u1161\u11a8漢字かｶー・ไทยก่ำ๏ລາວខ្មែរမြန်မာहिन्दीعربي\u0301\u200d\u3000\U0001d400👩🏽🇵🇹"
texts = st.text() | st.text(_SCRIPTS, max_size=12)


def _oracle(text: str) -> list[str]:
    """Apply the rule character by character: a blank before a word, after a word, and for each separator."""
    spread = ""
    for character in unicodedata.normalize("NFKC", text).lower():
        block = ord(character)
        is_mark = unicodedata.category(character)[0] == "M"
        if 0x3040 <= block < 0x3100 or 0x4E00 <= block < 0xA000 or 0xAC00 <= block < 0xD7B0:
            spread += f" {character} "
        elif 0x0E00 <= block < 0x0F00 or 0x1780 <= block < 0x1800 or 0x1000 <= block < 0x10A0:
            spread += character if is_mark else f" {character}"
        else:
            spread += character if is_mark or character.isalnum() else " "
    return spread.split()


@given(texts)
def test_words_equal_those_of_a_character_by_character_reader(text: str) -> None:
    assert rouge_words(text) == _oracle(text)


@given(texts)
def test_words_with_offsets_are_the_words_that_are_scored(text: str) -> None:
    placed = words_with_offsets(text)
    assert [word.text for word in placed] == rouge_words(text)
    assert all(0 <= word.start < word.end <= len(text) for word in placed)
    for before, after in itertools.pairwise(placed):
        assert before.end <= after.start or before[1:] == after[1:] or after.start < before.end <= after.end
    for word in placed:
        assert word.text in unicodedata.normalize("NFKC", text[word.start : word.end]).lower().replace("ς", "σ") or (
            "σ" in word.text or "ς" in word.text
        )


def test_all_decomposed_parts_after_the_first_combine() -> None:
    """`placed_words` relies on it: in every canonical decomposition, all parts except the first combine."""
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.normalize("NFD", chr(code))
        assert all(_combines(part) for part in parts[1:]), hex(code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't pay 1,000!", ["don", "t", "pay", "1", "000"]),
        ("snake_case", ["snake", "case"]),
        ("CAFÉ ﬁn", ["café", "fin"]),
        ("返金します", ["返", "金", "し", "ま", "す"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("हिन्दी", ["हिन्दी"]),
        ("½", ["1", "2"]),
        ("", []),
        ("!?", []),
    ],
)
def test_words_of_many_scripts_are_found(text: str, expected: list[str]) -> None:
    assert rouge_words(text) == expected


def test_offsets_survive_normalisation_that_changes_length() -> None:
    text = "İstanbul: ½ ﬁn, 가각"
    found = [text[word.start : word.end] for word in words_with_offsets(text)]
    assert found == [
        "İstanbul",
        "½",
        "½",
        "ﬁn",
        "가",
        "각",
    ]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_split_into_words(text: str) -> None:
    assert [word.text for word in words_with_offsets(text)] == rouge_words(text)


def test_many_marks_on_one_letter_take_linear_time() -> None:
    assert len(words_with_offsets("a" + "\u0301" * 100_000 + " b")) == 2


REPOSITORY = Path(__file__).parents[2]


def _fresh(code: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_stemmer_import_skips_numpy_and_keeps_nltk_importable() -> None:
    _fresh("""
import sys
from workbench.criteria.rouge_words import stemmer
assert stemmer()("refunding") == "refund"
heavy = {name.partition(".")[0] for name in sys.modules} & {"nltk", "numpy", "scipy", "sklearn", "absl"}
assert not heavy, heavy
for name in ("matplotlib", "pandas", "scipy", "sklearn"):
    sys.modules[name] = None  # What nltk can do without; it takes seconds.
import nltk
assert nltk.PorterStemmer().stem("refunding") == "refund"
assert stemmer()("caresses") == nltk.PorterStemmer().stem("caresses") == "caress"
""")


def test_nltk_is_imported_whole_if_the_stemmer_needs_more(tmp_path: Path) -> None:
    backwards = "from nltk import all_of_it\nclass PorterStemmer:\n    stem = lambda _, word: word[::-1]\n"
    files = {
        "nltk/__init__.py": "all_of_it = True\n",
        "nltk/stem/__init__.py": "",
        "nltk/stem/porter.py": backwards,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    _fresh(f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from workbench.criteria.rouge_words import stemmer
assert stemmer()("refund") == "dnufer"
assert sys.modules["nltk"].all_of_it
""")

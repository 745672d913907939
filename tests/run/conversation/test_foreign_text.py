"""Cut texts of machines have no half of a key, which nobody would recognize as a secret."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.run.conversation.case_run import beginning

SECRET = "sk-0123456789abcdefghij"
WORDS = st.lists(st.sampled_from([SECRET, "error:", "a", "\n", "x" * 150, f"https://u:{SECRET}@host/simple"]))


@given(WORDS, st.integers(250, 600))
def test_beginning_of_a_long_text_ends_after_a_whole_word(words: list[str], most: int) -> None:
    text = " ".join(words)
    kept = beginning(text, most)
    assert kept == text if len(text) <= most else kept.endswith("…")
    assert text.startswith(kept.removesuffix("…"))
    assert set(kept.removesuffix("…").split()) <= set(text.split())
    assert len(kept) <= most + 1


def test_cut_text_without_blanks_never_ends_inside_a_key() -> None:
    text = "x" * 1990 + SECRET * 10
    assert SECRET[:4] not in beginning(text, 2000)

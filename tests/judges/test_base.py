"""Thoughts in the text of a reply, as models behind several servers send them."""

import pytest

from workbench.judges.base import without_thoughts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yes", "yes"),
        ("<think>no?</think>yes", "yes"),
        (" \n<THINKING>\nno?\n</Thinking>\n\nyes", "\n\nyes"),
        ("no?\n</think>\n\nyes", "\n\nyes"),
        ("no?</think>\nyes", "\nyes"),
        ("<think>no? But then", ""),
        ("<think>the tag is </thinking> there", ""),
        ('{"reasoning": "it ends with </think>{}"}', '{"reasoning": "it ends with </think>{}"}'),
        ("I say <think> is a tag", "I say <think> is a tag"),
    ],
)
def test_thoughts_are_removed_from_a_reply(text: str, said: str) -> None:
    assert without_thoughts(text) == said

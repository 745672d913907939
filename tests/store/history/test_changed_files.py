"""Changed files of an agent: prompts and data are told apart by its sources, and changed lines are complete."""

from pathlib import Path

import pytest

from workbench.freshness import changed_files
from workbench.freshness.changed_files import is_prompt


@pytest.mark.parametrize(
    ("path", "source", "prompt"),
    [
        ("desk/tone.txt", 'Agent(instruction=(HERE / "tone.txt").read_text())', True),
        ("desk/tone.txt", 'TEXT = open("texts/tone.txt").read()\nAgent(instruction=f"{TEXT} Be brief.")', True),
        ("desk/tone.txt", 'PERSONA = load("tone")', True),
        ("desk/tone.txt", 'def system_text(): return load("tone.txt")', True),
        ("desk/tone.json", 'def text(): return load("tone.json")\nAgent(instruction=text())', True),
        ("desk/prices.txt", 'def price(tea): return open("prices.txt").read()\nAgent(tools=[price])', False),
        ("desk/returns.md", 'def look_up(topic): return (HERE / "returns.md").read_text()', False),
        ("desk/prices.yaml", 'PRICES = yaml.safe_load(open("prices.yaml"))', False),
        ("desk/prompt.txt", 'def any(): return open("prompt.txt").read()', True),
        ("desk/unnamed.md", "x = 1", True),
        ("desk/unnamed.txt", "x = 1", False),
        ("desk/tone.txt", 'Agent(instruction="tone.txt"', False),
    ],
)
def test_text_file_is_a_prompt_if_the_sources_use_it_as_a_prompt(path: str, source: str, prompt: bool) -> None:
    assert is_prompt(path, ("a", "b"), [source]) is prompt


def test_changed_lines_that_look_like_the_head_of_a_diff_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"old": "one\n---\ntwo\n-- note\n", "new": "one\ntwo\n++i\n"}
    monkeypatch.setattr(changed_files, "_content", lambda digest, state: texts[digest])
    changed = changed_files._changed("desk", "desk/prompt.txt", "old", "new", Path(), (set(), set()), [])
    assert [line for line in changed.lines if not line.startswith("@@")] == ["----", "--- note", "+++i"]

"""Prompts and data files of an agent, told apart by its sources."""

import pytest

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
def test_text_file_is_a_prompt_if_the_sources_use_it_as_one(path: str, source: str, prompt: bool) -> None:
    assert is_prompt(path, ("a", "b"), [source]) is prompt

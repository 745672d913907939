"""Changed files of an agent: prompts and data are told apart by their names, and changed lines are complete."""

from pathlib import Path

import pytest

from workbench.freshness import changed_files
from workbench.freshness.changed_files import is_prompt


@pytest.mark.parametrize(
    ("path", "content", "prompt"),
    [
        ("desk/prompt.txt", "a", True),
        ("desk/instructions.json", "a", True),
        ("desk/returns.md", "a", True),
        ("desk/tone.j2", "a", True),
        ("desk/prices.txt", "a", False),
        ("desk/root_agent.yaml", "name: desk\ninstruction: Be kind.", True),
        ("desk/prices.yaml", "tea: 3", False),
    ],
)
def test_text_file_is_a_prompt_by_its_name_or_instruction(path: str, content: str, prompt: bool) -> None:
    assert is_prompt(path, (None, content)) is prompt


def test_changed_lines_that_look_like_the_head_of_a_diff_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"old": "one\n---\ntwo\n-- note\n", "new": "one\ntwo\n++i\n"}
    monkeypatch.setattr(changed_files, "_content", lambda digest, state: texts[digest])
    changed = changed_files._changed("desk", "desk/prompt.txt", "old", "new", Path(), (set(), set()))
    assert [line for line in changed.lines if not line.startswith("@@")] == ["----", "--- note", "+++i"]

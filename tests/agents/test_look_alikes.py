"""Evalsets under other names, recognised by the beginning of their content."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.conftest import AGENT, Tree, evalset
from workbench.agents.discovery import HEAD_BYTES, looks_like_evalset
from workbench.agents.workspace import open_workspace


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"eval_set_id": "x", "eval_cases": []}', True),
        ('{"evalCases" : []}', True),
        ('[{"query": "a", "expected_tool_use": []}]', True),
        ('[{"query": "a", "reference": "b"}]', True),
        ('\ufeff [{"name": "a", "data": [{"query": "a", "reference": "b"}]}]', True),
        ('{"query": "a", "reference": "b"}', False),
        ('[{"query": "a search"}]', False),
        ('{"title": "eval_cases"}', False),
        ("", False),
    ],
)
def test_file_with_keys_of_an_evalset_looks_like_an_evalset(tmp_path: Path, content: str, found: bool) -> None:
    file = tmp_path / "data.json"
    file.write_text(content, encoding="utf-8")
    assert looks_like_evalset(file) is found


def test_only_the_beginning_of_a_file_is_searched_for_evalset_keys(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(f'[{{"text": "{"x" * HEAD_BYTES}", "eval_cases": []}}]')
    assert not looks_like_evalset(file)


def test_special_files_are_not_evalsets(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert not looks_like_evalset(tmp_path / "pipe.json")
    assert not looks_like_evalset(tmp_path / "missing.json")


@given(content=st.binary(max_size=200))
def test_any_content_can_be_checked(new_folder: Callable[[], Path], content: bytes) -> None:
    file = new_folder() / "data.json"
    file.write_bytes(content)
    assert looks_like_evalset(file) in (True, False)


def test_look_alike_opened_by_name_is_not_listed(tree: Tree) -> None:
    project = tree({".git/": "", "a/agent.py": AGENT, "a/data/football.json": evalset()})
    assert open_workspace(project).look_alikes == (project / "a/data/football.json",)
    both = open_workspace(project, project / "a/data/football.json")
    assert both.look_alikes == ()
    assert [entry.relative for entry in both.evalsets] == ["a/data/football.json"]

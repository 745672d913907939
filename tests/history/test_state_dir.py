"""State folders: the project's own, and older ones inside it."""

from pathlib import Path

import pytest

from workbench.agents.walk import STATE_FOLDER
from workbench.history.state_dir import judge_cache_dir, make_state_dir, nested_states, runs_dir


def _state(folder: Path) -> Path:
    runs_dir(folder / STATE_FOLDER).mkdir(parents=True)
    return folder / STATE_FOLDER


def test_older_state_folders_are_found_a_few_levels_below(tmp_path: Path) -> None:
    found = [_state(tmp_path / "bot"), _state(tmp_path / "agents/desk")]
    _state(tmp_path / "a/b/c/d/e")
    (tmp_path / "empty" / STATE_FOLDER).mkdir(parents=True)
    assert nested_states(tmp_path) == found


@pytest.mark.parametrize("folder", ["node_modules/x", ".hidden", "env", "repository"])
def test_repositories_and_environments_are_ignored(tmp_path: Path, folder: str) -> None:
    for path in ("env/pyvenv.cfg", "repository/.git/HEAD"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("")
    _state(tmp_path / folder)
    assert nested_states(tmp_path) == []


def test_new_state_folder_takes_over_judge_answers(tmp_path: Path) -> None:
    old = judge_cache_dir(_state(tmp_path / "bot")) / "ab" / ("ab" * 32 + ".json")
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    make_state_dir(tmp_path / STATE_FOLDER)
    assert (judge_cache_dir(tmp_path / STATE_FOLDER) / "ab" / old.name).read_text() == "{}"
    assert old.exists()


def test_unreadable_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shut").mkdir()

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    assert nested_states(tmp_path) == []

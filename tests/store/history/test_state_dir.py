"""State folders: the project's own, and others inside it."""

from pathlib import Path

import pytest

from workbench.files.folders import STATE_FOLDER, make_state_dir
from workbench.store.history.run_names import not_shown, states_of


def _state(folder: Path) -> Path:
    make_state_dir(folder / STATE_FOLDER)
    (folder / STATE_FOLDER / "runs.db").touch()
    return folder / STATE_FOLDER


def test_older_state_folders_are_found_a_few_levels_below(tmp_path: Path) -> None:
    found = [_state(tmp_path / "bot"), _state(tmp_path / "agents/desk")]
    _state(tmp_path / "a/b/c/d/e")
    (tmp_path / "empty" / STATE_FOLDER).mkdir(parents=True)
    assert states_of(tmp_path / STATE_FOLDER)[1:] == found


@pytest.mark.parametrize("folder", ["node_modules/x", ".hidden", "env", "repository"])
def test_repositories_and_environments_are_ignored(tmp_path: Path, folder: str) -> None:
    for path in ("env/pyvenv.cfg", "repository/.git/HEAD"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("")
    _state(tmp_path / folder)
    assert states_of(tmp_path / STATE_FOLDER)[1:] == []


def test_older_untrusted_state_folder_is_not_used(tmp_path: Path) -> None:
    own = _state(tmp_path)
    assert not_shown(own) == []
    for name in ("bot", "desk", "shop"):
        (tmp_path / name / STATE_FOLDER).mkdir(parents=True)
        (tmp_path / name / STATE_FOLDER / "runs.db").touch()
        assert states_of(tmp_path / STATE_FOLDER)[1:] == []
    first, more = not_shown(own)
    folder = tmp_path / "bot" / STATE_FOLDER
    why = "you did not create it on this machine"
    assert first == f"{folder} is neither read nor written: {why}; --state-dir {folder} uses it anyway"
    assert more == "ignored for the same reason: 2 more folders below"


def test_unreadable_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shut").mkdir()

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    assert states_of(tmp_path / STATE_FOLDER)[1:] == []

"""Names of stored runs, with and without older state folders."""

from pathlib import Path

import pytest

from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.run_names import find_run, state_of
from workbench.history.state_dir import JOURNAL_FILE, runs_dir
from workbench.state_folder import STATE_FOLDER, make_state_dir


def kept(state: Path, run_id: str) -> Path:
    journal = runs_dir(state) / run_id / JOURNAL_FILE
    journal.parent.mkdir(parents=True)
    journal.write_text("")
    return journal


@pytest.mark.parametrize("word", ["last", "2026"])
def test_runs_in_nested_older_state_folders_are_found(word: str, tmp_path: Path) -> None:
    state = tmp_path / STATE_FOLDER
    with pytest.raises(UsageFaultError) as refused:
        find_run(word, state, tmp_path)
    assert "`agent-workbench run` stores one" in refused.value.hint
    make_state_dir(tmp_path / "desk" / STATE_FOLDER)
    older = kept(tmp_path / "desk" / STATE_FOLDER, "2026-11-21T10-30-00-3f2a")
    assert find_run(word, state, tmp_path) == older
    assert state_of(older) == tmp_path / "desk" / STATE_FOLDER
    journal = kept(state, "2026-11-22T10-30-00-3f2a")
    assert find_run("2026-11-22", state, tmp_path) == journal
    with pytest.raises(UsageFaultError):
        find_run("2026", tmp_path / "named", tmp_path)  # --state-dir stands for itself


@pytest.mark.parametrize("word", ["{}", "{}/events.jsonl"])
def test_run_in_an_untrusted_state_folder_is_not_read_by_its_path(word: str, tmp_path: Path) -> None:
    state = tmp_path / "clone" / STATE_FOLDER
    journal = kept(state, "2026-11-21T10-30-00-3f2a")
    word = word.format(journal.parent)
    with pytest.raises(UsageFaultError, match="you did not create it on this machine") as refused:
        find_run(word, tmp_path / STATE_FOLDER, tmp_path)
    assert str(state) in refused.value.hint
    assert find_run(word, state, tmp_path) == journal  # Named by --state-dir.

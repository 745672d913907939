"""Names of stored runs, with and without nested state folders."""

from pathlib import Path

import pytest

from tests.store.history.test_stored_runs import keep_run
from workbench.files.folders import STATE_FOLDER, make_state_dir
from workbench.files.run_options import UsageFaultError
from workbench.store.database.database import state_of
from workbench.store.history.run_names import find_run


@pytest.mark.parametrize("word", ["last", "2026"])
def test_runs_in_nested_state_folders_are_found(word: str, tmp_path: Path) -> None:
    state = tmp_path / STATE_FOLDER
    with pytest.raises(UsageFaultError) as refused:
        find_run(word, state, tmp_path)
    assert "`agent-workbench run` stores one" in refused.value.hint
    make_state_dir(tmp_path / "desk" / STATE_FOLDER)
    older = keep_run(tmp_path / "desk" / STATE_FOLDER, "2026-11-21T10-30-00-3f2a")
    assert find_run(word, state, tmp_path) == older
    assert state_of(older) == tmp_path / "desk" / STATE_FOLDER
    own = keep_run(state, "2026-11-22T10-30-00-3f2a")
    assert find_run("2026-11-22", state, tmp_path) == own
    with pytest.raises(UsageFaultError):
        find_run("2026", tmp_path / "named", tmp_path)  # --state-dir stands for itself


def test_file_in_an_untrusted_state_folder_is_not_read_by_its_path(tmp_path: Path) -> None:
    state = tmp_path / "clone" / STATE_FOLDER
    state.mkdir(parents=True)
    report = state / "report.json"
    report.write_text("{}")
    with pytest.raises(UsageFaultError, match="you did not create it on this machine") as refused:
        find_run(str(report), tmp_path / STATE_FOLDER, tmp_path)
    assert str(state) in refused.value.hint
    assert find_run(str(report), state, tmp_path) == report  # Named by --state-dir.

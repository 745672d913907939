"""The state of the screen: which files have changed since they were read."""

import os
import time
from pathlib import Path

from workbench.ui.session.session import Session

EVALSET = '{"eval_set_id": "talk", "eval_cases": []}'


def session_of(folder: Path) -> tuple[Session, Path]:
    (folder / ".git").mkdir()
    file = folder / "talk.evalset.json"
    file.write_text(EVALSET)
    return Session(folder), file


def test_file_saved_while_the_folder_is_read_counts_as_changed(tmp_path: Path) -> None:
    session, file = session_of(tmp_path)
    before = file.stat()

    def save(workspace: object) -> None:
        file.write_text(EVALSET.replace("talk", "walk"))
        while file.stat().st_ctime <= began:  # The clock of the file system may be some milliseconds late.
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    session.begin_reading()
    began = time.time()
    session.set_workspace(session.read(save))
    assert session.outdated()
    session.set_workspace(session.read())
    assert not session.outdated()


def test_file_saved_before_the_folder_is_read_counts_as_read(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path)
    session.begin_reading()
    session.set_workspace(session.read())
    assert not session.outdated()

"""kill -9 after each change on disk that a save, an undo and a redo make, and during their writes."""

import contextlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.editing.killing import NEW, OLD
from workbench.editing.saving import NothingToUndoError, Saver

_SCRIPT = Path(__file__).with_name("killing.py")


def folders_after(top: Path, *words: str) -> list[Path]:
    """Return the folders left by the kills."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(_SCRIPT), str(top), *words], env=environment, check=True)
    return sorted(top.iterdir())


def test_killed_save_leaves_old_or_new_content(tmp_path: Path) -> None:
    """The content is old or new, never a mixture. An edit in the journal can be completed."""
    seen: Counter[str] = Counter()
    for folder in folders_after(tmp_path, "save"):
        file, saver = folder / "a.json", Saver(folder / "state", folder)
        content = file.read_bytes()
        assert content in (OLD, NEW), folder.name
        if saver.interrupted() is not None:
            assert content == OLD
            saver.resume()
            seen["recovered"] += 1
        else:
            # Killed before the edit was written anywhere: nothing was promised yet.
            seen["completed" if content == NEW else "lost"] += 1
        assert file.read_bytes() in (OLD, NEW)
        if file.read_bytes() == NEW:
            saver.undo()
            assert file.read_bytes() == OLD
    assert min(seen["recovered"], seen["completed"], seen["lost"]) > 1


def test_killed_edit_of_two_files_can_be_completed_or_undone(tmp_path: Path) -> None:
    """Both files are changed or none, after an interrupted edit is completed."""
    seen: Counter[str] = Counter()
    for folder in folders_after(tmp_path, "move"):
        one, other, saver = folder / "a.json", folder / "b.json", Saver(folder / "state", folder)
        if saver.resume() is not None:
            seen["recovered"] += 1
        assert (one.read_bytes(), other.exists()) in ((OLD, False), (NEW, True)), folder.name
        if other.exists():
            assert other.read_bytes() == OLD
            saver.undo()
            assert (one.read_bytes(), other.exists()) == (OLD, False)
            seen["undone"] += 1
    assert seen["undone"] > seen["recovered"] > 5


@pytest.mark.parametrize("action", ["undo", "redo"])
def test_killed_undo_and_redo_leave_old_or_new_content(tmp_path: Path, action: str) -> None:
    """Repeating the killed action leads to the same end, and the opposite one leads back."""
    seen: Counter[bytes] = Counter()
    for folder in folders_after(tmp_path, action):
        file, saver = folder / "a.json", Saver(folder / "state", folder)
        seen[file.read_bytes()] += 1
        same, other = (saver.undo, saver.redo) if action == "undo" else (saver.redo, saver.undo)
        with contextlib.suppress(NothingToUndoError):
            same()
        assert file.read_bytes() == (OLD if action == "undo" else NEW)
        other()
        assert file.read_bytes() == (NEW if action == "undo" else OLD)
    assert set(seen) == {OLD, NEW}


def test_kill_test_detects_a_save_that_is_not_atomic(tmp_path: Path) -> None:
    contents = {(folder / "a.json").read_bytes() for folder in folders_after(tmp_path, "save", "in-place")}
    assert contents - {OLD, NEW}

"""A process that changes a file in a child, again and again, and kills the child one step later each time.

A step ends where something on disk has changed: a kill leaves nothing else. `python killing.py FOLDER ACTION
[in-place]` makes a folder for each kill, with the file and the journal's folder. `in-place` writes as one must not, to
see that the kills find it out.
"""

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from workbench.editing import saving
from workbench.store.database.database import close_databases

OLD = b"x" * 30_000 + b"old" + b"y" * 30_000
NEW = OLD.replace(b"old", b"newer")
LIMITS = (0, 100, 1_000, 30_000, 60_002)
"""Sizes in bytes at which the process is killed while it writes a file."""
_TRACED = ("workbench/files/file_access.py", "editing/saving.py", "workbench/files/folders.py")


def prepare(folder: Path, action: str) -> None:
    """Write the file and its journal for the action."""
    folder.mkdir()
    file = folder / "a.json"
    file.write_bytes(OLD)
    saver = saving.Saver(folder / "state", folder)
    if action in ("undo", "redo"):
        saver.save("one", {file: (OLD, NEW)})
        if action == "redo":
            saver.undo()
    close_databases()


def act(saver: saving.Saver, action: str, file: Path) -> None:
    """Run the action to kill."""
    if action == "save":
        saver.save("one", {file: (OLD, NEW)})
    elif action == "move":
        saver.save("two", {file: (OLD, NEW), file.with_name("b.json"): (None, OLD)})
    elif action == "undo":
        saver.undo()
    else:
        saver.redo()


def at_each_line(step: Callable[[int], None]) -> None:
    """Call `step` with a number before each line in the modules that write, from now on."""
    numbers = count()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(_TRACED):
            return None
        if event == "line":
            step(next(numbers))
        return trace

    sys.settrace(trace)


def at_line(number: int) -> Callable[[], None]:
    """Kill the process before this line."""

    def step(reached: int) -> None:
        if reached == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: at_each_line(step)


def lines_that_change(folder: Path, action: str) -> list[int]:
    """Run the action, and return the lines before which files below the folder are others than one line earlier."""
    found: dict[int, list[Any]] = {}

    def step(number: int) -> None:
        files = [(path, path.lstat()) for path in sorted(folder.rglob("*"))]
        found[number] = [(path, each.st_ino, each.st_size, each.st_mtime_ns, each.st_mode) for path, each in files]

    saver = saving.Saver(folder / "state", folder)
    at_each_line(step)
    act(saver, action, folder / "a.json")
    sys.settrace(None)
    close_databases()
    return [number for number in found if found[number] != found.get(number - 1)]


def at_size(limit: int) -> Callable[[], None]:
    """Kill the process while it writes a file that exceeds this size."""

    def begin() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return begin


def kill(prepared: Path, folder: Path, action: str, begin: Callable[[], None]) -> bool:
    """Return whether the action was killed, in a copy of the prepared folder."""
    shutil.copytree(prepared, folder)
    child = os.fork()
    if child == 0:
        saver = saving.Saver(folder / "state", folder)
        begin()
        act(saver, action, folder / "a.json")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def main(top: Path, action: str, *, in_place: bool) -> None:
    """Kill the action at every step and at every size, or only at the sizes if it writes in place."""
    # What is written outlives a process without it, and it costs most of the time.
    vars(os)["fsync"] = lambda descriptor: None
    prepared = top / "prepared"
    prepare(prepared, action)
    if in_place:
        vars(saving)["replace_content"] = lambda file, content, **_: file.write_bytes(content)
    for limit in LIMITS:
        kill(prepared, top / f"size{limit}", action, at_size(limit))
    if not in_place:
        whole = shutil.copytree(prepared, top / "whole")
        for number in lines_that_change(whole, action):
            assert kill(prepared, top / f"line{number}", action, at_line(number))
    shutil.rmtree(prepared)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], in_place="in-place" in sys.argv)

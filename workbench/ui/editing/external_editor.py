"""Editing in the user's own editor: `$VISUAL`, else `$EDITOR`."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_USUAL = ("sensible-editor", "nano", "vim", "vi")

_PLUS_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "gvim", "nano", "pico", "emacs", "emacsclient", "micro", "joe", "kak", "ne", "mg"}
    | {"sensible-editor", "mcedit"}
)
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON_LINE = frozenset({"hx", "helix", "subl", "zed"})
"""Editors by the way in which they take a line: `+38 FILE`, `--goto FILE:38`, `FILE:38`. Others get the file alone."""


class NoEditorError(Exception):
    """No editor was found, or it failed. The message says what to do."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the command of the user's editor, without the file.

    Raises:
        NoEditorError: No editor is named, and none of the usual ones is installed.
    """
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(environment.get(name, "").strip())
        if words:
            return words
    found = next((path for name in _USUAL if (path := shutil.which(name))), None)
    if found is None:
        raise NoEditorError("no editor found: set VISUAL or EDITOR, for example EDITOR=nano")
    return [found]


def open_file(file: Path, line: int) -> None:
    """Open a file in the user's editor, at a line if the editor is known to take one. The terminal must be free.

    Raises:
        NoEditorError: The editor could not be started, or exited with an error.
    """
    command = editor_command(os.environ)
    _run([*command, *_at_line(Path(command[0]).name, file, line)])


def _at_line(editor: str, file: Path, line: int) -> list[str]:
    """Return the arguments with which an editor opens a file at a line."""
    if editor in _PLUS_LINE:
        return [f"+{line}", str(file)]
    if editor in _GOTO:
        return ["--goto", f"{file}:{line}"]
    return [f"{file}:{line}"] if editor in _COLON_LINE else [str(file)]


def _run(command: list[str]) -> None:
    # ctrl+c belongs to the editor. The child gets the default handler, because ours is a function.
    before = signal.signal(signal.SIGINT, _ignore)
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        raise NoEditorError(f"{command[0]} cannot be started: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)
    if done.returncode:
        raise NoEditorError(f"{command[0]} exited with code {done.returncode}: no changes")


def edit_text(name: str, text: str) -> str:
    """Open a text in the user's editor and return the edited text.

    The terminal must be free. The temporary file is named after `name`.

    Raises:
        NoEditorError: The editor could not be started, or exited with an error. Its text is discarded.
    """
    command = editor_command(os.environ)
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "_" for letter in name)
    with tempfile.TemporaryDirectory(prefix="agent-workbench-") as folder:
        file = Path(folder, f"{safe[:60] or 'case'}.json")
        file.write_bytes((text + "\n").encode("utf-8", "surrogatepass"))
        _run([*command, str(file)])
        return file.read_bytes().decode("utf-8", "replace").removesuffix("\n")


def _ignore(number: int, frame: object) -> None:
    pass

"""A case in the user's own editor: `$VISUAL`, else `$EDITOR`."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_USUAL = ("sensible-editor", "nano", "vim", "vi")


class NoEditorError(Exception):
    """There is no editor to open, or it could not be started; the message says what to do."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """The command of the user's editor, without the file.

    Raises:
        NoEditorError: none is named, and none of the usual ones is there.
    """
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(environment.get(name, "").strip())
        if words:
            return words
    found = next((path for name in _USUAL if (path := shutil.which(name))), None)
    if found is None:
        raise NoEditorError("no editor: set VISUAL or EDITOR, for example EDITOR=nano")
    return [found]


def edit_outside(name: str, text: str) -> str:
    """`text` as it is after the user's editor has ended. The terminal must be free. `name` is what the file is called.

    Raises:
        NoEditorError: it could not be started, or ended with a failure: what was typed is given up.
    """
    command = editor_command(os.environ)
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "_" for letter in name)
    with tempfile.TemporaryDirectory(prefix="agent-workbench-") as folder:
        file = Path(folder, f"{safe[:60] or 'case'}.json")
        file.write_bytes((text + "\n").encode("utf-8", "surrogatepass"))
        # ctrl+c in the editor is the editor's; what is a handler here is the default there.
        before = signal.signal(signal.SIGINT, _ignore)
        try:
            done = subprocess.run([*command, str(file)], check=False)
        except OSError as error:
            raise NoEditorError(f"{command[0]} cannot be started: {error.strerror}") from None
        finally:
            signal.signal(signal.SIGINT, before)
        if done.returncode:
            raise NoEditorError(f"{command[0]} ended with {done.returncode}: nothing was changed")
        return file.read_bytes().decode("utf-8", "replace").removesuffix("\n")


def _ignore(number: int, frame: object) -> None:
    """The signal is the editor's."""

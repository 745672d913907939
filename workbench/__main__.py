"""The program `agent-workbench`, which opens the workbench or runs a command.

The most frequent command lines, the program's name alone or with a folder, open the screen without importing click.
Commands, options and mistakes need it.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from workbench.cli.exit_codes import COMMANDS, INTERRUPTED, UNDECIDED
from workbench.cli.streams import can_draw, flush_streams, prepare_streams, write_line
from workbench.worker import collect_rarely


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (without the program's name) and exit with its code. This is the console script."""
    prepare_streams()
    words = list(sys.argv[1:] if args is None else args)
    try:
        code = _open_screen(Path(*words)) if _only_opens(words) else execute(words)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception:
        # A bug of ours must not look like a failed case: Python's own exit code for it is 1.
        import traceback

        from workbench.text.safe_text import plain

        write_line(sys.stderr, plain(traceback.format_exc()) + "This is a bug in the workbench.")
        code = UNDECIDED
    flush_streams()
    sys.exit(code)


def execute(words: list[str]) -> int:
    """Run a command line and return the exit code."""
    collect_rarely()
    from workbench.cli.command_line import execute

    return execute(words, _open_screen)


def _only_opens(words: list[str]) -> bool:
    """Return whether the screen opens at once: on a terminal, with no word or with one existing path."""
    if words:
        named = words[0]
        is_there = os.path.exists(named)  # noqa: PTH110 - raises nothing, whatever the word
        if len(words) > 1 or named.startswith("-") or named in COMMANDS or not is_there:
            return False
    return can_draw()


def _open_screen(path: Path, **options: Any) -> int:
    from workbench.ui.app import open_screen

    return open_screen(path, **options)


if __name__ == "__main__":
    main()

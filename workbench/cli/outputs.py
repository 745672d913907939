"""What is written when a run is over: the detailed results, the summary, and the files that were asked for."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from workbench.atomic import replace_content
from workbench.cli.refusal import Refused, refusal_json
from workbench.cli.run_command import RunRequest
from workbench.cli.streams import has_failed, write_line
from workbench.cli.summary import summary_lines
from workbench.store import Store
from workbench.text import one_line

_WIDTH_WITHOUT_TERMINAL = 100


def write_outputs(request: RunRequest, store: Store, results: TextIO) -> bool:
    """Writes everything, the files first. False if something could not be written; standard error says what."""
    done = True
    if request.json is not None and request.json != "-":
        done = _write("--json", Path(request.json), lambda: _report(store))
    if request.junit is not None:
        done = _write("--junit", request.junit, lambda: _junit(store)) and done
    if request.detailed:
        _write_details(store, results)
    if is_terminal(request, results):
        from workbench.cli.live_progress import print_styled

        print_styled(results, summary_lines(store))
    else:
        for line in summary_lines(store):
            write_line(results, str(line))
    if request.json == "-":
        write_line(sys.stdout, _report(store).decode("ascii").rstrip("\n"))
    return done and not has_failed(sys.stdout)


def is_terminal(request: RunRequest, stream: TextIO) -> bool:
    """Whether what goes to `stream` may be redrawn, wrapped and coloured."""
    return not request.plain and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def write_refusal_file(request: RunRequest, refused: Refused) -> None:
    """Where `--json FILE` was asked for, says there that nothing ran: else an earlier report would be taken for the
    one of this run."""
    if request.json is not None and request.json != "-":
        _write("--json", Path(request.json), lambda: f"{refusal_json(refused)}\n".encode("ascii"))


def _write(option: str, file: Path, content: Callable[[], bytes]) -> bool:
    try:
        replace_content(file, content())
    except OSError as error:
        write_line(sys.stderr, f"error: {option} {one_line(str(file))}: {error.strerror or type(error).__name__}")
        return False
    return True


def _report(store: Store) -> bytes:
    from workbench.cli.report import build_report, to_bytes

    return to_bytes(build_report(store))


def _junit(store: Store) -> bytes:
    from workbench.cli.junit import build_junit

    return build_junit(store)


def _write_details(store: Store, results: TextIO) -> None:
    from workbench.ui.render.plain_case import plain_case

    fallback = (_WIDTH_WITHOUT_TERMINAL, 24)
    width = shutil.get_terminal_size(fallback).columns if results.isatty() else _WIDTH_WITHOUT_TERMINAL
    for record in store.current_records():
        write_line(results, "\n".join(["", *plain_case(record, width)]))

"""What is written when a run is over: the detailed results, the summary, and the files that were asked for."""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from workbench.cli.run_request import Wanted
from workbench.cli.streams import has_failed, write_file, write_line, write_pieces
from workbench.prices import Prices
from workbench.rendering.plain_summary import summary_lines
from workbench.store import Store

_WIDTH_WITHOUT_TERMINAL = 100


def write_outputs(wanted: Wanted, store: Store, results: TextIO, prices: Prices) -> bool:
    """Writes everything, the files first. False if something could not be written; standard error says what."""
    done = True
    if wanted.json is not None and wanted.json != "-":
        done = write_file("--json", Path(wanted.json), lambda: _exported("json", store, prices))
    if wanted.junit is not None:
        done = write_file("--junit", wanted.junit, lambda: _exported("junit", store, prices)) and done
    if wanted.detailed:
        _write_details(store, results)
    if is_terminal(wanted, results):
        from workbench.cli.live_progress import print_styled

        print_styled(results, summary_lines(store, prices))
    else:
        for line in summary_lines(store, prices):
            write_line(results, str(line))
    if wanted.json == "-":
        write_pieces(sys.stdout, (piece.decode("ascii") for piece in _exported("json", store, prices)))
    if store.shelf.lost:
        write_line(sys.stderr, f"error: details of cases are missing in what was written: {store.shelf.lost}")
        done = False
    return done and not has_failed()


def is_terminal(wanted: Wanted, stream: TextIO) -> bool:
    """Whether what goes to `stream` may be redrawn, wrapped and coloured."""
    return not wanted.plain and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _exported(name: str, store: Store, prices: Prices) -> Iterable[bytes]:
    """Return the run in the form of one of our exporters that writes a single file."""
    from workbench.exporting.exporter import EXPORTERS, ExportedRun

    (content,) = EXPORTERS.load(name).files(ExportedRun(store, prices=prices)).values()
    return content


def _write_details(store: Store, results: TextIO) -> None:
    from workbench.rendering.plain_case import plain_case

    fallback = (_WIDTH_WITHOUT_TERMINAL, 24)
    width = shutil.get_terminal_size(fallback).columns if results.isatty() else _WIDTH_WITHOUT_TERMINAL
    for record in store.current_records():
        write_line(results, "\n".join(["", *plain_case(record, width)]))

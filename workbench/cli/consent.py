"""The question whether a project may run on other machines, on the command line."""

import sys
from collections.abc import Callable

from workbench.cli.streams import write_line
from workbench.files.run_options import PlaceChoice
from workbench.results.machines import sending_lines
from workbench.run.dask.files import Sending

_YES = ("y", "yes")


def ask_if_typed(place: PlaceChoice | None) -> Callable[[Sending], bool] | None:
    """Return `ask` if the user has typed `--on`. A place of the project's settings needs that once."""
    return ask if place is not None and place.word else None


def ask(sending: Sending) -> bool:
    """Show what leaves this machine, and return whether the user, who has typed `--on`, wants that.

    Without a terminal, nothing is asked, and `--on` confirms.
    """
    for line in sending_lines(sending):
        write_line(sys.stderr, line)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write("Run there? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in _YES

"""What the exit code of a run says; the table in `docs/command-line.md`."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workbench.store import Store

PASSED: Final = 0
"""Every case passed."""
FAILED: Final = 1
"""Some case failed, and every case has a verdict."""
USAGE: Final = 2
"""The command, a file named on it or a config is wrong, and nothing ran."""
UNDECIDED: Final = 3
"""Something could not be evaluated, or nothing ran."""
INTERRUPTED: Final = 130
"""Ctrl-C or a signal ended it; what was scored is kept."""


def exit_code(store: "Store") -> int:
    """The exit code of the newest run in `store`. A run without cases is never a success, and a case without a
    verdict weighs more than one that failed."""
    if store.run.interrupted:
        return INTERRUPTED
    counts = store.counts()
    if not counts or set(counts) - {"passed", "failed"}:
        return UNDECIDED
    return FAILED if counts["failed"] else PASSED

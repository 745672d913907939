"""Exit codes of a run; see the table in `docs/command-line.md`."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workbench.store import Store

PASSED: Final = 0
"""Every case passed."""
FAILED: Final = 1
"""A case failed, and every case has a verdict."""
USAGE: Final = 2
"""The command line is wrong, or a file or config that it names; nothing ran."""
UNDECIDED: Final = 3
"""A case could not be evaluated, or nothing ran."""
INTERRUPTED: Final = 130
"""Ctrl-C or a signal ended the run; finished scores are saved."""


def exit_code(store: "Store") -> int:
    """Return the exit code of the newest run in `store`.

    A run without cases is never a success. A case without a verdict weighs more than a failed one.
    """
    if store.run.interrupted:
        return INTERRUPTED
    counts = store.counts()
    if not counts or set(counts) - {"passed", "failed"}:
        return UNDECIDED
    return FAILED if counts["failed"] else PASSED

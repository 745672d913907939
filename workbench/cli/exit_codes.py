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

    A run without cases is never a success. A case without a verdict weighs more than a failed one. In a matrix of tool
    faults, only crashes are failures.
    """
    if store.run.interrupted:
        return INTERRUPTED
    if store.run.has_faults:
        return _fault_code(store)
    counts = store.counts()
    if not counts or set(counts) - {"passed", "failed"}:
        return UNDECIDED
    return FAILED if counts["failed"] else PASSED


def _fault_code(store: "Store") -> int:
    """Return the exit code of a matrix of tool faults."""
    from workbench.rendering.fault_table import outcome_of

    found = {outcome_of(record) for record in store.current_records()}
    if "no_result" in found:
        return UNDECIDED
    return FAILED if "crashed" in found else PASSED

"""Exit codes of a run (see the table in `docs/command-line.md`), and the names of the program and its commands."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workbench.store.store import Store

PROGRAM = "agent-workbench"
COMMANDS = {
    "run": "run",
    "eval": "run",
    "try": "try",
    "score": "score",
    "merge": "merge",
    "check": "check",
    "migrate": "migrate",
    "freeze": "freeze",
    "status": "status",
    "history": "history",
    "compare": "compare",
    "export": "export",
}
"""Word → command. The command `run` is `workbench.cli.run_command.run_command`."""

PASSED: Final = 0
"""Every case passed."""
FAILED: Final = 1
"""A case failed, and every case has a verdict."""
USAGE: Final = 2
"""The command line is wrong, or a file or config that it names; nothing ran."""
UNDECIDED: Final = 3
"""A case has no verdict (error, not_evaluated or cancelled), or nothing ran."""
INTERRUPTED: Final = 130
"""Ctrl-C or a signal ended the run; finished scores are saved."""


def exit_code(store: "Store") -> int:
    """Return the exit code of the newest run in `store`.

    An interrupted run has its own code. A run without cases is never a success, except for a shard, because the other
    shards have the cases. A case without a verdict weighs more than a failed one. With `--until-sure`, the pass rate of
    each case decides, not its single repeats.
    """
    if store.run.interrupted:
        return INTERRUPTED
    if store.run.until_sure is not None:
        from workbench.results.repeats import summarize_all

        found = {case.sure for case in summarize_all(store.current_records(), store.run.until_sure)}
        if not found or None in found:
            return UNDECIDED
        return FAILED if "below" in found else PASSED
    counts = store.counts()
    if not counts and store.run.shard is not None:
        return PASSED
    if not counts or set(counts) - {"passed", "failed"}:
        return UNDECIDED
    return FAILED if counts["failed"] else PASSED

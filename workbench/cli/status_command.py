"""The command `status`: the last verdict of each case, and why it is stale. Runs nothing."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, warn, write_line
from workbench.store.reasons import is_without_model
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.project.last_verdicts import LastVerdict

_DESCRIPTION = """Show the last verdict of each case, whether it is stale, and why. A verdict is stale if it was made
with other inputs: files, environment, packages, criteria. Runs nothing.

\b
PATH  a folder, an agent's folder or an evalset file  [default: this folder]

\b
Exit codes
    0  done
    1  with --fail-stale: a verdict is stale
    2  the command line is wrong
"""


@common.command("status", _DESCRIPTION, "Show the last verdicts, and which are stale.")
@click.argument("paths", metavar="[PATH]", nargs=-1, type=common.FILE)
@common.AS_JSON
@click.option("--fail-stale", is_flag=True, help="Exit with 1 if a verdict is stale.")
@common.STATE_DIR
def status_command(paths: tuple[Path, ...], as_json: bool, fail_stale: bool, state_dir: Path | None) -> int:
    """Show the last verdicts and return the exit code."""
    path = common.one_path(paths, "agent-workbench status")
    from workbench.agents.workspace import open_workspace
    from workbench.files.project_root import find_root
    from workbench.project.last_verdicts import last_verdicts
    from workbench.store.owners import read_owners

    state = common.project_state(find_root(path), state_dir)
    try:
        workspace = open_workspace(path, stored_owners=read_owners(state))
    except FileNotFoundError as error:
        raise Refused(str(error)) from None
    for warning in workspace.warnings:
        warn(warning)
    verdicts = list(last_verdicts(workspace, state))
    if as_json:
        from workbench.project.command_reports import status_text

        write_line(sys.stdout, status_text(str(workspace.root), verdicts))
    else:
        _print(verdicts)
    if has_failed():
        return 2
    return int(fail_stale and any(verdict.changed for verdict in verdicts))


def _print(verdicts: "Iterable[LastVerdict]") -> None:
    """Write one line for each case to standard output, and the counts to standard error."""
    from workbench.results.faces import stale_line
    from workbench.results.frozen import frozen_mark
    from workbench.results.plain_lines import VERDICTS, label

    cases = stale = without = 0
    for verdict in verdicts:
        parts = [VERDICTS[verdict.status] if verdict.status else "NOT_RUN", label(verdict.ref)]
        if is_without_model(verdict.judged_by):
            parts.append(f"({verdict.judged_by})")
        if frozen := next(filter(None, verdict.frozen), None):
            parts.append(frozen_mark(frozen))
        if verdict.changed:
            parts.append(stale_line(verdict.changed))
        if verdict.unseen:
            parts.append(f"(cannot see: {', '.join(one_line(name, limit=40) for name in verdict.unseen)})")
        if verdict.fault:
            parts.append(f"broken file: {one_line(verdict.fault, limit=1000)}")
        write_line(sys.stdout, " ".join(parts))
        cases += 1
        stale += bool(verdict.changed)
        without += verdict.status is None
    counts = [counted(cases, "case")]
    counts += [f"{stale:,} stale"] if without < cases else []
    counts += [f"{without:,} not run"] if without else []
    write_line(sys.stderr, ", ".join(counts) if cases else "no evalsets found")

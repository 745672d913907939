"""The command `merge`: join the shards of a run into one run."""

import sys
from pathlib import Path

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.running_options import Outputs

_DESCRIPTION = """Join the shards of one run (`run --shard K/N`) into one run, with its summary, report and JUnit.
Nothing runs.

\b
DIR     a state folder with shards, or a project with one; naming it trusts it
REPORT  the JSON report of a shard

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line or a file is wrong; a shard is missing, there twice, unfinished, or
       from another run
    3  a case could not be evaluated or was cancelled, even if others failed; or there are no cases
  130  interrupted
"""


@common.command("merge", _DESCRIPTION, "Join the shards of one run into one run.")
@click.argument("paths", metavar="DIR|REPORT...", nargs=-1, type=common.FILE)
@common.JSON
@common.JUNIT
def merge_command(paths: tuple[Path, ...], json: str | None, junit: Path | None) -> int:
    """Merge shards and return the exit code of the whole run."""
    if not paths:
        hint = "Name the reports or state folders of all shards"
        raise Refused("no report or folder given", hint=hint, try_help="agent-workbench merge")
    from workbench.cli.exit_codes import UNDECIDED, exit_code
    from workbench.cli.following import user_settings, write_outputs
    from workbench.project.shards import merge_shards

    outputs = Outputs(json=json, junit=junit)
    store = merge_shards(paths)
    written = write_outputs(outputs, store, sys.stderr if json == "-" else sys.stdout, user_settings().prices)
    return exit_code(store) if written else UNDECIDED

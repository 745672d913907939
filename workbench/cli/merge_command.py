"""The command `merge`: the reports of all shards become one run."""

import sys
from pathlib import Path

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused, reported
from workbench.cli.run_request import Outputs

_DESCRIPTION = """Join the shards of one run (`run --shard K/N`) into one run, with its summary, report and JUnit.
Nothing runs.

\b
REPORT  the JSON report of each shard, in any order

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line or a report is wrong; a shard is missing, there twice, or from another run
    3  a case could not be evaluated or was cancelled, or there are no cases
  130  interrupted
"""


@common.command("merge", _DESCRIPTION, "Join the shards of one run into one run.")
@click.argument("paths", metavar="REPORT...", nargs=-1, type=common.FILE)
@common.JSON
@common.JUNIT
def merge_command(paths: tuple[Path, ...], json: str | None, junit: Path | None) -> int:
    """Merge reports and return the exit code of the whole run."""
    if not paths:
        raise Refused("no report given", hint="Name the reports of all shards", try_help="agent-workbench merge")
    from workbench.cli.exit_codes import UNDECIDED, exit_code
    from workbench.cli.following import read_prices, write_outputs
    from workbench.project.merging import merge_reports

    outputs = Outputs(json=json, junit=junit)
    with reported(json):
        store = merge_reports(paths)
    written = write_outputs(outputs, store, sys.stderr if json == "-" else sys.stdout, read_prices())
    return exit_code(store) if written else UNDECIDED

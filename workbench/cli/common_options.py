"""Options that several commands have: the same name, meaning and help wherever they stand."""

from pathlib import Path

import click

FILE = click.Path(path_type=Path)

CONFIG = click.option(
    "--config", "--config-file-path", "config", type=FILE, metavar="FILE", help="Criteria for all evalsets."
)
CASES = click.option("--case", "cases", multiple=True, metavar="ID", help="Only this case; may be given several times.")
JSON = click.option(
    "--json", metavar="FILE|-", help="Writes the report; with - to standard output, and nothing else there."
)
JUNIT = click.option("--junit", type=FILE, metavar="FILE", help="Writes JUnit XML.")
PLAIN = click.option("--plain", is_flag=True, help="A line for each case, also on a terminal.")
DETAILED = click.option(
    "--print-detailed-results", "detailed", is_flag=True, help="Each conversation and verdict at the end."
)
ALLOW_NOT_EVALUATED = click.option(
    "--allow-not-evaluated", is_flag=True, help="Leaves out criteria that cannot be judged here."
)
MAX_JUDGE_CALLS = click.option("--max-judge-calls", type=int, metavar="N", help="Stop asking judges at so many calls.")
ALL_VOTES = click.option(
    "--all-votes", is_flag=True, help="Ask judges for all samples, not only until the verdict is certain."
)
NO_CACHE = click.option("--no-cache", is_flag=True, help="Ask judges again, also what they have answered before.")
STATE_DIR = click.option(
    "--state-dir", type=FILE, metavar="DIR", help="Where runs are kept.  [default: .workbench in the root]"
)

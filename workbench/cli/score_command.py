"""The command `score`: its arguments, checked without reading the project."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.running_options import Outputs, take_fields
from workbench.files.run_options import RunOptions

if TYPE_CHECKING:
    from workbench.run.plan.plan import Plan

_DESCRIPTION = """Score the transcripts of a stored run again, with the current criteria or those of --config. Calls no
agent, and asks judges only questions without a cached answer. The result is a new run.

\b
RUN  the ID of a run or the start of one, `last`, or a JSON report

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line is wrong, or the run or config that it names; nothing was scored
    3  a case could not be evaluated, even if others failed; or there was nothing to score
  130  interrupted; finished scores are saved
"""


@common.command("score", _DESCRIPTION, "Score a stored run again, for example with other criteria or another judge.")
@click.argument("words", metavar="RUN", nargs=-1)
@common.CONFIG
@common.cases("Score")
@common.JSON
@common.JUNIT
@common.PLAIN
@common.DETAILED
@common.ALLOW_NOT_EVALUATED
@common.MAX_JUDGE_CALLS
@common.ALL_VOTES
@common.NO_CACHE
@common.python("Python interpreter of judges and metrics that are functions.")
@common.STATE_DIR
def score_command(
    words: tuple[str, ...],
    config: Path | None,
    cases: tuple[str, ...],
    no_cache: bool,
    state_dir: Path | None,
    **values: Any,
) -> int:
    """Score a stored run and return the exit code."""
    if not words:
        hint = "`agent-workbench score last` scores the newest run again"
        raise Refused("no run given", hint=hint, try_help="agent-workbench score")
    if len(words) > 1:
        hint = "Choose cases of the run with --case ID"
        raise Refused(f"give one run; {words[1]!r} is a second one", hint=hint, try_help="agent-workbench score")
    (run,) = words
    options = take_fields(RunOptions, values, use_cache=not no_cache)
    outputs = Outputs(**values)
    common.known_runs([run], state_dir)
    from workbench.project.targets import refuse_missing

    refuse_missing(config, "config")
    from workbench.cli.following import run_and_report
    from workbench.project.past_runs import plan_of_run

    def plan() -> "Plan":
        return plan_of_run(run, options, folder=Path.cwd(), config=config, cases=cases, explicit_state=state_dir)

    return run_and_report(outputs, state_dir, plan)

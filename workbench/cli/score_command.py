"""The command `score`: which stored run is scored again and how, checked without a look into the project."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused, reported
from workbench.cli.run_request import Wanted
from workbench.engine.plan.run_options import RunOptions
from workbench.project.targets import refuse_missing

if TYPE_CHECKING:
    from workbench.engine.plan.plan import Plan

_DESCRIPTION = """Scores the transcripts of a stored run again, with the criteria that apply now or those of --config.
No agent is called; judges are asked only what they have not answered yet. It makes a new run.

\b
RUN  the id of a run or the beginning of one, `last`, or a JSON report

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line, the run, or a config named on it is wrong; nothing was scored
    3  something could not be evaluated, or there was nothing to score
  130  interrupted; what was scored is kept
"""


_OPTIONS = ("allow_not_evaluated", "all_votes", "max_judge_calls", "python")


@common.command("score", _DESCRIPTION, "Scores a stored run again: other criteria, another judge, no agent call.")
@click.argument("words", metavar="RUN", nargs=-1)
@common.CONFIG
@common.CASES
@common.JSON
@common.JUNIT
@common.PLAIN
@common.DETAILED
@common.ALLOW_NOT_EVALUATED
@common.MAX_JUDGE_CALLS
@common.ALL_VOTES
@common.NO_CACHE
@common.python("The interpreter of judges and metrics that are functions.")
@common.STATE_DIR
def score_command(
    words: tuple[str, ...],
    config: Path | None,
    cases: tuple[str, ...],
    no_cache: bool,
    state_dir: Path | None,
    **values: Any,
) -> int:
    """Score what the command line asks for; return the exit code."""
    run = _only(words)
    options = RunOptions(use_cache=not no_cache, **{name: values.pop(name) for name in _OPTIONS})
    wanted = Wanted(**values)
    from workbench.history.run_words import refuse_unknown_runs

    with reported(wanted.json):
        refuse_unknown_runs([run], state_dir)
        refuse_missing(config, "config")
        from workbench.cli.following import carry_out
        from workbench.project.scoring import plan_of_run

        def plan() -> "Plan":
            return plan_of_run(run, options, folder=Path.cwd(), config=config, cases=cases, explicit_state=state_dir)

        return carry_out(wanted, state_dir, plan)


def _only(words: tuple[str, ...]) -> str:
    if not words:
        raise Refused(
            "no run is named to score",
            hint="`agent-workbench score last` scores the newest one again",
            try_help="agent-workbench score",
        )
    if len(words) > 1:
        raise Refused(
            f"one run is scored at a time, not also {words[1]!r}",
            hint="--case ID chooses among its cases",
            try_help="agent-workbench score",
        )
    return words[0]

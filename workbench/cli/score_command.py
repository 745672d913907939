"""The command `score`: which stored run is scored again and how, checked without a look into the project."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused, reported
from workbench.engine.plan.options import RunOptions
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


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """What a command line of `score` asks for. `json` may be `-` for standard output."""

    run: str
    config: Path | None = None
    cases: tuple[str, ...] = ()
    options: RunOptions = field(default_factory=RunOptions)
    json: str | None = None
    junit: Path | None = None
    plain: bool = False
    detailed: bool = False
    state_dir: Path | None = None


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
def score_command(**values: Any) -> int:
    """Scores what the command line asks for; the exit code."""
    run = _only(values.pop("words"))
    options = RunOptions(use_cache=not values.pop("no_cache"), **{name: values.pop(name) for name in _OPTIONS})
    request = ScoreRequest(run, **values, options=options)
    from workbench.history.run_words import refuse_unknown_runs

    with reported(request.json):
        refuse_unknown_runs([request.run], request.state_dir)
        refuse_missing(request.config, "config")
        from workbench.cli.following import carry_out
        from workbench.project.scoring import plan_of_run

        def plan() -> "Plan":
            return plan_of_run(
                request.run,
                options,
                folder=Path.cwd(),
                config=request.config,
                cases=request.cases,
                explicit_state=request.state_dir,
            )

        return carry_out(request, request.state_dir, plan)


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

"""The command `score`: which stored run is scored again and how, checked without a look into the project."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from workbench.cli.refusal import Refused, check_state_dir
from workbench.cli.run_command import check_output_files, check_python
from workbench.cli.spelling import CONTEXT
from workbench.engine.options import RunOptions

_DESCRIPTION = """Scores the transcripts of a stored run again, with the criteria that apply now or those of --config.
No agent is called; judges are asked only what they have not answered yet. It makes a new run.

\b
RUN  the id of a run or the beginning of one, `last`, or a JSON report

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line, the run, or a config is wrong; nothing was scored
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


_FILE = click.Path(path_type=Path)
_OPTIONS = ("allow_not_evaluated", "all_votes", "max_judge_calls", "python")


@click.command(
    "score",
    help=_DESCRIPTION,
    short_help="Scores a stored run again: other criteria, another judge, no agent call.",
    options_metavar="[OPTIONS]",
    context_settings=CONTEXT,
)
@click.argument("words", metavar="RUN", nargs=-1)
@click.option("--config", "--config-file-path", "config", type=_FILE, metavar="FILE", help="Criteria for all cases.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Only this case; may be given several times.")
@click.option("--json", metavar="FILE|-", help="Writes the report; with - to standard output, and nothing else there.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Writes JUnit XML.")
@click.option("--plain", is_flag=True, help="A line for each case, also on a terminal.")
@click.option("--print-detailed-results", "detailed", is_flag=True, help="Each conversation and verdict at the end.")
@click.option("--allow-not-evaluated", is_flag=True, help="Leaves out criteria that cannot be judged here.")
@click.option("--max-judge-calls", type=int, metavar="N", help="Stop asking judges at so many calls.")
@click.option("--all-votes", is_flag=True, help="Ask judges for all samples, not only until the verdict is certain.")
@click.option("--no-cache", is_flag=True, help="Ask judges again, also what they have answered before.")
@click.option("--python", type=_FILE, metavar="PATH", help="The interpreter of judges and metrics that are functions.")
@click.option("--state-dir", type=_FILE, metavar="DIR", help="Where runs are kept.  [default: .workbench in the root]")
def score_command(**values: Any) -> int:
    """Scores what the command line asks for; the exit code."""
    run = _only(values.pop("words"))
    options = RunOptions(use_cache=not values.pop("no_cache"), **{name: values.pop(name) for name in _OPTIONS})
    request = ScoreRequest(run, **values, options=options)
    check_output_files(request.json, request.junit)
    check_state_dir(request.state_dir)
    check_python(options.python)
    from workbench.cli.early_refusal import refuse_score

    refuse_score(request)
    from workbench.cli.score_headless import score

    return score(request)


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

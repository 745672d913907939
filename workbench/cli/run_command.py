"""The command `run` (alias `eval`): its words and options, checked as far as that needs no file of the project.

Options of `adk eval` are understood in ADK's spelling too (underscores for hyphens).
"""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused, reported
from workbench.cli.run_request import RunRequest
from workbench.engine.plan.run_options import MOST_UNTIL_SURE, RunOptions
from workbench.project.targets import Targets

_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_DESCRIPTION = """Runs evalsets without a screen and says which cases failed, and why.

\b
TARGET  a folder, an evalset file, FILE:case_1,case_2 or an evalset id
AGENT   an agent's folder; then every TARGET is a file, FILE:ids or an id

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line is wrong, or a file or config named on it; nothing ran
    3  something could not be evaluated, or nothing ran
  130  interrupted; what was scored is kept
"""


@common.command("run", _DESCRIPTION, "Runs evalsets without a screen, for a terminal, a script or CI.")
@click.argument("words", metavar="[AGENT] TARGET...", nargs=-1)
@common.CONFIG
@common.CASES
@click.option("--agent", type=common.FILE, metavar="PATH", help="The agent of all evalsets.")
@click.option("--runs", type=int, metavar="N", help="Executions of each case.  [default: 1]")
@click.option(
    "--until-sure",
    type=float,
    metavar="RATE",
    help="Repeats each case until it is sure that this share passes, or fewer do; --runs times at most (50).",
)
@click.option("--concurrency", type=int, default=8, metavar="N", show_default=True, help="Cases at the same time.")
@click.option("--timeout", type=float, default=300.0, show_default=True, metavar="SECONDS", help="For one case.")
@common.JSON
@common.JUNIT
@common.PLAIN
@common.DETAILED
@common.ALLOW_NOT_EVALUATED
@click.option(
    "--isolation",
    type=click.Choice(["case", "run"]),
    default="case",
    show_default=True,
    help="A process for each case, or one for all cases of an agent (quicker).",
)
@common.python("The agents' interpreter.  [default: the project's .venv]")
@click.option(
    "--initial-session-file", type=common.FILE, metavar="FILE", help="Session of cases in the oldest file format."
)
@common.STATE_DIR
@click.option(
    "--log-level",
    type=click.Choice(_LOG_LEVELS, case_sensitive=False),
    metavar="LEVEL",
    help="What agents log to their output: DEBUG, INFO, WARNING, ERROR or CRITICAL.",
)
@common.MAX_JUDGE_CALLS
@common.ALL_VOTES
@common.NO_CACHE
@click.option("--fresh", is_flag=True, help="Runs all cases anew, also where an interrupted run could be resumed.")
@click.option("--watch", is_flag=True, help="Goes on after the run: a save runs the cases that it can affect.")
@click.option("--eval-storage-uri", hidden=True)
@click.option("--enable-features", multiple=True, hidden=True)
@click.option("--disable-features", multiple=True, hidden=True)
def run_command(**values: Any) -> int:
    """Runs what the command line asks for; the exit code."""
    _refuse_storage(values.pop("eval_storage_uri"))
    _set_environment(values.pop("log_level"), values.pop("enable_features"), values.pop("disable_features"))
    values["use_cache"] = not values.pop("no_cache")
    if values["runs"] is None:
        values["runs"] = 1 if values["until_sure"] is None else MOST_UNTIL_SURE
    options = RunOptions(**{item.name: values.pop(item.name) for item in fields(RunOptions) if item.name in values})
    named = {item.name: values.pop(item.name) for item in fields(Targets) if item.name in values}
    request = RunRequest(targets=Targets(**named, folder=Path.cwd()), options=options, **values)
    _check(request)
    targets = request.targets
    with reported(request.json):
        targets.refuse_unknown()
        if request.watch:
            from workbench.cli.watch_run import watch

            return watch(request)
        from workbench.cli.following import carry_out

        return carry_out(request, targets.state_dir, lambda: targets.plan(options), fresh=request.fresh)


def _refuse_storage(storage: str | None) -> None:
    if storage is not None:
        raise Refused(
            "--eval_storage_uri is not supported: evalsets are read from files, and runs are kept on this machine",
            hint="Fetch the evalsets first and name the files; --state-dir says where runs are kept",
        )


def _set_environment(log_level: str | None, enabled: tuple[str, ...], disabled: tuple[str, ...]) -> None:
    """What reaches the agents' processes by their environment: the level for their logging, and ADK's feature flags
    as the variables that ADK reads."""
    if log_level is not None:
        os.environ["AGENT_WORKBENCH_LOG_LEVEL"] = log_level
    for prefix, lists in (("ADK_ENABLE_", enabled), ("ADK_DISABLE_", disabled)):
        for name in ",".join(lists).split(","):
            if name.strip():
                os.environ[prefix + name.strip()] = "1"


def _check(request: RunRequest) -> None:
    """Refuses what would only be noticed when the run is over, or not at all."""
    if not request.targets.words:
        raise Refused(
            "nothing is named to run",
            hint="`agent-workbench run .` runs all evalsets in this folder",
            try_help="agent-workbench run",
        )
    if "" in request.targets.words:
        raise Refused("one of the targets is empty", hint="An unset variable on the command line looks like that")
    if request.watch and (request.json is not None or request.junit is not None):
        raise Refused(
            "--watch has no end at which a report could be written",
            hint="Without it, `run` writes --json and --junit; runs of a watch are kept, and `score last` reads them",
        )

"""The command `run` (alias `eval`): its arguments, and the checks that need no file of the project."""

import re
from pathlib import Path
from typing import Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.running_options import (
    JUDGING_OPTIONS,
    PLACE_OPTIONS,
    WRITING_OPTIONS,
    RunningCommand,
    RunRequest,
    running_options,
    take_fields,
    take_running_options,
)
from workbench.events.shards import ShardNumber
from workbench.files.run_options import MATRIX, MOST_UNTIL_SURE, RunOptions, UsageFaultError

_GROUPS = {
    "What runs": "--agent --case -k --last-failed -x --runs --until-sure --shard --inject --fresh --watch"
    " --initial-session-file",
    "How it is judged": JUDGING_OPTIONS,
    "What is written": f"--json --junit {WRITING_OPTIONS}",
    "Where it runs": PLACE_OPTIONS,
    "Recordings": "--frozen --on-miss --thaw",
    "Help": "--help",
}
_DESCRIPTION = """Run evalsets without a screen. Shows which cases failed, and why.

\b
TARGET  a folder, an evalset file, FILE:case_1,case_2 or an evalset ID
AGENT   an agent's folder; then every TARGET is a file, FILE:ids or an ID

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line is wrong, or a file or config that it names; nothing ran
    3  a case could not be evaluated, even if others failed; or nothing ran
  130  interrupted; finished scores are saved

\b
With --until-sure
    0  each case surely passes at least at that rate
    1  a case surely does not, and all others are sure
    3  a case is undecided, or none of its repeats could be judged
"""


def _shard(context: click.Context, parameter: click.Parameter, word: str | None) -> ShardNumber | None:
    """Parse the value of `--shard`, or return None without the option."""
    if word is None:
        return None
    found = re.fullmatch("([0-9]{1,6})/([0-9]{1,6})", word)
    if found is None:
        raise Refused(f"--shard takes K/N, such as 2/4, not {word!r}")
    number = ShardNumber(int(found[1]), int(found[2]))
    if not 1 <= number.index <= number.count:
        raise Refused(f"--shard {word}: K counts from 1 to N", hint="The first of four shards is 1/4, the last 4/4")
    return number


class _RunCommand(RunningCommand):
    """The command with its groups of options."""

    groups = _GROUPS


@common.command("run", _DESCRIPTION, "Run evalsets without a screen, in a terminal, a script or CI.", _RunCommand)
@click.argument("words", metavar="[AGENT] TARGET...", nargs=-1)
@click.option(
    "--last-failed",
    is_flag=True,
    help="Run only cases whose last verdict is failed or error. If there are none, run all.",
)
@click.option("-x", "exit_first", is_flag=True, help="Start no new case after the first one that does not pass.")
@click.option("--runs", type=int, metavar="N", help="Run each case N times.  [default: 1]")
@click.option(
    "--until-sure",
    type=float,
    metavar="RATE",
    help="Repeat each case until its pass rate is certainly above or below RATE, at most --runs times (50).",
)
@running_options
@click.option("--thaw", is_flag=True, help="Run live, and show how the answers drifted from the recordings.")
@click.option(
    "--inject",
    metavar="FILE|matrix",
    help='Make tool calls fail as FILE describes; "matrix": every tool, every kind of fault.',
)
@click.option(
    "--shard",
    metavar="K/N",
    callback=_shard,
    help="Run only every N-th execution, from the K-th on. `merge` joins the reports of all N shards.",
)
@click.option("--watch", is_flag=True, help="Keep running: each save runs the cases that it can affect.")
def run_command(**values: Any) -> int:
    """Run the cases that the command line names, and return the exit code."""
    from workbench.project.targets import Targets

    take_running_options(values)
    if values["runs"] is None:
        values["runs"] = 1 if values["until_sure"] is None else MOST_UNTIL_SURE
    values["inject"] = _injection(values["inject"])
    options = take_fields(RunOptions, values)
    targets = take_fields(Targets, values, folder=Path.cwd())
    request = RunRequest(targets=targets, options=options, **values)
    _check(request)
    targets.refuse_unknown()
    if request.watch:
        from workbench.cli.watch_run import watch

        return watch(request)
    from workbench.cli.following import ask_if_typed, run_and_report

    asks = ask_if_typed(options.place)
    return run_and_report(request, targets.state_dir, lambda: targets.plan(options), fresh=request.fresh, ask=asks)


def _injection(word: str | None) -> Any:
    """Return the faults to inject, `matrix`, or None.

    Raises:
        UsageFaultError: the file is wrong.
    """
    if word is None or word == MATRIX:
        return word
    from workbench.files.injection_rules import read_injection
    from workbench.files.own_file import OwnFileError

    try:
        return read_injection(Path(word))
    except OwnFileError as error:
        raise UsageFaultError("\n".join(fault.sentence() for fault in error.faults), kind="config") from None


def _check(request: RunRequest) -> None:
    """Refuse command lines whose faults would be noticed only after the run, or never.

    Raises:
        Refused: There is no target, or two options exclude each other.
    """
    if not request.targets.words:
        hint = "`agent-workbench run .` runs all evalsets in this folder"
        raise Refused("no target given", hint=hint, try_help="agent-workbench run")
    if request.targets.shard is not None:
        _check_shard(request)
    if request.watch and request.options.inject is not None:
        raise Refused("--watch cannot inject faults", hint="Leave out --watch or --inject")
    if request.watch and request.options.exit_first:
        message = "--watch cannot be used with -x: cases that -x skips would stay stale"
        raise Refused(message, hint="Leave out --watch or -x")
    if request.watch and request.options.thaw:
        raise Refused("--watch cannot thaw recordings", hint="Leave out --watch or --thaw")
    if request.watch and (request.json is not None or request.junit is not None):
        hint = "Leave out --watch, or read a stored run later with `score last --json`"
        raise Refused("--watch cannot write a report, because it has no end", hint=hint)


def _check_shard(request: RunRequest) -> None:
    """Refuse options with which the shards would not all have the same plan.

    Raises:
        Refused: One of them is given.
    """
    options = request.options
    during, here = "which decides during the run which cases run", "which depends on the runs of this machine"
    given = {
        "--until-sure": (options.until_sure is not None, during),
        "--inject matrix": (options.inject == MATRIX, during),
        "--watch": (request.watch, during),
        "-x": (options.exit_first, during),
        "--last-failed": (request.targets.last_failed, here),
    }
    for name, (is_given, why) in given.items():
        if is_given:
            raise Refused(f"--shard cannot be used with {name}, {why}", hint=f"Leave out --shard or {name.split()[0]}")

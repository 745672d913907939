"""The command `run` (alias `eval`): its arguments, and the checks that need no file of the project.

Options of `adk eval` may also be spelled as ADK does, with underscores.
"""

import os
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused, reported
from workbench.cli.run_request import RunRequest
from workbench.events.shards import ShardNumber
from workbench.files.run_options import MATRIX, MOST_UNTIL_SURE, OFF, RunOptions, UsageFaultError

_MODES = ("tools", "all", OFF)
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_GROUPS = {
    "What runs": (
        "--agent",
        "--case",
        "-k",
        "--last-failed",
        "-x",
        "--runs",
        "--until-sure",
        "--shard",
        "--inject",
        "--fresh",
        "--watch",
        "--initial-session-file",
    ),
    "How it is judged": ("--config", "--allow-not-evaluated", "--all-votes", "--max-judge-calls", "--no-cache"),
    "What is written": ("--json", "--junit", "--plain", "-q", "--print-detailed-results", "--state-dir", "--log-level"),
    "Where it runs": ("--concurrency", "--timeout", "--isolation", "--python", "--on", "--remote-python", "--env"),
    "Recordings": ("--frozen", "--on-miss", "--thaw"),
    "Help": ("--help",),
}
"""Title of a group in the help → its options, each by one of its names."""

_DESCRIPTION = """Run evalsets without a screen. Shows which cases failed, and why.

\b
TARGET  a folder, an evalset file, FILE:case_1,case_2 or an evalset ID
AGENT   an agent's folder; then every TARGET is a file, FILE:ids or an ID

\b
Exit codes
    0  every case passed
    1  some case failed
    2  the command line is wrong, or a file or config that it names; nothing ran
    3  a case could not be evaluated, or nothing ran
  130  interrupted; finished scores are saved

\b
With --until-sure
    0  each case surely passes at least at that rate
    1  one surely does not
    3  one is undecided, or none of its repeats could be judged
"""


def _shard(context: click.Context, parameter: click.Parameter, word: str | None) -> ShardNumber | None:
    """Return the number that `--shard` names."""
    if word is None:
        return None
    found = re.fullmatch("([0-9]{1,6})/([0-9]{1,6})", word)
    if found is None:
        raise Refused(f"--shard takes K/N, such as 2/4, not {word!r}")
    number = ShardNumber(int(found[1]), int(found[2]))
    if not 1 <= number.index <= number.count:
        raise Refused(f"--shard {word}: K counts from 1 to N", hint="The first of four shards is 1/4, the last 4/4")
    return number


def _text(context: click.Context, parameter: click.Parameter, word: str | None) -> str:
    """Return the text that `-k` names."""
    if word == "":
        raise Refused("-k needs a text", hint="Check for unset variables on the command line")
    return word or ""


class _RunCommand(click.Command):
    """The command, with its options in groups.

    `--frozen` has an optional value, but only after `=`: a target may follow it.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = {name: option for option in self.get_params(ctx) for name in option.opts}
        for title, names in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([record for name in names if (record := options[name].get_help_record(ctx))])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        named = [f"--frozen={_MODES[0]}" if word == "--frozen" else word for word in args[:end]]
        return super().parse_args(ctx, [*named, *args[end:]])


@common.command("run", _DESCRIPTION, "Run evalsets without a screen, in a terminal, a script or CI.", _RunCommand)
@click.argument("words", metavar="[AGENT] TARGET...", nargs=-1)
@common.CONFIG
@common.CASES
@click.option("--agent", type=common.FILE, metavar="PATH", help="Agent for all evalsets.")
@click.option(
    "-k",
    "name_contains",
    metavar="TEXT",
    callback=_text,
    help="Run only cases whose ID contains TEXT. Upper and lower case are the same.",
)
@click.option("--last-failed", is_flag=True, help="Run only cases whose last verdict is failed or error, if any.")
@click.option("-x", "exit_first", is_flag=True, help="Start no case after the first that did not pass.")
@click.option("--runs", type=int, metavar="N", help="Run each case N times.  [default: 1]")
@click.option(
    "--until-sure",
    type=float,
    metavar="RATE",
    help="Repeat each case until its pass rate is certainly above or below RATE, at most --runs times (50).",
)
@click.option(
    "--concurrency", type=int, default=8, metavar="N", show_default=True, help="Run N cases at the same time."
)
@click.option(
    "--timeout", type=float, default=300.0, show_default=True, metavar="SECONDS", help="Time limit of one case."
)
@common.JSON
@common.JUNIT
@common.PLAIN
@click.option("-q", "quiet", is_flag=True, help="Print only the summary.")
@common.DETAILED
@common.ALLOW_NOT_EVALUATED
@click.option(
    "--isolation",
    type=click.Choice(["case", "run"]),
    default="case",
    show_default=True,
    help="One process for each case, or one for all cases of an agent (faster).",
)
@common.python("Python interpreter of the agents.  [default: the project's .venv]")
@click.option(
    "--initial-session-file", type=common.FILE, metavar="FILE", help="Session for cases in the oldest file format."
)
@common.STATE_DIR
@click.option(
    "--log-level",
    type=click.Choice(_LOG_LEVELS, case_sensitive=False),
    metavar="LEVEL",
    help="Log level of agents: DEBUG, INFO, WARNING, ERROR or CRITICAL.",
)
@common.MAX_JUDGE_CALLS
@common.ALL_VOTES
@common.NO_CACHE
@click.option(
    "--frozen",
    type=click.Choice(_MODES),
    metavar="[=tools|all|off]",
    help="Answer the calls of tools (all: models, too) from the recordings of the cases.",
)
@click.option(
    "--on-miss",
    type=click.Choice(["error", "live"]),
    default="error",
    show_default=True,
    help="A call that a recording does not have ends the case, or is made.",
)
@click.option("--thaw", is_flag=True, help="Run live, and show how the answers drifted from the recordings.")
@click.option(
    "--inject",
    metavar="FILE|matrix",
    help="Let calls of tools fail as FILE says, or each tool of each case once in each way.",
)
@click.option(
    "--on",
    metavar="PLACE",
    help="Run agents at PLACE: local, dask, dask://HOST:PORT, tls://HOST:PORT or a name from the settings.  "
    "[default: local]",
)
@common.REMOTE_PYTHON
@common.ENV
@click.option(
    "--shard",
    metavar="K/N",
    callback=_shard,
    help="Run only every N-th execution, from the K-th on. `merge` joins the reports of all N shards.",
)
@click.option("--fresh", is_flag=True, help="Start a new run, even if an interrupted one could be resumed.")
@click.option("--watch", is_flag=True, help="Keep running: each save runs the cases that it can affect.")
@click.option("--eval-storage-uri", hidden=True)
@click.option("--enable-features", multiple=True, hidden=True)
@click.option("--disable-features", multiple=True, hidden=True)
def run_command(**values: Any) -> int:
    """Run the cases that the command line names, and return the exit code."""
    from workbench.project.targets import Targets

    _refuse_storage(values.pop("eval_storage_uri"))
    _set_environment(values.pop("log_level"), values.pop("enable_features"), values.pop("disable_features"))
    values["use_cache"] = not values.pop("no_cache")
    values["frozen"] = "" if values["frozen"] == OFF else values["frozen"]
    if values["runs"] is None:
        values["runs"] = 1 if values["until_sure"] is None else MOST_UNTIL_SURE
    values["place"] = common.place_choice(values.pop("on"), values.pop("remote_python"), values.pop("env"))
    values["inject"] = _injection(values["inject"])
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
        from workbench.cli.consent import ask_if_typed
        from workbench.cli.following import run_and_report

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


def _refuse_storage(storage: str | None) -> None:
    if storage is not None:
        raise Refused(
            "--eval_storage_uri is not supported: evalsets are read from files, and runs are stored on this machine",
            hint="Download the evalsets and name the files. --state-dir sets the folder for runs",
        )


def _set_environment(log_level: str | None, enabled: tuple[str, ...], disabled: tuple[str, ...]) -> None:
    """Put the agents' log level and ADK's feature flags into the environment, where their processes read them."""
    if log_level is not None:
        os.environ["AGENT_WORKBENCH_LOG_LEVEL"] = log_level
    for prefix, lists in (("ADK_ENABLE_", enabled), ("ADK_DISABLE_", disabled)):
        for name in ",".join(lists).split(","):
            if name.strip():
                os.environ[prefix + name.strip()] = "1"


def _check(request: RunRequest) -> None:
    """Refuse faults that would be noticed only after the run, or never.

    Raises:
        Refused: No target, an empty target, or a report of a watch.
    """
    if not request.targets.words:
        raise Refused(
            "no target given",
            hint="`agent-workbench run .` runs all evalsets in this folder",
            try_help="agent-workbench run",
        )
    if "" in request.targets.words:
        raise Refused("a target is empty", hint="Check for unset variables on the command line")
    if request.targets.shard is not None:
        _check_shard(request)
    if request.watch and request.options.inject is not None:
        raise Refused("--watch cannot inject faults", hint="Leave out --watch or --inject")
    if request.watch and request.options.exit_first:
        raise Refused("--watch cannot be used with -x: cases that it leaves out would stay stale")
    if request.watch and request.options.thaw:
        raise Refused("--watch cannot thaw recordings", hint="Leave out --watch or --thaw")
    if request.watch and (request.json is not None or request.junit is not None):
        raise Refused(
            "--watch cannot write a report, because it has no end",
            hint="Leave out --watch, or read a stored run later with `score last --json`",
        )


def _check_shard(request: RunRequest) -> None:
    """Refuse options with which not all shards have the same plan, so that it cannot be divided.

    Raises:
        Refused: One of them is given.
    """
    options = request.options
    during, here = "which decides during the run what runs", "which depends on the runs of this machine"
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

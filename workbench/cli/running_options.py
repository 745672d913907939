"""The options that `run` and `try` share, with their groups and texts in the help.

Options of `adk eval` may also be spelled as ADK does, with underscores.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.files.run_options import OFF, RunOptions

if TYPE_CHECKING:
    from workbench.project.targets import Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of a run. `json` is a path, or `-` for standard output."""

    json: str | None = None
    junit: Path | None = None
    plain: bool = False
    detailed: bool = False
    quiet: bool = False
    """Whether only the summary is printed, without lines of single cases."""

    def __post_init__(self) -> None:
        if self.json is not None and self.junit is not None and Path(self.json).absolute() == self.junit.absolute():
            raise Refused(f"--json and --junit both name {self.junit}", hint="Give each its own path")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(Outputs):
    """The request of one `run` command line."""

    targets: "Targets"
    options: RunOptions = field(default_factory=RunOptions)
    watch: bool = False
    fresh: bool = False


T = TypeVar("T")
_MODES = ("tools", "all", OFF)
JUDGING_OPTIONS = "--config --allow-not-evaluated --all-votes --max-judge-calls --no-cache"
WRITING_OPTIONS = "--plain -q --print-detailed-results --state-dir --log-level"
PLACE_OPTIONS = "--concurrency --timeout --isolation --python --on --remote-python --env"
"""Options in groups of the help that `run` and `try` share."""
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class RunningCommand(click.Command):
    """A command that runs cases, with its options in groups.

    `--frozen` has an optional value, but only after `=`, because a target may follow it.
    """

    groups: ClassVar[Mapping[str, str]] = {}
    """Title of a group in the help → its options, each by one of its names, with spaces between them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        options = {name: option for option in self.get_params(ctx) for name in option.opts}
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([record for name in names.split() if (record := options[name].get_help_record(ctx))])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. `--frozen` alone means `--frozen=tools`."""
        end = args.index("--") if "--" in args else len(args)
        named = [f"--frozen={_MODES[0]}" if word == "--frozen" else word for word in args[:end]]
        return super().parse_args(ctx, [*named, *args[end:]])


def _text(context: click.Context, parameter: click.Parameter, word: str | None) -> str:
    """Return the value of `-k`, or "" without the option. Refuse an empty value."""
    if word == "":
        raise Refused("-k needs a text", hint="Check for unset variables on the command line")
    return word or ""


_OPTIONS = (
    common.CONFIG,
    common.cases("Run"),
    click.option("--agent", type=common.FILE, metavar="PATH", help="Agent for all evalsets."),
    click.option(
        "-k",
        "name_contains",
        metavar="TEXT",
        callback=_text,
        help="Run only cases whose ID contains TEXT, in upper or lower case.",
    ),
    click.option(
        "--concurrency", type=int, default=8, metavar="N", show_default=True, help="Run N cases at the same time."
    ),
    click.option(
        "--timeout", type=float, default=300.0, show_default=True, metavar="SECONDS", help="Time limit of one case."
    ),
    common.JSON,
    common.JUNIT,
    common.PLAIN,
    click.option("-q", "quiet", is_flag=True, help="Print only the summary."),
    common.DETAILED,
    common.ALLOW_NOT_EVALUATED,
    click.option(
        "--isolation",
        type=click.Choice(["case", "run"]),
        default="case",
        show_default=True,
        help="One process for each case, or one for all cases of an agent (faster).",
    ),
    common.python("Python interpreter of the agents.  [default: the project's .venv]"),
    click.option(
        "--initial-session-file",
        type=common.FILE,
        metavar="FILE",
        help="Initial session for cases in the oldest file format.",
    ),
    common.STATE_DIR,
    click.option(
        "--log-level",
        type=click.Choice(_LOG_LEVELS, case_sensitive=False),
        metavar="LEVEL",
        help="Log level of agents: DEBUG, INFO, WARNING, ERROR or CRITICAL.",
    ),
    common.MAX_JUDGE_CALLS,
    common.ALL_VOTES,
    common.NO_CACHE,
    click.option(
        "--frozen",
        type=click.Choice(_MODES),
        metavar="[=tools|all|off]",
        help="Answer the calls of tools (all: models, too) from the recordings of the cases.",
    ),
    click.option(
        "--on-miss",
        type=click.Choice(["error", "live"]),
        default="error",
        show_default=True,
        help="If a recording lacks a call: end the case with an error, or make the call.",
    ),
    click.option(
        "--on",
        metavar="PLACE",
        help="Run agents at PLACE: local, dask, dask://HOST:PORT, tls://HOST:PORT or a name from the settings.  "
        "[default: local]",
    ),
    common.REMOTE_PYTHON,
    common.ENV,
    click.option("--fresh", is_flag=True, help="Start a new run, even if an interrupted one could be resumed."),
    click.option("--eval-storage-uri", hidden=True),
    click.option("--enable-features", multiple=True, hidden=True),
    click.option("--disable-features", multiple=True, hidden=True),
)


def running_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that are common to all commands that run cases."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def take_running_options(values: dict[str, Any]) -> None:
    """Convert the parsed values of these options, in place, to fields of `RunOptions` and environment variables.

    Raises:
        Refused: an option of `adk eval` is not supported.
        click.UsageError: `--on` has no name.
    """
    if values.pop("eval_storage_uri") is not None:
        raise Refused(
            "--eval_storage_uri is not supported: evalsets are read from files, and runs are stored on this machine",
            hint="Download the evalsets and name the files. --state-dir sets the folder for runs",
        )
    log_level = values.pop("log_level")
    if log_level is not None:
        os.environ["AGENT_WORKBENCH_LOG_LEVEL"] = log_level
    for prefix, lists in (
        ("ADK_ENABLE_", values.pop("enable_features")),
        ("ADK_DISABLE_", values.pop("disable_features")),
    ):
        for name in ",".join(lists).split(","):
            if name.strip():
                os.environ[prefix + name.strip()] = "1"
    values["use_cache"] = not values.pop("no_cache")
    values["frozen"] = "" if values["frozen"] == OFF else values["frozen"]
    values["place"] = common.place_choice(values.pop("on"), values.pop("remote_python"), values.pop("env"))


def take_fields(kind: type[T], values: dict[str, Any], **more: Any) -> T:
    """Return an object of a dataclass with the values of its fields, which are removed from `values`, and with `more`.

    Raises:
        UsageFaultError: the class refuses a value.
    """
    names = [item.name for item in fields(kind) if item.name in values]  # type: ignore[arg-type]
    return kind(**{name: values.pop(name) for name in names}, **more)

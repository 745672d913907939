"""The command line: choosing a command, and reporting why it was refused.

Besides small modules, only click is imported here. A command imports its package when it runs, so that `--help`,
`--version` and a mistyped option answer at once.
"""

import difflib
import errno
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

import click

from workbench.cli import common_options as common
from workbench.cli.exit_codes import COMMANDS, INTERRUPTED, PROGRAM, USAGE
from workbench.cli.refusal import Refused, report_refusal
from workbench.cli.streams import can_draw, on_terminal, write_line
from workbench.files.plugins import installed, summary
from workbench.files.run_options import UsageFaultError
from workbench.text.safe_text import one_line

OpenScreen: TypeAlias = Callable[..., int]
"""`workbench.ui.app.open_screen`, which opens the workbench on a path and returns the exit code."""


def execute(words: list[str], open_screen: OpenScreen) -> int:
    """Run a command line (without the program's name) and return the exit code."""
    command: click.Command = workbench_command
    name, rest = PROGRAM, words
    if words and words[0] in COMMANDS:
        command, name, rest = _command(COMMANDS[words[0]]), f"{PROGRAM} {words[0]}", words[1:]
    try:
        code = command.main(rest, prog_name=name, standalone_mode=False, obj=open_screen)
    except click.ClickException as error:
        refused = error if isinstance(error, Refused) else Refused(error.format_message(), try_help=name)
    except UsageFaultError as error:
        refused = Refused.from_fault(error)
    except OSError as error:
        if not has_current_folder():
            refused = Refused("the current folder was deleted", hint="Go to another folder first")
        elif error.errno == errno.ENAMETOOLONG:
            refused = Refused(f"{error.strerror}: {error.filename}")
        else:
            raise
    except click.Abort:
        return INTERRUPTED
    else:
        return int(code or 0)
    report_refusal(refused, command, words[0] if words else "", rest)
    return USAGE


def has_current_folder() -> bool:
    """Return whether the current folder still exists."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _command(name: str) -> click.Command:
    """Import and return one command. The others are not imported, which saves time."""
    command = getattr(import_module(f"workbench.cli.{name}_command"), f"{name}_command")
    assert isinstance(command, click.Command)
    return command


class _WorkbenchCommand(click.Command):
    """The program without a command; its help also lists the commands."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            names = [("run (eval)", "run"), *list(COMMANDS.items())[2:]]
            formatter.write_dl([(name, _command(module).get_short_help_str(limit=80)) for name, module in names])
        formatter.write_paragraph()
        formatter.write_text("If a folder has the name of a command, put ./ before it: ./run")
        from workbench.files.folders import settings_folder

        formatter.write_paragraph()
        # Not wrapped: a path that is cut in two cannot be copied.
        formatter.write_text("Settings (theme, mouse, keys, prices):")
        formatter.write(f"  {settings_folder() / 'config.toml'}\n")


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version(PROGRAM)
        except PackageNotFoundError:
            number = "(not installed; running from source)"
        write_line(sys.stdout, f"{PROGRAM} {number}")
        for line in summary(installed()):
            write_line(sys.stdout, one_line(f"with {line}"))
        context.exit(0)


@click.command(
    cls=_WorkbenchCommand,
    options_metavar="",
    help="Open the workbench on PATH: a folder, an evalset or an agent. Default: this folder.",
    context_settings=common.CONTEXT,
)
@click.argument("words", metavar="[PATH]", nargs=-1)
@click.option("--theme", metavar="NAME", help="Colour theme. The palette of the workbench (key :) lists all themes.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, to select and copy text.")
@common.state_dir("Folder for runs.")
@click.option("--watch", is_flag=True, help="Open with the watch on: each save runs the cases that it can affect.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_obj
def workbench_command(
    open_screen: OpenScreen,
    words: tuple[str, ...],
    theme: str | None,
    no_mouse: bool,
    state_dir: Path | None,
    watch: bool,
) -> int:
    """Open the screen and return the exit code."""
    path = _path_to_open(words)
    if not can_draw():
        kind = " that can redraw its screen (TERM is dumb)" if on_terminal() else ""
        hint = f"`{PROGRAM} run {one_line(str(path))}` runs the evalsets and prints the results without a terminal"
        raise Refused(f"the workbench needs a terminal{kind}", hint=hint)
    return open_screen(path, theme=theme, mouse=not no_mouse, watch=watch, state_dir=state_dir)


def _path_to_open(words: tuple[str, ...]) -> Path:
    """Return the path to open: the only word, or this folder."""
    if not words:
        return Path()
    first = words[0]
    if first in COMMANDS:
        hint = f"For a folder of that name, write ./{first}"
        raise Refused(f"the command comes first: {PROGRAM} {first} …", hint=hint)
    path = Path(first)
    if not first or not path.exists():
        near = difflib.get_close_matches(first, COMMANDS, n=1)
        hint = f"Did you mean the command `{near[0]}`?" if near else f"See `{PROGRAM} --help`"
        raise Refused(f"no file, folder or command is named {first!r}", hint=hint)
    if len(words) > 1:
        hint = "Name a folder that holds both, or use `run`"
        raise Refused(f"the workbench opens one path; {words[1]!r} is a second one", hint=hint)
    return path

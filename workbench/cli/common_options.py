"""Parts shared by the commands: their decorator, and options with the same name, meaning and checks."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from workbench.cli.refusal import Refused
from workbench.cli.streams import warn
from workbench.files.file_access import real_path
from workbench.files.run_options import PlaceChoice


class _FileType(click.Path):
    """A path. An empty one is refused, because it would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            Refused: it is empty.
        """
        if value == "":
            name = param.opts[0] if isinstance(param, click.Option) else "a path"
            raise Refused(f"{name} is empty", hint="Check for unset variables on the command line")
        return super().convert(value, param, ctx)


FILE = _FileType(path_type=Path)
STANDARD_OUTPUT = Path("-")
"""The value of `-o -`."""
CONTEXT: Final[dict[str, Any]] = {
    "help_option_names": ["-h", "--help"],
    # ADK's commands have underscores.
    "token_normalize_func": lambda name: name.replace("_", "-"),
}
"""Settings of click for every command: help options, and underscores for hyphens."""


def command(
    name: str, description: str, short_help: str, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator that turns a function into a command. The function returns the exit code."""
    return click.command(
        name,
        cls,
        help=description,
        short_help=short_help,
        options_metavar="[OPTIONS]",
        context_settings={**CONTEXT, "max_content_width": 110},
    )


def place_choice(word: str | None, python: str, env: Sequence[str]) -> PlaceChoice | None:
    """Return the place of `--on` and its options, or None if none of them is given.

    Raises:
        click.UsageError: the name is empty.
    """
    if word == "":
        raise click.UsageError("--on needs the name of a place")
    return PlaceChoice(word or "", python, tuple(env)) if word or python or env else None


def output(metavar: str, help_text: str) -> Callable[[Any], Any]:
    """Return the option `-o`. Its value is a path, `STANDARD_OUTPUT` for `-`, or None if the option is not given."""
    return click.option("-o", "--output", metavar=metavar, callback=_output_path, help=help_text)


def _output_path(context: click.Context, parameter: click.Parameter, word: str | None) -> Path | None:
    if word is None:
        return None
    if word == "-":
        return STANDARD_OUTPUT
    path: Path = FILE.convert(word, parameter, context)
    # A file with the name `-` is written `./-`, which is the same path.
    return Path.cwd() / word if path == STANDARD_OUTPUT else path


def one_path(words: Sequence[Path], try_help: str) -> Path:
    """Return the only path among a command's words, or this folder without words.

    Raises:
        Refused: There are several paths, or it does not exist.
    """
    if len(words) > 1:
        raise Refused(f"give one path; {str(words[1])!r} is a second one", try_help=try_help)
    path = words[0] if words else Path()
    if not path.exists():
        raise Refused(f"{path} does not exist", try_help=try_help)
    return path


def _checked_folder(context: click.Context, parameter: click.Parameter, folder: Path | None) -> Path | None:
    if folder is not None and folder.exists() and not folder.is_dir():
        raise Refused(f"--state-dir {folder} is not a folder")
    return folder


def _checked_python(context: click.Context, parameter: click.Parameter, python: Path | None) -> Path | None:
    if python is not None and not (python.is_file() and os.access(python, os.X_OK)):
        raise Refused(f"--python {python} is not an executable file")
    return python


def _checked_json(context: click.Context, parameter: click.Parameter, json: str | None) -> str | None:
    if json not in (None, "-"):
        check_writable("--json", Path(json))
    return json


def checked_file(option: str) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """Return a callback that refuses standard output, and a file that could not be written after the run."""

    def check(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
        if file == STANDARD_OUTPUT:
            raise Refused(f"{option} cannot write to standard output", hint="Give it a path")
        if file is not None:
            check_writable(option, file)
        return file

    return check


def check_writable(option: str, file: Path) -> None:
    """Refuse a file that could not be written after the run."""
    folder = real_path(file).parent
    if file.is_dir() or not file.name:
        raise Refused(f"{option} {str(file)!r} is a folder, not a file")
    if file.name.endswith((".evalset.json", ".test.json")) and file.exists():
        raise Refused(f"{option} {file} would replace an evalset", hint="Give it another path")
    if file.is_symlink() and not file.exists():
        raise Refused(f"{option} {file}: it is a link to a file that does not exist")
    if not folder.is_dir():
        raise Refused(f"{option} {file}: the folder {folder} does not exist", hint="Create it first")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise Refused(f"{option} {file}: no permission to write there")


CONFIG = click.option(
    "--config", "--config-file-path", "config", type=FILE, metavar="FILE", help="Criteria for all evalsets."
)
JSON = click.option(
    "--json",
    metavar="FILE|-",
    callback=_checked_json,
    help="Write the report to FILE. With -, standard output gets the report and nothing else.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Write one JSON object to standard output.")
REMOTE_PYTHON = click.option(
    "--remote-python", metavar="PATH", default="", help="Python interpreter of agents on the workers."
)
ENV = click.option(
    "--env", metavar="NAME", multiple=True, help="Variable that agents get on other machines. Can be repeated."
)
JUNIT = click.option(
    "--junit", type=FILE, metavar="FILE", callback=checked_file("--junit"), help="Write JUnit XML to FILE."
)
PLAIN = click.option("--plain", is_flag=True, help="Print one line for each case, even on a terminal.")
DETAILED = click.option(
    "--print-detailed-results", "detailed", is_flag=True, help="Print each conversation and verdict at the end."
)
ALLOW_NOT_EVALUATED = click.option(
    "--allow-not-evaluated", is_flag=True, help="Leave out criteria that cannot be judged here."
)
MAX_JUDGE_CALLS = click.option("--max-judge-calls", type=int, metavar="N", help="Stop asking judges after N calls.")
ALL_VOTES = click.option(
    "--all-votes", is_flag=True, help="Ask judges for every vote, not only until the verdict is certain."
)
NO_CACHE = click.option("--no-cache", is_flag=True, help="Ask judges again and ignore their cached answers.")


def cases(verb: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option `--case`. `verb` says what is done with the case, such as `Run`."""
    help_text = f"{verb} only this case. Can be repeated."
    return click.option("--case", "cases", multiple=True, metavar="ID", help=help_text)


def python(help_text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option `--python`, which refuses a file that is not executable."""
    return click.option("--python", type=FILE, metavar="PATH", callback=_checked_python, help=help_text)


def project_state(root: Path, explicit: Path | None) -> Path:
    """Return the state folder of the project in `root`, and warn if it is not trusted."""
    from workbench.files.folders import state_dir, untrusted_root, untrusted_text

    state = state_dir(root, explicit)
    if untrusted_root(state):
        warn("; ".join(untrusted_text(root)))
    return state


def known_runs(words: Sequence[str], explicit: Path | None) -> Path:
    """Return the state folder of the current project, after checking that all runs exist.

    Raises:
        UsageFaultError: one of `words` names no run.
    """
    from workbench.files.project_root import find_root
    from workbench.store.history.run_names import find_run

    here = Path.cwd()
    state = project_state(find_root(here), explicit)
    for word in words:
        find_run(word, state, here)
    return state


def state_dir(help_text: str = "Folder for runs.  [default: .workbench in the root]") -> Callable[[Any], Any]:
    """Return the option `--state-dir`, which refuses a file that is not a folder."""
    return click.option("--state-dir", type=FILE, metavar="DIR", callback=_checked_folder, help=help_text)


STATE_DIR = state_dir()

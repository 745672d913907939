"""The command `export`: write a run in a format for other people or programs."""

import codecs
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, warn, write_line, write_pieces
from workbench.files.file_access import replace_pieces
from workbench.files.plugins import OWN, BrokenExtensionError, installed
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.exporting.exporter import ExportedRun, Exporter, Pieces

_DESCRIPTION = """Export a run to share it.

\b
RUN    an ID, the start of one, `last`, `baseline`, a JSON report, or a
       result file of ADK or agents-cli
"""


def _known(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if name not in OWN["exporters"] and name not in _names():
        raise click.BadParameter(f"{name!r} is not one of {', '.join(_names())}.")
    return name


def _names() -> list[str]:
    return [one.name for one in installed().extensions if one.point == "exporters"]


class _ExportCommand(click.Command):
    """The command `export`; its help also lists the formats."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from workbench.exporting.exporter import EXPORTERS

        with formatter.section("Formats"):
            formatter.write_dl([(one.name, one_line(one.summary)) for one in EXPORTERS.values()])


@common.command(
    "export", _DESCRIPTION, "Export a run as HTML, Markdown, CSV, JSON, JUnit or ADK's result file.", cls=_ExportCommand
)
@click.argument("words", metavar="RUN", nargs=-1)
@click.option("--format", "form", metavar="NAME", callback=_known, required=True, help="One of the formats below.")
@common.output("FILE", "File to write; - is standard output, the default.")
@common.STATE_DIR
def export_command(words: tuple[str, ...], form: str, output: Path | None, state_dir: Path | None) -> int:
    """Export the run and return the exit code."""
    if len(words) != 1:
        raise Refused(f"name one run, not {len(words)}", try_help="agent-workbench export")
    from workbench.exporting.exporter import EXPORTERS

    state = common.known_runs(words, state_dir)
    exporter = _exporter(form)
    run = _read(words[0], state)
    if output == common.STANDARD_OUTPUT:
        output = None
    try:
        _write(exporter.files(run), output, is_folder=exporter.many_files)
    except Refused:
        raise
    except OSError as error:
        raise Refused(f"-o {output or '-'}: {error.strerror or type(error).__name__}") from None
    except Exception as error:
        if form in OWN["exporters"]:
            raise
        package = EXPORTERS.extension(form).package
        raise Refused(f"--format {form} of {package} failed: {type(error).__name__}: {error}") from error
    return 2 if has_failed() else 0


def _exporter(name: str) -> "Exporter":
    from workbench.exporting.exporter import EXPORTERS

    try:
        exporter = EXPORTERS.load(name)
    except BrokenExtensionError as error:
        raise Refused(str(error), hint="`agent-workbench check` lists broken extensions") from None
    if missing := exporter.missing():
        from workbench.worker.missing import package_command

        raise Refused(
            f"--format {name} needs {' and '.join(missing)}",
            hint=package_command(sys.executable, " ".join(missing)),
        )
    return exporter


def _read(word: str, state: Path) -> "ExportedRun":
    """Read the run that `word` names."""
    from workbench.cli.following import user_settings
    from workbench.events.events import Noticed, RunStarted
    from workbench.exporting.exporter import ExportedRun
    from workbench.store.history.reading import read_run_events
    from workbench.store.history.run_names import find_run
    from workbench.store.history.stored_events import is_reading_problem
    from workbench.store.store import Store

    store, versions = Store(), dict[str, Any]()
    file = find_run(word, state, Path.cwd())
    for event in read_run_events(word, state, Path.cwd()):
        store.apply(event)
        if isinstance(event, Noticed) and is_reading_problem(event, file):
            warn(event.message)
        elif isinstance(event, RunStarted):
            versions = event.versions
    return ExportedRun(store, versions, user_settings().prices, state, warn)


def _write(files: "Mapping[str, Pieces]", output: Path | None, *, is_folder: bool) -> None:
    """Write files to the file or folder `output`, or to standard output if it is None.

    If `is_folder`, an `output` that does not exist and has no suffix is created as a folder.
    """
    if not files:
        raise Refused("the run has no cases, so this format has nothing to write")
    if output is not None and is_folder and not output.suffix and not output.exists():
        output.mkdir(parents=True)
    if output is not None and output.is_dir():
        for name, content in files.items():
            replace_pieces(output / name, content)
            write_line(sys.stderr, f"written: {one_line(str(output / name))}")
        return
    if len(files) != 1:
        raise Refused(f"this format writes {counted(len(files), 'file')}", hint="Name a folder with -o FOLDER")
    (content,) = files.values()
    if output is not None:
        common.check_writable("-o", output)
        replace_pieces(output, content)
        return
    # A byte order mark belongs in files, not in a stream.
    write_pieces(sys.stdout, codecs.iterdecode(content, "utf-8-sig", "replace"))

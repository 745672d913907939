"""The command `export`: a run in a form that can be handed on."""

import codecs
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from workbench.cli import common_options as common
from workbench.cli.common_options import FILE
from workbench.cli.refusal import Refused, check_state_dir
from workbench.cli.spelling import CONTEXT
from workbench.cli.streams import has_failed, write_line, write_pieces
from workbench.counting import counted
from workbench.text import one_line

if TYPE_CHECKING:
    from workbench.exporting.besides import Besides
    from workbench.store import Store

Pieces: TypeAlias = Iterable[bytes]
"""The content of a file, which need not fit into memory as a whole."""
_FORMATS = ("html", "md", "csv", "json", "junit", "adk")
_DESCRIPTION = """Writes a run in a form that can be handed on.

\b
RUN    an id, the beginning of one, `last`, `baseline`, a JSON report, a result
       file of ADK, or the folder of a run
html   one page with everything: no script, no network
md     what did not pass and why, for a pull request
csv    a line for each criterion of each case
json   the report that `run --json` writes
junit  JUnit XML
adk    ADK's own result file, one an evalset; with several, -o names a folder
"""


@click.command(
    "export",
    help=_DESCRIPTION,
    short_help="A run as HTML, Markdown, CSV, JSON, JUnit or ADK's result file.",
    options_metavar="[OPTIONS]",
    context_settings=CONTEXT,
)
@click.argument("words", metavar="RUN", nargs=-1)
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="The form.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Where it goes.  [default: standard output]")
@common.STATE_DIR
def export_command(words: tuple[str, ...], form: str, output: Path | None, state_dir: Path | None) -> int:
    """Writes the run; the exit code."""
    if len(words) != 1:
        raise Refused(f"one run is exported, not {len(words)}", try_help="agent-workbench export")
    check_state_dir(state_dir)
    from workbench.cli.early_refusal import refuse_runs

    refuse_runs(words, state_dir)
    store, versions = _read(words[0], state_dir)
    try:
        _write(_files(form, store, versions, state_dir), output)
    except OSError as error:
        raise Refused(f"-o {output}: {error.strerror or type(error).__name__}") from None
    return 2 if has_failed(sys.stdout) else 0


def _read(word: str, state_dir: Path | None) -> "tuple[Store, dict[str, Any]]":
    """The run, and the versions that it ran with, as far as that is known."""
    from workbench.agents.targets import find_root
    from workbench.events import Noticed, RunStarted
    from workbench.history import state_dir as places
    from workbench.history.report_events import kept_events
    from workbench.store import Store

    here = Path.cwd()
    store, versions = Store(), dict[str, Any]()
    for event in kept_events(word, places.state_dir(find_root(here), state_dir), here):
        store.apply(event)
        if isinstance(event, Noticed) and (" left out" in event.message or " of the journal " in event.message):
            write_line(sys.stderr, f"warning: {one_line(event.message, limit=1000)}")
        elif isinstance(event, RunStarted):
            versions = event.versions
    return store, versions


def _files(form: str, store: "Store", versions: dict[str, Any], state_dir: Path | None) -> "dict[str, Pieces]":
    """What is to be written, by file name."""
    if form == "adk":
        from workbench.exporting.adk import build_adk

        return {name: (content,) for name, content in build_adk(store, versions.get("google-adk")).items()}
    ending = "xml" if form == "junit" else form
    # A report may call its run anything.
    name = re.sub(r"[^\w.-]", "_", store.run.run_id).lstrip(".") or "run"
    return {f"{name}.{ending}": _builder(form, state_dir)(store)}


def _builder(form: str, state_dir: Path | None) -> "Callable[[Store], Pieces]":
    if form == "html":
        from workbench.cli.following import read_prices
        from workbench.exporting.html import build_html

        prices = read_prices()

        return lambda store: (build_html(store, _besides(store, state_dir), prices),)
    if form == "junit":
        from workbench.exporting.junit import junit_pieces

        return junit_pieces
    if form == "json":
        from workbench.cli.following import read_prices
        from workbench.exporting.report import report_pieces

        prices = read_prices()
        return lambda store: report_pieces(store, prices)
    from workbench.exporting.tables import build_csv, build_markdown

    if form == "csv":
        return lambda store: (build_csv(store),)
    return lambda store: (build_markdown(store, _besides(store, state_dir)),)


def _besides(store: "Store", state_dir: Path | None) -> "Besides":
    from workbench.agents.targets import find_root
    from workbench.exporting.besides import read_besides
    from workbench.history import state_dir as places

    found = read_besides(store, places.state_dir(find_root(Path.cwd()), state_dir))
    for trouble in found.trouble:
        write_line(sys.stderr, f"warning: {one_line(trouble, limit=1000)}")
    return found


def _write(files: Mapping[str, Pieces], output: Path | None) -> None:
    from workbench.atomic import replace_pieces
    from workbench.history.adk_results import ENDING

    # ADK finds its results by their names: what looks like a folder is meant as one.
    if (
        output is not None
        and not output.suffix
        and not output.exists()
        and all(name.endswith(ENDING) for name in files)
    ):
        output.mkdir(parents=True)
    if output is not None and output.is_dir():
        for name, content in files.items():
            replace_pieces(output / name, content)
            write_line(sys.stderr, f"written: {one_line(str(output / name))}")
        return
    if len(files) != 1:
        raise Refused(
            f"the run has {counted(len(files), 'evalset')}, each a file of its own", hint="-o FOLDER holds them"
        )
    (content,) = files.values()
    if output is not None:
        replace_pieces(output, content)
        return
    write_pieces(sys.stdout, _as_text(content))


def _as_text(pieces: "Pieces") -> Iterator[str]:
    # The mark of its encoding is for a file that somebody opens.
    yield from codecs.iterdecode(pieces, "utf-8-sig", "replace")

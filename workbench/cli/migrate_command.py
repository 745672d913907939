"""The command `migrate`: files of ADK's old formats become files of today's schema."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.atomic import replace_content
from workbench.cli.refusal import Refused
from workbench.cli.spelling import CONTEXT
from workbench.cli.streams import has_failed, write_line
from workbench.counting import counted
from workbench.regular_file import read_regular
from workbench.text import plain

if TYPE_CHECKING:
    from workbench.authoring.migrate import Migration

_FILE = click.Path(path_type=Path)
_KEPT = ".old"

_DESCRIPTION = """Makes a file of today's schema of one in an old format: a list of turns (`*.test.json`), or a list
of named cases (`*.evalset.json`).

Without -o the file itself is replaced, and what it was is kept beside it with `.old` at the end of its name. What
today's schema has no place for is named, line by line.
"""


@click.command(
    "migrate",
    help=_DESCRIPTION,
    short_help="Old file formats to today's schema.",
    options_metavar="[OPTIONS]",
    context_settings=CONTEXT,
)
@click.argument("old", type=_FILE, metavar="OLD")
@click.option("--initial-session-file", type=_FILE, metavar="FILE", help="The session of a list of turns.")
@click.option("-o", "--output", "new", type=_FILE, metavar="NEW", help="Where to write; must not exist yet.")
@click.option("--dry-run", is_flag=True, help="Shows the new file on standard output and writes nothing.")
def migrate_command(old: Path, initial_session_file: Path | None, new: Path | None, dry_run: bool) -> int:
    """Migrates one file; the exit code."""
    for named in (old, initial_session_file):
        if named is not None and not named.exists():
            raise Refused(f"{named}: there is no such file", kind="broken_file")
    if new is not None and new.exists():
        raise Refused(f"{new} exists already", hint="Name another file, or delete it first")
    kept = old.with_name(old.name + _KEPT)
    if new is None and not dry_run and kept.exists():
        raise Refused(f"{kept} exists already, and the old file would be kept there", hint="-o NEW names another file")
    from workbench.authoring.migrate import AlreadyCurrentError, migrate
    from workbench.model.evalset import BrokenFileError, read_initial_session
    from workbench.model.opening import name_of

    try:
        session = read_initial_session(initial_session_file) if initial_session_file else None
        migration = migrate(old, name=name_of(new or old), initial_session=session)
    except AlreadyCurrentError as error:
        write_line(sys.stderr, plain(f"{error}: nothing to do"))
        return 0
    except BrokenFileError as error:
        raise Refused(str(error), kind="broken_file") from None
    if dry_run:
        write_line(sys.stdout, migration.text.rstrip("\n"))
        _say(migration, f"would become {new or old}", old)
        return 2 if has_failed(sys.stdout) else 0
    try:
        _write(migration.text.encode("utf-8", "surrogatepass"), old, new, kept)
    except OSError as error:
        raise Refused(f"{error.filename or new or old} cannot be written: {error.strerror or error}") from None
    _say(migration, f"is now {new or old}" + ("" if new else f"; what it was is in {kept.name}"), old)
    return 0


def _write(content: bytes, old: Path, new: Path | None, kept: Path) -> None:
    if new is not None:
        replace_content(new, content)
        return
    replace_content(kept, read_regular(old))
    replace_content(old, content)


def _say(migration: "Migration", what: str, old: Path) -> None:
    cases = counted(migration.cases, "case")
    turns = counted(migration.turns, "turn")
    write_line(sys.stderr, plain(f"{old} ({cases}, {turns}) {what}"))
    for fault in migration.left_behind:
        write_line(sys.stderr, plain(f"not carried over: {fault.sentence()}"))

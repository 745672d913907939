"""The command `migrate`: convert files in ADK's old formats, and conversations that ADK saved, to evalsets."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, write_line
from workbench.files.file_access import read_regular, replace_content
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from workbench.editing.migration import ConvertedConversations, MigratedFile, Migration

_Rows: TypeAlias = list[dict[str, Any]]
"""The result for each file, for `--json`."""

_DESCRIPTION = """Convert files in an old format to the current schema: a list of turns (`*.test.json`), or a list of
named cases (`*.evalset.json`).

\b
OLD  a file, or a folder with old files of any name

The file is replaced, and the old content is saved beside it with `.old` added to the name. Values that have no place in
the current schema are listed.

A saved session, an agent's folder `tests` (for `adk test`), and test cases of `adk conformance` become a new evalset
with recordings, for `run --frozen`. They are not changed.
"""


@common.command("migrate", _DESCRIPTION, "Convert old files to the current schema.")
@click.argument("old", type=common.FILE, metavar="OLD...", nargs=-1, required=True)
@click.option("--initial-session-file", type=common.FILE, metavar="FILE", help="Initial session for lists of turns.")
@common.output("NEW", "Write one converted file here; it must not exist yet. - is standard output.")
@click.option(
    "--dry-run", is_flag=True, help="Write nothing. Print the new file, or list the files that would be converted."
)
@common.AS_JSON
def migrate_command(
    old: tuple[Path, ...], initial_session_file: Path | None, output: Path | None, dry_run: bool, as_json: bool
) -> int:
    """Convert files and folders, and return the exit code."""
    printed = output == common.STANDARD_OUTPUT
    if printed and as_json:
        raise Refused("standard output cannot hold both the new file and the JSON", hint="Name the file with -o NEW")
    new = None if printed else output
    for named in (*old, initial_session_file):
        if named is not None and not named.exists():
            raise Refused(f"{named} does not exist", kind="broken_file")
    if new is not None and new.exists():
        raise Refused(f"{new} already exists", hint="Name another file, or delete it first")
    from workbench.files.evalset import BrokenFileError, read_initial_session

    try:
        session = read_initial_session(initial_session_file) if initial_session_file else None
    except BrokenFileError as error:
        raise Refused(str(error), kind="broken_file") from None
    rows: _Rows | None = [] if as_json else None
    code = _migrate(old, session, new, rows, printed=printed, dry_run=dry_run)
    if rows is not None:
        from workbench.project.command_reports import report_text

        write_line(sys.stdout, report_text("migrate", dry_run=dry_run, files=rows))
    return 2 if has_failed() else code


def _migrate(
    old: tuple[Path, ...],
    session: "dict[str, Any] | None",
    new: Path | None,
    rows: _Rows | None,
    *,
    printed: bool,
    dry_run: bool,
) -> int:
    """Convert what `old` names, and return the exit code. The results are added to `rows`, if given."""
    from workbench.editing.migration import saved_conversations

    conversations, others = saved_conversations(old)
    if conversations:
        if others:
            raise Refused(f"{others[0]} is not a conversation that ADK saved", hint="Convert the others separately")
        if printed:
            raise Refused("standard output cannot hold the recordings", hint="Name the evalset with -o NEW")
        return _convert_conversations(conversations, new, rows, dry_run)
    if len(old) == 1 and not old[0].is_dir():
        in_place = new is None and not printed
        return _migrate_one(old[0], session, new, rows, printed=printed or dry_run, in_place=in_place)
    if printed or new is not None:
        raise Refused("-o is for one file, not for a folder or several files", hint="Name one file, or leave out -o")
    return _migrate_all(old, session, rows, dry_run)


def _migrate_one(
    old: Path, session: "dict[str, Any] | None", new: Path | None, rows: _Rows | None, *, printed: bool, in_place: bool
) -> int:
    """Convert one file and return the exit code. If it is `printed`, no file changes.

    `in_place` is whether the file itself is replaced, or would be without `--dry-run`.

    Raises:
        Refused: The file is broken, or a target already exists.
    """
    from workbench.editing.migration import AlreadyCurrentError, migrate
    from workbench.files.evalset import BrokenFileError
    from workbench.files.opening import name_of

    try:
        migration = migrate(old, name=name_of(new or old), initial_session=session)
    except AlreadyCurrentError as error:
        write_line(sys.stderr, plain(f"{old}: {error}; nothing to do"))
        _add(rows, old, why_not=str(error))
        return 0
    except BrokenFileError as error:
        raise Refused(str(error), kind="broken_file") from None
    kept = _kept(old)
    if in_place and kept.exists():
        raise Refused(f"{kept} already exists, so the old file cannot be saved there", hint="Name a file with -o NEW")
    if printed:
        if rows is None:
            write_line(sys.stdout, migration.text.rstrip("\n"))
        _say(migration, "would be converted in place" if new is None else f"would be written to {new}", old)
        _add(rows, new or old, migration)
        return 2 if has_failed() else 0
    try:
        _write(migration, old, new)
    except OSError as error:
        raise Refused(f"{error.filename or new or old} cannot be written: {error.strerror or error}") from None
    _say(migration, f"is now {new or old}" + ("" if new else f"; the old content is in {kept.name}"), old)
    _add(rows, new or old, migration)
    return 0


def _convert_conversations(paths: list[Path], new: Path | None, rows: _Rows | None, dry_run: bool) -> int:
    """Convert conversations into new evalsets and return the exit code.

    Raises:
        Refused: None can be converted, or a target already exists.
    """
    from workbench.editing.migration import convert_conversations

    try:
        every = convert_conversations(paths, new)
        for converted in every:
            if converted.contents is not None and converted.file.exists():
                raise Refused(f"{converted.file} already exists", hint="Name a new file with -o NEW")
        if not any(converted.contents for converted in every):
            path, why = every[0].failed[0]
            raise Refused(f"{path}: {why}", kind="broken_file")
        for converted in every:
            _keep(converted, rows, dry_run)
    except OSError as error:
        raise Refused(f"{error.filename} cannot be read or written: {error.strerror or error}") from None
    return 2 if dry_run and has_failed() else 0


def _keep(converted: "ConvertedConversations", rows: _Rows | None, dry_run: bool) -> None:
    """Write a new evalset with its recordings, or with `dry_run` print it. Add the result to `rows`, if given."""
    left_out = [f"{path} is left out: {why}" for path, why in converted.failed]
    for line in left_out:
        write_line(sys.stderr, one_line(line, limit=2000))
    if converted.contents is None:
        _add(rows, converted.file, why_not="; ".join(left_out))
        return
    if dry_run and rows is None:
        write_line(sys.stdout, converted.text.rstrip("\n"))
    elif not dry_run:
        for path, (_, content) in converted.contents.items():
            if path != converted.file:
                path.parent.mkdir(exist_ok=True)
            if content is not None:
                replace_content(path, content)
    counts = f"{counted(converted.cases, 'case')}, {counted(converted.turns, 'turn')}"
    frozen = f"{counted(converted.tools, 'tool call')} and {counted(converted.models, 'model call')}"
    done = "would be written" if dry_run else "written"
    write_line(sys.stderr, one_line(f"{converted.file} ({counts}) {done}, {frozen} frozen", limit=2000))
    for note in converted.notes:
        write_line(sys.stderr, one_line(note, limit=2000))
    told: dict[str, Any] = {"cases": converted.cases, "turns": converted.turns}
    told |= {"tool_calls": converted.tools, "model_calls": converted.models}
    _add(rows, converted.file, **told, remarks=[*left_out, *converted.notes])


def _migrate_all(old: tuple[Path, ...], session: "dict[str, Any] | None", rows: _Rows | None, dry_run: bool) -> int:
    """Convert every old file in files and folders, and return 0. A broken file does not stop the others."""
    from workbench.editing.migration import migrate_each

    converted = left = 0
    for item in migrate_each(old, session):
        why_not = item.why_not or _convert(item, dry_run)
        _add(rows, item.file, None if why_not else item.migration, why_not=why_not)
        if why_not:
            write_line(sys.stderr, one_line(f"{item.file} left unchanged: {why_not}", limit=2000))
            left += 1
        else:
            converted += 1
    done = "would be converted" if dry_run else "converted"
    write_line(sys.stderr, f"{counted(converted, 'old file')} {done}" + (f", {left} left unchanged" if left else ""))
    return 0


def _convert(item: "MigratedFile", dry_run: bool) -> str:
    """Convert a file in place, or with `dry_run` print that it would be. Return why that is not possible, or ""."""
    kept = _kept(item.file)
    if kept.exists():
        return f"{kept.name} already exists"
    assert item.migration is not None  # It is None only if there is a reason.
    try:
        if not dry_run:
            _write(item.migration, item.file, None)
    except OSError as error:
        return error.strerror or str(error)
    what = "would be converted" if dry_run else f"converted; the old content is in {kept.name}"
    _say(item.migration, what, item.file)
    return ""


def _add(
    rows: _Rows | None, file: Path, migration: "Migration | None" = None, *, why_not: str = "", **told: Any
) -> None:
    """Add the result for a file to the rows of the JSON, if JSON is wanted."""
    if rows is None:
        return
    if migration is not None:
        remarks = [f"not carried over: {fault.sentence()}" for fault in migration.left_behind]
        told = {"cases": migration.cases, "turns": migration.turns, "remarks": remarks}
    none = {"cases": 0, "turns": 0, "tool_calls": 0, "model_calls": 0, "remarks": []}
    rows.append({"file": str(file), "converted": not why_not, "why_not": why_not, **none, **told})


def _kept(old: Path) -> Path:
    return old.with_name(f"{old.name}.old")


def _write(migration: "Migration", old: Path, new: Path | None) -> None:
    content = migration.text.encode("utf-8", "surrogatepass")
    if new is not None:
        replace_content(new, content)
        return
    replace_content(_kept(old), read_regular(old))
    try:
        replace_content(old, content)
    except OSError:
        _kept(old).unlink()  # Otherwise, the next try would refuse to replace it.
        raise


def _say(migration: "Migration", what: str, old: Path) -> None:
    counts = f"{counted(migration.cases, 'case')}, {counted(migration.turns, 'turn')}"
    write_line(sys.stderr, one_line(f"{old} ({counts}) {what}", limit=2000))
    for fault in migration.left_behind:
        write_line(sys.stderr, one_line(f"not carried over: {fault.sentence()}", limit=2000))

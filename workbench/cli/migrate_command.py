"""The command `migrate`: convert files in ADK's old formats, and conversations that ADK saved, to evalsets."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, write_line
from workbench.files.file_access import read_regular, replace_content
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from workbench.editing.migration import ConvertedConversations, MigratedFile, Migration

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
    migrating = _Migrating(session, new, dry_run=dry_run, printed=printed, as_json=as_json)
    code = migrating.migrate(old)
    if as_json:
        from workbench.project.command_reports import report_text

        write_line(sys.stdout, report_text("migrate", dry_run=dry_run, files=migrating.rows))
    return 2 if has_failed() else code


@dataclass
class _Migrating:
    """One command line. `new` is the file of `-o`. With `printed`, it is standard output."""

    session: dict[str, Any] | None
    new: Path | None
    dry_run: bool
    printed: bool
    as_json: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The result for each file, for `--json`."""

    def migrate(self, old: tuple[Path, ...]) -> int:
        """Convert what `old` names, and return the exit code."""
        from workbench.editing.migration import saved_conversations

        conversations, others = saved_conversations(old)
        if conversations:
            if others:
                raise Refused(f"{others[0]} is not a conversation that ADK saved", hint="Convert the others separately")
            if self.printed:
                raise Refused("standard output cannot hold the recordings", hint="Name the evalset with -o NEW")
            return self._conversations(conversations)
        if len(old) == 1 and not old[0].is_dir():
            return self._one(old[0])
        if self.printed or self.new is not None:
            hint = "Name one file, or leave out -o"
            raise Refused("-o is for one file, not for a folder or several files", hint=hint)
        return self._all(old)

    def _one(self, old: Path) -> int:
        """Convert one file and return the exit code.

        Raises:
            Refused: The file is broken, or a target already exists.
        """
        from workbench.editing.migration import AlreadyCurrentError, migrate
        from workbench.files.evalset import BrokenFileError
        from workbench.files.opening import name_of

        new = self.new
        try:
            migration = migrate(old, name=name_of(new or old), initial_session=self.session)
        except AlreadyCurrentError as error:
            write_line(sys.stderr, plain(f"{old}: {error}; nothing to do"))
            self._add(old, why_not=str(error))
            return 0
        except BrokenFileError as error:
            raise Refused(str(error), kind="broken_file") from None
        kept = _kept(old)
        if new is None and not self.printed and kept.exists():
            message = f"{kept} already exists, so the old file cannot be saved there"
            raise Refused(message, hint="Name a file with -o NEW")
        if self.printed or self.dry_run:
            self._print(migration.text)
            done = "would be converted in place" if new is None else f"would be written to {new}"
        else:
            try:
                _write(migration, old, new)
            except OSError as error:
                raise Refused(f"{error.filename or new or old} cannot be written: {error.strerror or error}") from None
            done = f"is now {new or old}" + ("" if new else f"; the old content is in {kept.name}")
        self._converted(migration, done, old, new or old)
        return 0

    def _conversations(self, paths: list[Path]) -> int:
        """Convert conversations into new evalsets and return the exit code.

        Raises:
            Refused: None can be converted, or a target already exists.
        """
        from workbench.editing.migration import convert_conversations

        try:
            every = convert_conversations(paths, self.new)
            for converted in every:
                if converted.contents is not None and converted.file.exists():
                    raise Refused(f"{converted.file} already exists", hint="Name a new file with -o NEW")
            if not any(converted.contents for converted in every):
                path, why = every[0].failed[0]
                raise Refused(f"{path}: {why}", kind="broken_file")
            for converted in every:
                self._keep(converted)
        except OSError as error:
            raise Refused(f"{error.filename} cannot be read or written: {error.strerror or error}") from None
        return 0

    def _keep(self, converted: "ConvertedConversations") -> None:
        """Write a new evalset with its recordings, or with `dry_run` print it."""
        left_out = [f"{path} is left out: {why}" for path, why in converted.failed]
        _say(*left_out)
        if converted.contents is None:
            self._add(converted.file, why_not="; ".join(left_out))
            return
        if self.dry_run:
            self._print(converted.text)
        else:
            for path, (_, content) in converted.contents.items():
                if path != converted.file:
                    path.parent.mkdir(exist_ok=True)
                if content is not None:
                    replace_content(path, content)
        counts = f"{counted(converted.cases, 'case')}, {counted(converted.turns, 'turn')}"
        frozen = f"{counted(converted.tools, 'tool call')} and {counted(converted.models, 'model call')}"
        done = "would be written" if self.dry_run else "written"
        _say(f"{converted.file} ({counts}) {done}, {frozen} frozen", *converted.notes)
        told: dict[str, Any] = {"cases": converted.cases, "turns": converted.turns}
        told |= {"tool_calls": converted.tools, "model_calls": converted.models}
        self._add(converted.file, **told, remarks=[*left_out, *converted.notes])

    def _all(self, old: tuple[Path, ...]) -> int:
        """Convert every old file in files and folders, and return 0. A broken file does not stop the others."""
        from workbench.editing.migration import migrate_each

        left = 0
        for item in migrate_each(old, self.session):
            if why_not := item.why_not or self._convert(item):
                _say(f"{item.file} left unchanged: {why_not}")
                self._add(item.file, why_not=why_not)
                left += 1
        done = "would be converted" if self.dry_run else "converted"
        converted = counted(len(self.rows) - left, "old file")
        write_line(sys.stderr, f"{converted} {done}" + (f", {left} left unchanged" if left else ""))
        return 0

    def _convert(self, item: "MigratedFile") -> str:
        """Convert a file in place, or with `dry_run` print that it would be. Return why that is not possible, or ""."""
        kept = _kept(item.file)
        if kept.exists():
            return f"{kept.name} already exists"
        assert item.migration is not None  # It is None only if there is a reason.
        try:
            if not self.dry_run:
                _write(item.migration, item.file, None)
        except OSError as error:
            return error.strerror or str(error)
        done = "would be converted" if self.dry_run else f"converted; the old content is in {kept.name}"
        self._converted(item.migration, done, item.file, item.file)
        return ""

    def _converted(self, migration: "Migration", done: str, old: Path, new: Path) -> None:
        """Print and add the result for a file."""
        remarks = [f"not carried over: {fault.sentence()}" for fault in migration.left_behind]
        counts = f"{counted(migration.cases, 'case')}, {counted(migration.turns, 'turn')}"
        _say(f"{old} ({counts}) {done}", *remarks)
        self._add(new, cases=migration.cases, turns=migration.turns, remarks=remarks)

    def _add(self, file: Path, *, why_not: str = "", **told: Any) -> None:
        none = {"cases": 0, "turns": 0, "tool_calls": 0, "model_calls": 0, "remarks": []}
        self.rows.append({"file": str(file), "converted": not why_not, "why_not": why_not, **none, **told})

    def _print(self, text: str) -> None:
        if not self.as_json:
            write_line(sys.stdout, text.rstrip("\n"))


def _say(*lines: str) -> None:
    for line in lines:
        write_line(sys.stderr, one_line(line, limit=2000))


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

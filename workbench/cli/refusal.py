"""Refusals: a wrong command line, or a wrong file or config that it names. Exit code 2; nothing ran."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import click

from workbench.cli.streams import write_file, write_line
from workbench.exporting import SCHEMA
from workbench.files.run_options import UsageFaultError
from workbench.text.safe_text import plain


class Refused(click.ClickException):
    """A request that cannot be carried out.

    `message` is raw text and may have several lines. `try_help` is the command whose help the user should read.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", try_help: str = "", kind: str = "usage") -> None:
        super().__init__(message)
        self.hint = hint
        self.try_help = try_help
        self.kind = kind

    @classmethod
    def from_fault(cls, fault: UsageFaultError) -> Self:
        """Return the refusal for a usage fault, with its message, hint and kind."""
        return cls(str(fault), hint=fault.hint, kind=fault.kind)


def report_refusal(refused: Refused, command: click.Command, name: str, words: Sequence[str]) -> None:
    """Write a refusal to standard error, and in place of every output that the command line names.

    Otherwise, an older report in one of these files could be mistaken for this run's. The command line may be too
    broken to parse. `words` are those after the command's `name`.
    """
    write_line(sys.stderr, f"Error: {plain(refused.message)}")
    if refused.hint:
        write_line(sys.stderr, plain(refused.hint))
    if refused.try_help:
        write_line(sys.stderr, f"See `{refused.try_help} --help`.")
    # Values that are themselves refused, such as the path of an evalset, are left out.
    wanted = command.make_context(name, list(words), resilient_parsing=True, ignore_unknown_options=True).params
    schema = f"agent-workbench/{name}/1" if name == "try" or wanted.get("as_json") else SCHEMA
    json, junit, markdown = (wanted.get(option) for option in ("json", "junit", "markdown"))
    if json == "-" or wanted.get("as_json"):
        write_line(sys.stdout, refusal_json(refused, schema))
    elif json is not None:
        write_file("--json", Path(json), lambda: (f"{refusal_json(refused, schema)}\n".encode("ascii"),))
    if junit is not None and (json is None or Path(json).absolute() != junit.absolute()):
        from workbench.exporting.junit import refusal_pieces  # Slow to import.

        write_file("--junit", junit, lambda: refusal_pieces(refused.message, refused.kind))
    if markdown is not None:
        lines = "".join(f"    {line}\n" for line in plain(refused.message).splitlines())
        write_file("--markdown", markdown, lambda: (f"Nothing was compared:\n\n{lines}".encode(),))


def refusal_json(refused: Refused, schema: str = SCHEMA) -> str:
    """Return the JSON that replaces a report. `workbench.exporting.report_shape.output_schema` describes it.

    Its model is not used here, because importing pydantic would delay the message about a mistyped option.
    """
    error = {"kind": refused.kind, "message": refused.message, "hint": refused.hint, "traceback": ""}
    return json.dumps({"schema": schema, "error": error})

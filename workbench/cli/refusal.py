"""Refusals: a wrong command line, or a wrong file or config that it names. Exit code 2; nothing ran."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Self

import click

from workbench.cli.streams import write_file, write_line
from workbench.exporting import SCHEMA, TRY_SCHEMA
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


@contextmanager
def reported(json: str | None, schema: str = SCHEMA) -> Iterator[None]:
    """On a usage fault, write a refusal to the file that `--json` names, and raise the fault again.

    Otherwise, an older report in this file could be mistaken for this run's.
    """
    try:
        yield
    except UsageFaultError as fault:
        if json not in (None, "-"):
            refused = Refused.from_fault(fault)
            write_file("--json", Path(json), lambda: (f"{refusal_json(refused, schema)}\n".encode("ascii"),))
        raise


def write_refusal(refused: Refused, schema: str = "") -> None:
    """Write a refusal to standard error, and with `schema` also as JSON to standard output."""
    write_line(sys.stderr, f"Error: {plain(refused.message)}")
    if refused.hint:
        write_line(sys.stderr, plain(refused.hint))
    if refused.try_help:
        write_line(sys.stderr, f"See `{refused.try_help} --help`.")
    if schema:
        write_line(sys.stdout, refusal_json(refused, schema))


def refusal_json(refused: Refused, schema: str = SCHEMA) -> str:
    """Return the JSON that replaces a report. `workbench.exporting.report_shape.output_schema` describes it.

    Its model is not used here, because importing pydantic would delay the message about a mistyped option.
    """
    error = {"kind": refused.kind, "message": refused.message, "hint": refused.hint, "traceback": ""}
    return json.dumps({"schema": schema, "error": error})


def json_on_stdout(command: click.Command, name: str, words: Sequence[str]) -> str:
    """Return the schema of the JSON that a command line requests on standard output, or "" if it requests none.

    The command line may be too broken to parse. `words` are those after the command's name.
    """
    option = next((one for one in command.params if "--json" in one.opts), None)
    if isinstance(option, click.Option) and option.is_flag:
        return f"agent-workbench/{name}/1" if "--json" in words else ""
    if "--json=-" not in words and ("--json", "-") not in pairwise(words):
        return ""
    return TRY_SCHEMA if name == "try" else SCHEMA

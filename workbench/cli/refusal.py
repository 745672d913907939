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
        """Convert a fault that the engine found."""
        return cls(str(fault), hint=fault.hint, kind=fault.kind)


@contextmanager
def reported(json: str | None) -> Iterator[None]:
    """Write a refusal to the file that `--json` names, so that an older report there is not mistaken for this run's."""
    try:
        yield
    except UsageFaultError as fault:
        if json not in (None, "-"):
            refused = Refused.from_fault(fault)
            write_file("--json", Path(json), lambda: (f"{refusal_json(refused)}\n".encode("ascii"),))
        raise


def write_refusal(refused: Refused, *, json_on_stdout: bool) -> None:
    """Write a refusal to standard error, and as JSON to standard output if the caller expects JSON there."""
    write_line(sys.stderr, f"Error: {plain(refused.message)}")
    if refused.hint:
        write_line(sys.stderr, plain(refused.hint))
    if refused.try_help:
        write_line(sys.stderr, f"See `{refused.try_help} --help`.")
    if json_on_stdout:
        write_line(sys.stdout, refusal_json(refused))


def refusal_json(refused: Refused) -> str:
    """Return the JSON that replaces a report. `workbench.exporting.report_shape.Refusal` is its model.

    The model is not used here, so that a mistyped option does not wait for pydantic.
    """
    error = {"kind": refused.kind, "message": refused.message, "hint": refused.hint, "traceback": ""}
    return json.dumps({"schema": SCHEMA, "error": error})


def wants_json_on_stdout(words: Sequence[str]) -> bool:
    """Return whether a command line, which may be too broken to parse, contains `--json -`."""
    return "--json=-" in words or ("--json", "-") in pairwise(words)

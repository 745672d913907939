"""How the program says that a command line, a file named on it or a config is wrong: exit code 2, and nothing ran."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Self

import click

from workbench.cli.streams import write_file, write_line
from workbench.engine.plan.run_options import UsageFaultError
from workbench.exporting import SCHEMA
from workbench.text import plain


class Refused(click.ClickException):
    """The request cannot be carried out as it stands. `message` is raw text and may have several lines; `try_help`
    is the command whose help is worth a look."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", try_help: str = "", kind: str = "usage") -> None:
        super().__init__(message)
        self.hint = hint
        self.try_help = try_help
        self.kind = kind

    @classmethod
    def from_fault(cls, fault: UsageFaultError) -> Self:
        """The same refusal, where the engine found what is wrong."""
        return cls(str(fault), hint=fault.hint, kind=fault.kind)


@contextmanager
def reported(json: str | None) -> Iterator[None]:
    """Write a refusal to the file that `--json` names: else an earlier report would be taken for that of this run."""
    try:
        yield
    except UsageFaultError as fault:
        if json not in (None, "-"):
            refused = Refused.from_fault(fault)
            write_file("--json", Path(json), lambda: (f"{refusal_json(refused)}\n".encode("ascii"),))
        raise


def write_refusal(refused: Refused, *, json_on_stdout: bool) -> None:
    """Says it on standard error; where standard output was promised as JSON, as JSON there too."""
    write_line(sys.stderr, f"Error: {plain(refused.message)}")
    if refused.hint:
        write_line(sys.stderr, plain(refused.hint))
    if refused.try_help:
        write_line(sys.stderr, f"`{refused.try_help} --help` shows what there is.")
    if json_on_stdout:
        write_line(sys.stdout, refusal_json(refused))


def refusal_json(refused: Refused) -> str:
    """Return the JSON that takes the place of a report; `workbench.exporting.report_shape.Refusal` is its model.

    It is written without that model, so that a mistyped option need not wait for pydantic.
    """
    error = {"kind": refused.kind, "message": refused.message, "hint": refused.hint, "traceback": ""}
    return json.dumps({"schema": SCHEMA, "error": error})


def wants_json_on_stdout(words: Sequence[str]) -> bool:
    """Whether `--json -` stands in a command line that may be too broken to be understood otherwise."""
    return "--json=-" in words or ("--json", "-") in pairwise(words)

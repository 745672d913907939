"""The reports of `check --json`, `freeze --json` and `migrate --json`: what each command lists.

Their schemas in `docs/` are generated from the models here (`python -m workbench.project.command_reports check` prints
the one of `check`).
"""

import json
import sys
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from workbench.editing.freezing import Change
from workbench.exporting.report_shape import Count, Part, Words, output_schema


class CheckSummary(Part):
    """Numbers of what was checked and found."""

    files: Count
    cases: Count
    errors: Count
    warnings: Count
    notes: Count


class CheckProblem(Part):
    """A problem in a file."""

    severity: Literal["error", "warning", "note"]
    rule: Words
    file: Words
    """Relative to `root`."""
    line: int | None
    """Counts from 1; null for a file as a whole."""
    column: int | None
    json_path: Words
    message: Words
    hint: Words


class CheckWorker(Part):
    """A worker of a place."""

    name: Words
    usable: bool
    about: Words
    why: Words
    """Why it is not usable, or empty."""
    imported: dict[Words, Words | None]
    """For each agent why it cannot be imported: empty if it can, null if that was not tried."""


class CheckPlace(Part):
    """What `--on` found."""

    place: Words
    address: Words
    encrypted: bool
    files: dict[Words, Count]
    """The files that would travel, with their sizes in bytes."""
    left_out: dict[Words, Words]
    """The files that stay here, with the reasons."""
    variables: list[Words]
    """Names of variables that would travel."""
    needs: dict[Words, Words]
    """Versions of packages that workers need."""
    workers: list[CheckWorker]


class Check(Part):
    """The problems of a project."""

    schema_name: Annotated[Literal["agent-workbench/check/1"], Field(alias="schema")]
    root: Words
    """Absolute path of the folder that the paths are relative to."""
    summary: CheckSummary
    problems: list[CheckProblem]
    place: CheckPlace | None
    """Null without `--on`, and for this machine."""


class FreezeCase(Part):
    """What freezing does to a case."""

    agent: Words
    evalset_file: Words
    eval_set_id: Words
    eval_id: Words
    repeat: int
    change: Change
    file: Words | None
    """Its frozen file, relative to the current folder; null if it is not frozen."""
    tool_calls: Count
    model_calls: Count
    why: Words
    """Why it is not frozen, or empty."""
    remarks: list[Words]


class Freeze(Part):
    """What freezing does to the cases of a run."""

    schema_name: Annotated[Literal["agent-workbench/freeze/1"], Field(alias="schema")]
    dry_run: bool
    """Whether nothing was written."""
    cases: list[FreezeCase]
    pruned: list[Words]
    """Recordings of cases that are gone, relative to the current folder."""


class MigrateFile(Part):
    """What migrating does to a file, or to saved conversations that become one evalset."""

    file: Words
    """The new file. The same as the old one if that is replaced."""
    converted: bool
    why_not: Words
    """Why it is left unchanged, or empty."""
    cases: Count
    turns: Count
    tool_calls: Count
    """Recorded calls of tools, of saved conversations."""
    model_calls: Count
    remarks: list[Words]
    """What has no place in the current schema, and what was left out."""


class Migrate(Part):
    """What migrating does to old files."""

    schema_name: Annotated[Literal["agent-workbench/migrate/1"], Field(alias="schema")]
    dry_run: bool
    """Whether nothing was written."""
    files: list[MigrateFile]


REPORTS: Final[dict[str, type[Part]]] = {"check": Check, "freeze": Freeze, "migrate": Migrate}
"""The models by command."""


def report_text(command: str, **values: Any) -> str:
    """Return the report of a command as one line of JSON in ASCII. `values` are the fields of its model."""
    model = REPORTS[command]
    report = model.model_validate({"schema": f"agent-workbench/{command}/1", **values})
    return json.dumps(report.model_dump(by_alias=True))


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of the output of a command with `--json`."""
    return output_schema(REPORTS[command], f"agent-workbench {command}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(sys.argv[1]), indent=2) + "\n")

"""The report of `status --json`: the last verdict of each case, whether it is stale, and why.

`docs/status.schema.json` is generated from the models here (`python -m workbench.project.status_report` prints it).
"""

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.events.events import CaseStatus
from workbench.exporting.report_shape import Part, Words, output_schema
from workbench.project.last_verdicts import LastVerdict
from workbench.store.inputs import Effect, Input
from workbench.store.judge_details import JudgedBy

SCHEMA = "agent-workbench/status/1"


class ChangedInput(Part):
    """An input that changed since the verdict was made."""

    input: Input
    """The kind of input."""
    name: Words
    """The name of the variable, file or option; empty if the run did not record inputs of this kind."""
    file: Words | None
    """The file with the input, relative to `root`; null if the input is not in a file."""
    effect: Effect
    """The work that the change requires: `run` the agent, `score` the transcript again, or `decide` again on stored
    scores."""


class StatusCase(Part):
    """One case with its last verdict. A file in which no case can be read has one entry with an empty `eval_id`."""

    agent: Words
    """The agent's name; empty if the evalset belongs to none."""
    evalset_file: Words
    """Path relative to `root`, separated by `/`."""
    eval_set_id: Words
    eval_id: Words
    status: CaseStatus | None
    """The last verdict, the worst of the repeats; null without one."""
    run_id: Words | None
    """The run that made the verdict; null without one."""
    stale: bool
    """Whether the verdict was made with other inputs; false without a verdict."""
    frozen: bool
    """Whether recorded answers were replayed."""
    judged_by: JudgedBy | None
    """`function` or `rules`: no language model judged; null if no judge was asked."""
    place: Words | None
    """The machine that the agent ran on; null for this one."""
    unseen: list[Words]
    """Inputs of the agent that `stale` cannot see: child programs, forked processes, sockets, databases, outside
    files, files it changes. Empty without a verdict."""
    changed: list[ChangedInput]
    """The changed inputs that make the verdict stale; empty if it is not stale."""


class Status(Part):
    """The last verdicts of a project."""

    schema_name: Annotated[Literal["agent-workbench/status/1"], Field(alias="schema")]
    root: Words
    """Absolute path of the folder that the paths are relative to."""
    cases: list[StatusCase]
    """The cases, in the order of the files."""


def status_pieces(root: str, verdicts: Iterable[LastVerdict]) -> Iterator[str]:
    """Yield the report as one line of JSON in ASCII, case by case."""
    yield f'{{"schema": {json.dumps(SCHEMA)}, "root": {json.dumps(root)}, "cases": ['
    before = ""
    for verdict in verdicts:
        yield before + json.dumps(_case(verdict).model_dump())
        before = ", "
    yield "]}\n"


def _case(verdict: LastVerdict) -> StatusCase:
    return StatusCase(
        agent=verdict.agent,
        evalset_file=verdict.evalset_file,
        eval_set_id=verdict.eval_set_id,
        eval_id=verdict.eval_id,
        status=verdict.status,
        run_id=verdict.run_id or None,
        stale=bool(verdict.changed),
        frozen=any(verdict.frozen),
        judged_by=verdict.judged_by,
        place=verdict.machine or None,
        unseen=list(verdict.unseen),
        changed=[ChangedInput(**dataclasses.asdict(change)) for change in verdict.changed],
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of `status --json`."""
    return output_schema(Status, "agent-workbench status")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")

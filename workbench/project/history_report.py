"""The report of `history --json`: all stored runs, newest first.

`docs/history.schema.json` is generated from the models here (`python -m workbench.project.history_report` prints it).
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.exporting.report_shape import Part, Words, output_schema
from workbench.files.walk import relative_to
from workbench.store.history.summary import ListedRun

SCHEMA = "agent-workbench/history/1"


class RunCounts(Part):
    """The number of executions by status."""

    passed: int
    failed: int
    error: int
    not_evaluated: int
    cancelled: int
    """Includes those that did not end, unless the run is complete (`no_verdict`)."""


class HistoryRun(Part):
    """A stored run, or a result file of another program."""

    run_id: Words
    started: Words
    """UTC, ISO 8601; empty if it is not known."""
    seconds: float | None
    """Duration; null if the run did not end by itself."""
    interrupted: bool
    scored_from: Words
    """The run whose transcripts it scored again, or several, separated by `, `; empty if agents ran."""
    counts: RunCounts
    no_verdict: int
    """The number of executions that did not end."""
    calls: int
    """Calls of the agents' models."""
    tokens: int
    commit: Words | None
    """The git commit; null if it is not known."""
    dirty: bool | None
    """Whether files differed from the commit."""
    agents: list[Words]
    files: list[Words]
    """The evalsets, relative to `root`."""
    by_function: bool
    """Whether a function judged anything."""
    other_criteria: bool
    """Whether criteria were changed for this run only."""
    injected: bool
    """Whether faults were injected into calls."""
    fork: Words
    """The run that it forks; empty if it forks none."""
    frozen: int
    """The number of executions that were replayed."""
    kept_in: Words
    """The nested state folder that has the run, relative to `root`; empty for the project's own."""
    baseline: bool
    adk: bool
    """Whether another program made it."""
    made_by: Words | None
    """`adk` or `agents-cli`; null for our runs."""
    file: Words | None
    """The result file of another program, relative to `root`; null for our runs."""


class History(Part):
    """The stored runs of a project."""

    schema_name: Annotated[Literal["agent-workbench/history/1"], Field(alias="schema")]
    root: Words
    """Absolute path of the folder that the paths are relative to."""
    runs: list[HistoryRun]
    """The runs, newest first."""


def history_text(root: str, runs: Iterable[tuple[ListedRun, str, bool]]) -> str:
    """Return the report as one line of JSON in ASCII.

    Each run comes with its nested state folder (`kept_in`), and whether it is the baseline.
    """
    told = [_run(run, Path(root), kept_in, is_baseline=is_baseline).model_dump() for run, kept_in, is_baseline in runs]
    return json.dumps({"schema": SCHEMA, "root": root, "runs": told})


def _run(run: ListedRun, root: Path, kept_in: str, *, is_baseline: bool) -> HistoryRun:
    return HistoryRun(
        run_id=run.run_id,
        started=run.started,
        seconds=run.seconds,
        interrupted=run.interrupted,
        scored_from=run.scored_from,
        counts=RunCounts(**run.counts),
        no_verdict=run.no_verdict,
        calls=run.calls,
        tokens=run.tokens,
        commit=run.commit or None,
        dirty=run.dirty,
        agents=list(run.agents),
        files=list(run.files),
        by_function=run.by_function,
        other_criteria=run.other_criteria,
        injected=run.injected,
        fork=run.fork,
        frozen=run.frozen,
        kept_in=kept_in,
        baseline=is_baseline,
        adk=run.adk,
        made_by=run.made_by or None,
        file=relative_to(run.file, root) if run.adk else None,
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of `history --json`."""
    return output_schema(History, "agent-workbench history")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")

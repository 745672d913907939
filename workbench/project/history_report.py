"""The report of `history --json`: all stored runs, newest first.

`docs/history.schema.json` is generated from the models here (`python -m workbench.project.history_report` prints it).
"""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.exporting.report_shape import Part, Words, output_schema
from workbench.store.history.summary import ListEntry

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


def history_text(root: str, runs: Iterable[tuple[ListEntry, bool]]) -> str:
    """Return the report as one line of JSON in ASCII. Each run comes with whether it is the baseline."""
    told = [_run(entry, is_baseline=is_baseline).model_dump() for entry, is_baseline in runs]
    return json.dumps({"schema": SCHEMA, "root": root, "runs": told})


def _run(entry: Mapping[str, Any], *, is_baseline: bool) -> HistoryRun:
    is_others, commit, dirty = bool(entry.get("adk")), entry.get("commit"), entry.get("dirty")
    return HistoryRun(
        run_id=entry["run_id"],
        started=entry.get("started") or "",
        seconds=entry.get("seconds"),
        interrupted=bool(entry.get("interrupted")),
        scored_from=entry.get("scored_from") or "",
        counts=RunCounts(**entry["counts"]),
        no_verdict=entry.get("no_verdict") or 0,
        calls=entry.get("calls") or 0,
        tokens=entry.get("tokens") or 0,
        commit=commit if isinstance(commit, str) and commit else None,
        dirty=dirty if isinstance(dirty, bool) else None,
        agents=entry.get("agents") or [],
        files=entry.get("files") or [],
        by_function=bool(entry.get("by_function")),
        other_criteria=bool(entry.get("other_criteria")),
        injected=bool(entry.get("injected")),
        fork=entry.get("fork") or "",
        frozen=entry.get("frozen") or 0,
        kept_in=entry.get("kept_in") or "",
        baseline=is_baseline,
        adk=is_others,
        made_by=(entry.get("made_by") or "adk") if is_others else None,
        file=entry.get("file") if is_others else None,
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of `history --json`."""
    return output_schema(History, "agent-workbench history")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")

"""Past results of one case, without reading the other cases of its runs."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from workbench.database.database import Connection, database
from workbench.database.runs import ExecutionRow, executions_of_case, run_starts
from workbench.history.ages import ages
from workbench.history.execution_rows import rows_from
from workbench.history.summary import Row, Summary, has_verdict

Name: TypeAlias = tuple[str, str, str, str]
"""A case without its repeat: agent, evalset_file, eval_set_id, eval_id."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that decided the case. `rows` are its executions with a verdict, in the order of repeats."""

    run_id: str
    started: str
    rows: tuple[Row, ...]


def past_runs(state: Path, name: Name, most: int) -> tuple[PastRun, ...]:
    """Return the newest `most` runs with a verdict for a case, newest first. Call it in a thread.

    Damaged executions are left out.

    Raises:
        OSError: the database cannot be read.
    """

    def ask(connection: Connection) -> tuple[list[ExecutionRow], dict[int, tuple[str, str]]]:
        rows = executions_of_case(connection, name[1], name[3])
        return rows, run_starts(connection, {row.run for row in rows})

    executions, starts = database(state).read(ask) or ([], {})
    of_run: dict[int, list[ExecutionRow]] = {}
    for row in executions:
        if row.is_whole and row.run in starts:
            of_run.setdefault(row.run, []).append(row)
    age = ages()
    newest = sorted(of_run, key=lambda run: age(*starts[run]), reverse=True)
    found: list[PastRun] = []
    for run in newest:
        rows = tuple(row for row in _read(of_run[run]) if has_verdict(row) and tuple(row["ref"][:4]) == name)
        if rows and len(found) < most:
            found.append(PastRun(*starts[run], rows))
    return tuple(found)


def _read(stored: list[ExecutionRow]) -> list[Row]:
    summary = Summary()
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
        rows_from(summary, stored)
    return list(summary.rows.values())

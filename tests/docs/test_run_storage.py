"""The page about storage: its queries answer questions about real runs, and its picture has every table."""

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.stores import ANSWER_PASSED, CRASH, FAILED, PASSED, TRAJECTORY_FAILED, case_events
from workbench.events.event_json import as_line
from workbench.events.events import Event, PlannedCase, RunFinished, RunStarted
from workbench.store.database.database import database
from workbench.store.database.opening import TABLES
from workbench.store.history.run_writer import RunWriter

PAGE = (Path(__file__).parents[2] / "docs/run-storage.md").read_text("utf-8")
QUERIES = {
    query.partition("\n")[0].removeprefix("-- "): query for query in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder with three runs of two cases on two days and commits."""
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    for number, (first, second) in enumerate([("passed", "failed"), ("failed", "failed"), ("passed", "error")]):
        began = now - timedelta(days=2 - number)
        run_id = f"{began:%Y-%m-%dT%H-%M-%S}-{number:04}"
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in (PASSED, FAILED))
        scored = {"passed": [ANSWER_PASSED], "failed": [TRAJECTORY_FAILED]}
        events: list[Event] = [RunStarted(run_id, "/root", f"{began:%Y-%m-%dT%H:%M:%SZ}", planned)]
        for ref, status in ((PASSED, first), (FAILED, second)):
            error = CRASH if status == "error" else None
            events += case_events(ref, status, scored.get(status, ()), error)  # type: ignore[arg-type]
        events.append(RunFinished(3.0, git={"commit": "ab" if number < 2 else "cd", "dirty": False}))
        writer = RunWriter.open(tmp_path, run_id)
        writer.write(map(as_line, events), sync=False)
        writer.close()
    database(tmp_path).close()
    return tmp_path


def test_page_has_five_queries() -> None:
    assert list(QUERIES) == [
        "cost per day",
        "slowest cases",
        "flaky cases of the last month",
        "failures by cause",
        "pass rate per commit",
    ]


@pytest.mark.parametrize("name", QUERIES)
def test_query_answers_its_question(state: Path, name: str) -> None:
    with closing(sqlite3.connect(f"file:{state}/runs.db?mode=ro", uri=True)) as connection:
        rows = connection.execute(QUERIES[name]).fetchall()
    expected: dict[str, Callable[[], bool]] = {
        "cost per day": lambda: [row[1] for row in rows] == [0.0001] * 3,
        "slowest cases": lambda: sorted(row[2:] for row in rows) == [(1.5, 2), (1.5, 3)],
        "flaky cases of the last month": lambda: [row[1:] for row in rows] == [(PASSED.eval_id, 2, 3)],
        "failures by cause": lambda: sum(row[1] for row in rows) == 4 and all(row[0] for row in rows),
        "pass rate per commit": lambda: rows == [("ab", 0.25, 4), ("cd", 1.0, 1)],
    }
    assert expected[name](), rows


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the program sqlite3 is not installed")
@pytest.mark.parametrize("name", QUERIES)
def test_query_runs_in_the_sqlite3_program(state: Path, name: str) -> None:
    words = ["sqlite3", "-readonly", str(state / "runs.db")]
    done = subprocess.run(words, input=QUERIES[name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_json_each_yields_a_row_for_each_score(state: Path) -> None:
    with closing(sqlite3.connect(state / "runs.db")) as connection:
        rows = connection.execute(
            "SELECT key, json_extract(value, '$[0]'), json_extract(value, '$[2]') FROM execution, json_each(scores)"
            " ORDER BY execution.id"
        ).fetchall()
    assert rows[0] == ("response_match_score", ANSWER_PASSED.score, "passed")
    assert len(rows) == 5


def test_diagram_of_the_database_has_every_table() -> None:
    picture = PAGE[PAGE.index("## Tables") :].split("```")[1]
    assert [name for name in TABLES if name not in picture] == []

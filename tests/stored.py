"""The database of a state folder, looked at and damaged by tests."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any


def sql(state: Path, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Execute a statement in the database of a state folder."""
    with closing(sqlite3.connect(state / "runs.db", 10, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()

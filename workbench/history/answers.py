"""Model answers stored while a run is incomplete: `STATE/runs/RUN_ID/answers.jsonl`.

The processes of cases write them, one checked line each (`workbench.agents.worker.answer_file`). Only resuming the run
reads them. They are deleted when the run is complete.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.agents.worker.checked import HEAD
from workbench.engine.plan.answers import Answer, read
from workbench.events import CaseRef
from workbench.history.checked import read_checked
from workbench.state_folder import delete_stored, reading

FILE_NAME = "answers.jsonl"


def read_answers(folder: Path) -> dict[CaseRef, list[Answer]]:
    """Return the readable answers of a run by case."""
    return read(_lines(folder / FILE_NAME))


def forget_answers(folder: Path) -> None:
    """Delete the stored answers of a run."""
    with contextlib.suppress(OSError):
        delete_stored(folder / FILE_NAME, missing_ok=True)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with reading(path) as file:
            for line in file:
                with contextlib.suppress(ValueError, RecursionError):
                    # If a process was killed in the middle of a line, the next line continues on it.
                    yield read_checked(line[max(0, line.rfind(HEAD)) :])
    except OSError:
        return

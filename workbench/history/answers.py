"""Answers of models on disk, beside the journal of a run that has not come to its end, a checked line each:
`STATE/runs/RUN_ID/answers.jsonl`. The processes of cases write them (`workbench.agents.worker.answer_file`). Nothing
but resuming the run reads them; they go when it is complete."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.agents.worker.checked import HEAD
from workbench.engine.plan.answers import Answer, read
from workbench.events import CaseRef
from workbench.history.checked import read_checked

FILE_NAME = "answers.jsonl"


def read_answers(folder: Path) -> dict[CaseRef, list[Answer]]:
    """What the file of a run holds, as far as it can be read."""
    return read(_lines(folder / FILE_NAME))


def forget_answers(folder: Path) -> None:
    """None of them is needed any more."""
    with contextlib.suppress(OSError):
        (folder / FILE_NAME).unlink(missing_ok=True)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for line in file:
                with contextlib.suppress(ValueError, RecursionError):
                    # Where a process was killed in the middle of a line, the next one begins behind it.
                    yield read_checked(line[max(0, line.rfind(HEAD)) :])
    except OSError:
        return

"""Journals changed on purpose."""

import json
from collections.abc import Iterable

from workbench.history.checked import read_checked
from workbench.history.journal_lines import event_line


def renumbered(lines: Iterable[bytes]) -> list[bytes]:
    """Number the lines of a journal again, with a new head, as if no other lines had been written."""
    head, *events = lines
    return [head, *(_numbered(line, number) for number, line in enumerate(events, 2))]


def without_numbers(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines of a journal without numbers, as older versions wrote it."""
    _, *events = lines
    head = event_line('{"schema": "agent-workbench/journal/1", "run_id": "x"}', None)
    return [head, *(_numbered(line, None) for line in events)]


def _numbered(line: bytes, number: int | None) -> bytes:
    data = read_checked(line)
    del data["line"]
    return event_line(json.dumps(data), number)

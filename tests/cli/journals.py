"""Journals changed on purpose."""

import json
from collections.abc import Iterable

from workbench.history.checked import read_checked
from workbench.history.journal_lines import event_line


def renumbered(lines: Iterable[bytes]) -> list[bytes]:
    """The lines of a journal as if no others had ever been written, a head first: nothing is missing."""
    head, *events = lines
    return [head, *(_numbered(line, number) for number, line in enumerate(events, 2))]


def without_numbers(lines: Iterable[bytes]) -> list[bytes]:
    """The lines of a journal as versions wrote it that did not number them."""
    _, *events = lines
    head = event_line('{"schema": "agent-workbench/journal/1", "run_id": "x"}', None)
    return [head, *(_numbered(line, None) for line in events)]


def _numbered(line: bytes, number: int | None) -> bytes:
    data = read_checked(line)
    del data["line"]
    return event_line(json.dumps(data), number)

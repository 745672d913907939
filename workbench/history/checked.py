"""Reads lines of `workbench.agents.worker.checked`, which tell whether they are still what was written."""

import json
import zlib
from typing import Any

from workbench.agents.worker.checked import HEAD, MIDDLE, TAIL

_CHECKSUM = 8


def read_checked(line: bytes) -> dict[str, Any]:
    """What a line holds.

    Raises:
        ValueError: it is not what was written.
    """
    if not line.endswith(b"\n"):
        raise ValueError("it is cut off")
    body = line[:-1]
    start = len(HEAD) + _CHECKSUM + len(MIDDLE)
    if not (body.startswith(HEAD) and body[start - len(MIDDLE) : start] == MIDDLE and body.endswith(TAIL)):
        raise ValueError("it has not the form of a line")
    encoded = body[start : -len(TAIL)]
    if b"%08x" % zlib.crc32(encoded) != body[len(HEAD) : len(HEAD) + _CHECKSUM]:
        raise ValueError("its checksum differs")
    data = json.loads(encoded)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    return data

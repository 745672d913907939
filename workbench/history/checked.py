"""Lines with a checksum (`workbench.agents.worker.checked`): reading them, and writing them in pieces."""

import json
import zlib
from collections.abc import Iterable
from typing import Any, BinaryIO

from workbench.agents.worker.checked import HEAD, MIDDLE, TAIL

_CHECKSUM = 8


def write_checked(file: BinaryIO, pieces: Iterable[str]) -> None:
    """Write a JSON object that comes in pieces of ASCII as the first line of a file.

    Raises:
        OSError: the file cannot be written.
    """
    checksum = 0
    file.write(HEAD + b"?" * _CHECKSUM + MIDDLE)
    for piece in pieces:
        data = piece.encode("ascii")
        checksum = zlib.crc32(data, checksum)
        file.write(data)
    file.write(TAIL + b"\n")
    file.seek(len(HEAD))
    file.write(b"%08x" % checksum)


def read_checked(line: bytes) -> dict[str, Any]:
    """Return the object in a line.

    Raises:
        ValueError: the line was changed or cut.
    """
    return read_object(checked_content(line))


def checked_content(line: bytes) -> bytes:
    """Return the JSON text of the object in a line, without parsing it. Raises ValueError, as `read_checked`."""
    if not line.endswith(b"\n"):
        raise ValueError("it is incomplete")
    body = line[:-1]
    start = len(HEAD) + _CHECKSUM + len(MIDDLE)
    if not (body.startswith(HEAD) and body[start - len(MIDDLE) : start] == MIDDLE and body.endswith(TAIL)):
        raise ValueError("it has no checksum")
    encoded = body[start : -len(TAIL)]
    if b"%08x" % zlib.crc32(encoded) != body[len(HEAD) : len(HEAD) + _CHECKSUM]:
        raise ValueError("its checksum is wrong")
    return encoded


def read_object(text: bytes) -> dict[str, Any]:
    """Return the object that a JSON text holds. Raises ValueError, as `read_checked`."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data

"""Lines that tell whether they are still what was written: `{"crc32": "<8 hex digits>", "data": …}`."""

import json
import zlib
from typing import Any

HEAD = b'{"crc32": "'
_MIDDLE = b'", "data": '
_TAIL = b"}"
_CHECKSUM = 8


def checked_line(data: str) -> bytes:
    """The line that holds `data`, a JSON object in ASCII. The checksum is taken over its bytes as they stand there."""
    encoded = data.encode("ascii")
    return b"".join((HEAD, b"%08x" % zlib.crc32(encoded), _MIDDLE, encoded, _TAIL, b"\n"))


def read_checked(line: bytes) -> dict[str, Any]:
    """What a line holds.

    Raises:
        ValueError: it is not what was written.
    """
    if not line.endswith(b"\n"):
        raise ValueError("it is cut off")
    body = line[:-1]
    start = len(HEAD) + _CHECKSUM + len(_MIDDLE)
    if not (body.startswith(HEAD) and body[start - len(_MIDDLE) : start] == _MIDDLE and body.endswith(_TAIL)):
        raise ValueError("it has not the form of a line")
    encoded = body[start : -len(_TAIL)]
    if b"%08x" % zlib.crc32(encoded) != body[len(HEAD) : len(HEAD) + _CHECKSUM]:
        raise ValueError("its checksum differs")
    data = json.loads(encoded)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    return data

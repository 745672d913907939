"""Lines that tell whether they are still what was written: `{"crc32": "<8 hex digits>", "data": …}`. All that a run
leaves on disk has this form, also what the process of a case writes itself."""

from __future__ import annotations

import zlib

HEAD = b'{"crc32": "'
MIDDLE = b'", "data": '
TAIL = b"}"


def checked_line(data: str) -> bytes:
    """The line that holds `data`, a JSON object in ASCII. The checksum is taken over its bytes as they stand there."""
    encoded = data.encode("ascii")
    return b"".join((HEAD, b"%08x" % zlib.crc32(encoded), MIDDLE, encoded, TAIL, b"\n"))

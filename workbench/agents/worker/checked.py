"""Lines with a checksum: `{"crc32": "<8 hex digits>", "data": …}`.

All files of a run on disk have this form, including those that a case process writes itself.
"""

from __future__ import annotations

import zlib

HEAD = b'{"crc32": "'
MIDDLE = b'", "data": '
TAIL = b"}"


def checked_line(data: str) -> bytes:
    """Return the line that holds `data`, a JSON object in ASCII. The checksum covers exactly these bytes."""
    encoded = data.encode("ascii")
    return b"".join((HEAD, b"%08x" % zlib.crc32(encoded), MIDDLE, encoded, TAIL, b"\n"))

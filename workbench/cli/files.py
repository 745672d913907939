"""Writing what the user asked for beside what they already have."""

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Writes `data` so that a reader sees the old file or the new one, never half of it. A symbolic link is
    followed; a pipe or a device is written to as it is.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full; the old file is untouched.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise

"""Writing a file so that whoever reads it sees the old content or the new one."""

import os
import tempfile
from pathlib import Path


def replace_content(file: Path, content: bytes) -> None:
    """Writes `content` into a new file beside `file` and puts it in its place, with the same permissions; folders are
    made. A link stays a link: its target is replaced.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        if file.exists():
            Path(temporary).chmod(file.stat().st_mode & 0o777)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise

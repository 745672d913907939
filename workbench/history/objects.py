"""File contents by digest, each stored once however many runs used it: `STATE/objects/ab/cdef…`."""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Collection, Mapping
from pathlib import Path

_RECENT = 3600.0
_DIGEST = re.compile(r"[0-9a-f]{8,128}")


def objects_dir(state: Path) -> Path:
    """Return the folder of the contents in a state folder."""
    return state / "objects"


def keep_objects(state: Path, contents: Mapping[str, bytes]) -> None:
    """Store the contents that are missing, readable by their owner only.

    Errors are ignored: a run without a content is compared without it.
    """
    for digest, content in contents.items():
        path = _path(state, digest)
        if path is None:
            continue
        with contextlib.suppress(OSError):
            if path.exists():
                os.utime(path)  # Protects it from `drop_objects` while this run is in progress.
                continue
            objects_dir(state).mkdir(mode=0o700, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
            try:
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(content)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)  # On a full disk.


def read_object(state: Path, digest: str) -> bytes | None:
    """Return the content with this digest, or None if it is not stored."""
    path = _path(state, digest)
    try:
        return None if path is None else path.read_bytes()
    except OSError:
        return None


def drop_objects(state: Path, used: Collection[str]) -> int:
    """Delete contents that no run uses, and return how many.

    Contents stored or reused within the last hour stay: a run in progress may not have named them yet.
    """
    dropped, recent = 0, time.time() - _RECENT
    for path in objects_dir(state).glob("*/*"):
        if path.parent.name + path.name not in used:
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < recent:
                    path.unlink()
                    dropped += 1
    return dropped


def _path(state: Path, digest: str) -> Path | None:
    # A journal may be damaged or forged, so a digest must not lead out of the folder.
    if not _DIGEST.fullmatch(digest):
        return None
    return objects_dir(state) / digest[:2] / digest[2:]

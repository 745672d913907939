"""File contents by digest, each stored once however many runs used it: `STATE/objects/ab/cdef…`."""

import contextlib
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from workbench.state_folder import (
    delete_stored,
    listed,
    make_stored_folder,
    read_stored,
    replace_stored,
    stored_folders,
    touch_stored,
)

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
            if path.is_file():
                touch_stored(path)  # Protects it from `drop_objects` while this run is in progress.
                continue
            make_stored_folder(path.parent)
            replace_stored(path, content, sync=False)


def read_object(state: Path, digest: str) -> bytes | None:
    """Return the content with this digest, or None if it is not stored."""
    path = _path(state, digest)
    try:
        return None if path is None else read_stored(path)
    except OSError:
        return None


def drop_objects(state: Path, used: Collection[str]) -> int:
    """Delete contents that no run uses, and return how many.

    Contents stored or reused within the last hour stay: a run in progress may not have named them yet.
    """
    dropped, recent = 0, time.time() - _RECENT
    for name in stored_folders(objects_dir(state)):
        folder = objects_dir(state) / name
        with contextlib.suppress(OSError):
            for item in listed(folder):
                if name + item.name not in used and item.stat(follow_symlinks=False).st_mtime < recent:
                    delete_stored(folder / item.name)
                    dropped += 1
    return dropped


def _path(state: Path, digest: str) -> Path | None:
    # A journal may be damaged or forged, so a digest must not lead out of the folder.
    if not _DIGEST.fullmatch(digest):
        return None
    return objects_dir(state) / digest[:2] / digest[2:]

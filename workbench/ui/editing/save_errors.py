"""Messages for errors while writing a file. They say how to continue."""

import errno

from workbench.authoring.saving import ChangedOnDiskError
from workbench.model.json_edit import EditError
from workbench.text import one_line

_WAYS_OUT = {
    errno.EACCES: "permission denied: change the permissions, then save again",
    errno.EPERM: "permission denied: change the permissions, then save again",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full: free some space, then save again",
    errno.EDQUOT: "your disk quota is used up: free some space, then save again",
    errno.ENOENT: "its folder no longer exists",
    errno.EISDIR: "a folder has the name of the file",
    errno.ELOOP: "the file is a link to itself",
}


def save_error_message(error: Exception) -> str:
    """Return a safe message of one line: first the reason and what to do, then the file."""
    if isinstance(error, ChangedOnDiskError):
        what = "deleted" if error.theirs is None else "changed"
        return one_line(f"not saved: {error.file.name} was {what} on disk meanwhile")
    if isinstance(error, EditError):
        return one_line(str(error))
    if not isinstance(error, OSError):
        return one_line(f"not saved: {error}")
    way_out = _WAYS_OUT.get(error.errno or 0, error.strerror or str(error))
    name = str(error.filename or "").rpartition("/")[2]
    return one_line(f"not saved: {way_out}" + (f" ({name})" if name else ""))

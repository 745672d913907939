"""What went wrong in writing a file, in words that say what to do."""

import errno

from workbench.authoring.saving import ChangedOnDiskError
from workbench.model.json_edit import EditError
from workbench.text import one_line

_WAYS_OUT = {
    errno.EACCES: "you may not write there: change the permissions, then save again",
    errno.EPERM: "you may not write there: change the permissions, then save again",
    errno.EROFS: "the file system is read-only: the file cannot be changed where it is",
    errno.ENOSPC: "the disk is full: make room, then save again",
    errno.EDQUOT: "your quota is used up: make room, then save again",
    errno.ENOENT: "its folder is not there any more",
    errno.EISDIR: "a folder stands where the file should be",
    errno.ELOOP: "it is a link that leads back to itself",
}


def in_words(error: Exception) -> str:
    """One safe line: the way out first, then which file."""
    if isinstance(error, ChangedOnDiskError):
        what = "deleted" if error.theirs is None else "changed"
        return one_line(f"not written: {error.file.name} was {what} by somebody else meanwhile")
    if isinstance(error, EditError):
        return one_line(str(error))
    if not isinstance(error, OSError):
        return one_line(f"not saved: {error}")
    way_out = _WAYS_OUT.get(error.errno or 0, error.strerror or str(error))
    name = str(error.filename or "").rpartition("/")[2]
    return one_line(f"not saved: {way_out}" + (f" ({name})" if name else ""))

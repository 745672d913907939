"""A lock on the journal that is being written.

The system releases the lock when the process ends, however it ends.
"""

import fcntl
import os
from pathlib import Path

from workbench.state_folder import open_stored


def lock_journal(descriptor: int) -> bool:
    """Lock an open journal until it is closed. Return False if another process has locked it.

    On file systems without locks, a journal counts as locked.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def is_being_written(path: Path) -> bool:
    """Return whether a process has this journal locked for writing."""
    try:
        descriptor = open_stored(path)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False

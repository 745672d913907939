"""Who is writing a run: a lock on its journal, which ends with the process that took it, however that ends."""

import fcntl
import os
from pathlib import Path


def take_hold(descriptor: int) -> bool:
    """Marks an open journal as being written, until it is closed; False if another process writes it. Where the file
    system knows no locks, nobody can tell, and it is taken."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def is_written(path: Path) -> bool:
    """Whether somebody is writing this journal at the moment."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
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

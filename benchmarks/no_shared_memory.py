"""A program without shared memory of files, as on file systems that do not have it.

    python -m benchmarks.no_shared_memory MODULE [ARGUMENT ...]

A filter of system calls lets each shared mapping of a file fail, in this process and its children (Linux on x86-64).
"""

import ctypes
import errno
import platform
import runpy
import struct
import sys

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _IS, _HAS_BIT, _END = 0x20, 0x15, 0x45, 0x06
_X86_64, _MMAP, _MAP_SHARED, _NO_FILE = 0xC000003E, 9, 1, 0xFFFFFFFF
_ALLOWED, _ERROR = 0x7FFF0000, 0x00050000
_STEPS = (
    # Operation, value, steps to skip if it is so, and if not. Offsets are those of `struct seccomp_data`.
    (_LOAD, 4, 0, 0),
    (_IS, _X86_64, 0, 6),
    (_LOAD, 0, 0, 0),
    (_IS, _MMAP, 0, 4),
    (_LOAD, 40, 0, 0),
    (_HAS_BIT, _MAP_SHARED, 0, 2),
    (_LOAD, 48, 0, 0),
    (_IS, _NO_FILE, 0, 1),
    (_END, _ALLOWED, 0, 0),
    (_END, _ERROR | errno.ENODEV, 0, 0),
)


def is_possible() -> bool:
    """Return whether this machine can do it."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def forbid_shared_memory() -> None:
    """Let each shared mapping of a file fail from now on.

    Raises:
        OSError: the kernel refuses the filter.
    """
    steps = b"".join(struct.pack("HBBI", what, yes, no, value) for what, value, yes, no in _STEPS)
    buffer = ctypes.create_string_buffer(steps)
    program = struct.pack("HxxxxxxP", len(_STEPS), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refuses the filter")


if __name__ == "__main__":
    forbid_shared_memory()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)

"""Which file systems tell of changes that other machines make: those of the network do not, and are polled."""

import os
import re
from collections.abc import Collection
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SERVERS = (
    "nfs",
    "nfs4",
    "cifs",
    "smb2",
    "smb3",
    "smbfs",
    "ncpfs",
    "davfs",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "gpfs",
)
_HOSTS = ("9p", "drvfs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs", "grpcfuse")
"""What a virtual machine shares with its host: 9p is also WSL's /mnt, virtiofs also Docker Desktop's."""
_REMOTE = frozenset((*_SERVERS, *_HOSTS))
_LOCAL_FUSE = frozenset(
    ("fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs")
)
"""Programs that show a disk of this machine, through which everybody goes who writes to it: the kernel knows."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def remote_kind(folders: Collection[Path], mounts: Path = _MOUNTS) -> str:
    """The kind of the file system (`nfs4`) of the first of the folders of whose changes nobody may tell; "" if there is
    none, as far as the system says."""
    found = _mounted(mounts)
    if not any(_is_remote(kind) for kind in found.values()):
        return ""
    for folder in folders:
        kind = _kind_of(os.path.realpath(folder), found)
        if _is_remote(kind):
            return kind
    return ""


def _is_remote(kind: str) -> bool:
    # Who is behind a program's file system, and who else writes there, its name mostly does not tell.
    return kind in _REMOTE or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


def _mounted(mounts: Path) -> dict[str, str]:
    """Where file systems are mounted → their kind; of several at one place the last, which hides the others."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        words = left.split()
        if len(words) >= 5 and right.split():
            found[_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4])] = right.split()[0]
    return found


def _kind_of(folder: str, mounted: dict[str, str]) -> str:
    """The kind of what is mounted at the folder, or nearest above it."""
    while folder not in mounted:
        above = os.path.dirname(folder)  # noqa: PTH120 (a string, for each of many folders)
        if above == folder:
            return ""
        folder = above
    return mounted[folder]

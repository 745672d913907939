"""Which file systems tell of changes that other machines make: those of the network do not, and are polled."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = "nfs nfs4 cifs smb2 smb3 smbfs 9p afs ceph glusterfs lustre vboxsf vmhgfs prl_fs"
_FUSE = "sshfs vmhgfs-fuse glusterfs s3fs rclone gcsfuse"
_REMOTE = frozenset([*_NETWORK.split(), *(f"fuse.{kind}" for kind in _FUSE.split())])


def needs_polling(folder: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether `folder` lies on a file system of the network, as far as the system says."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    found, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        words = left.split()
        if len(words) < 5 or not right:
            continue
        point = words[4].replace("\\040", " ")
        if folder.is_relative_to(point) and len(point) >= found:
            found, kind = len(point), right.split()[0]
    return kind in _REMOTE

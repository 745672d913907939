"""The user's folders, and a project's state folder: whether it is trusted, and access to it without links.

A container often runs as an unknown user without HOME. Python's own functions raise there.

A `.workbench` that came with a clone or an archive may show verdicts that were never made here. It is used only if this
user made it on this machine, or names it with `--state-dir`. Its file `id` has a random value. Under this value, the
user's own state folder records the path and the time of creation. So a moved folder is still used, and a copy is not
used while the original exists.

Even a trusted folder may get links with the next `git pull`. So all files in it are opened with these functions, which
follow no link anywhere in the path and open only regular files. They take paths that `state_dir` returns, and paths
below them.
"""

import contextlib
import errno
import json
import os
import os.path
import re
import secrets
import shlex
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from workbench.files.file_access import check_regular, read_regular, replace_content

_PACKAGE = Path(__file__).parents[1]
SAMPLES = "sample_agents"
_NOT_COPIED = frozenset({"__pycache__", ".workbench", ".adk", ".venv"})


def home() -> Path | None:
    """Return the user's home folder, or None if there is none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def expanded(path: str | Path) -> Path:
    """Return `path` with a leading `~` or `~user` expanded, or unchanged if that user is unknown."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - raises nothing


def shortened(path: Path) -> str:
    """Return `path` as text, with `~` for the user's home folder."""
    own = home()
    if own is None or not path.is_relative_to(own):
        return str(path)
    return "/".join(["~", *path.relative_to(own).parts])


def settings_folder() -> Path:
    """Return the folder of the settings, which may not exist. Users without a home use the machine's settings."""
    import platformdirs  # Only few need it.

    try:
        return Path(platformdirs.user_config_dir("agent-workbench", appauthor=False))
    except RuntimeError:
        return Path(platformdirs.site_config_dir("agent-workbench", appauthor=False))


def user_state_folder() -> Path | None:
    """Return the user's own folder for the workbench's state, which may not exist, or None without a home."""
    import platformdirs  # Only few need it.

    try:
        folder = Path(platformdirs.user_state_dir("agent-workbench", appauthor=False))
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def shipped(name: str) -> Path:
    """Return a folder that comes with the program. In a checkout, it is beside the package."""
    own = _PACKAGE / name
    return own if own.is_dir() else _PACKAGE.parent / name


def copy_samples(folder: Path, samples: Path | None = None) -> Path:
    """Copy the sample agents into `folder` and return their new folder. Nothing is overwritten.

    Raises:
        OSError: the new folder exists already, or the samples are not installed, or cannot be copied completely. Then
            nothing is left of the copy.
    """
    # Hardly any start copies the samples.
    import shutil
    import tempfile

    source, target = samples or shipped(SAMPLES), folder / SAMPLES
    if not source.is_dir():
        raise FileNotFoundError(f"the sample agents are not installed: {source} is missing")
    if os.path.lexists(target):
        raise FileExistsError(f"{target} already exists: nothing was copied")
    # Copied under another name first, so that no other program sees a part of them.
    beside = Path(tempfile.mkdtemp(prefix=f".{SAMPLES}-", dir=folder))
    try:
        for file in sorted(source.rglob("*")):
            name = file.relative_to(source)
            if file.is_file() and _NOT_COPIED.isdisjoint(name.parts):
                (beside / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, beside / name)  # Without its mode: installed files may be read-only.
        beside.chmod(folder.stat().st_mode & 0o777)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return target


STATE_FOLDER = ".workbench"
"""The folder in a project's root that holds the workbench's state."""
_NO_STATE = Path(os.devnull)
"""The folder above the state folders of projects whose `.workbench` is not trusted. No file can be below it."""
_ID = "id"
_ID_FORM = re.compile(rb"[0-9a-f]{32}")
_NOTE_LIMIT = 1 << 16
_made_here: set[Path] = set()
"""Folders that this process made but could not record."""
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC
_WALK = _FOLDER | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
_NOT_ANY = getattr(os, "O_NOFOLLOW_ANY", 0)
"""On macOS: refuse a link in any part of a path."""


def state_dir(root: Path, explicit: Path | None = None) -> Path:
    """Return the state folder of `root`: the one that `--state-dir` names, else `.workbench` if it is trusted.

    The path has no links. Without trust, no file can exist at the path (see `untrusted_root`), so everything stays in
    memory. The folder is not created. An empty folder, which marks a root, gets an `id`.
    """
    if explicit is not None:
        return Path(os.path.realpath(explicit))
    folder = _folder_of(root)
    return _NO_STATE.joinpath(*folder.parent.parts[1:]) if why_untrusted(root) else folder


def untrusted_root(state: Path) -> Path | None:
    """Return the root whose `.workbench` is not trusted if `state` is its state folder, else None."""
    return Path("/", state.relative_to(_NO_STATE)) if _NO_STATE in state.parents else None


def why_untrusted(root: Path) -> str:
    """Return why `.workbench` in `root` is not used, or "" if it is used or can be made. If empty, it gets an `id`."""
    folder = _folder_of(root)
    return "" if folder in _made_here or is_trusted(folder) else _why_unusable(folder) or _why_foreign(folder)


def untrusted_text(root: Path) -> tuple[str, str]:
    """Return the message and the hint about an unused `.workbench` in `root`, or ("", "") if it is used."""
    why, folder = why_untrusted(root), _folder_of(root)
    if not why:
        return "", ""
    named = os.access(folder, os.R_OK | os.X_OK) and folder.is_dir()
    hint = f"--state-dir {shlex.quote(str(folder))} uses it anyway" if named else "--state-dir selects another folder"
    return f"{folder} is neither read nor written: {why}", hint


def is_trusted(folder: Path) -> bool:
    """Return whether this user made or trusted `folder` on this machine. The path must have no links.

    A moved folder counts if it no longer exists at its old place. Its new place is then recorded.
    """
    found = None if _why_unusable(folder) else _read_id(folder)
    note = None if found is None else _read_note(found[0])
    if found is None or note is None or note["made"] != found[1]:
        return False
    if note["path"] == str(folder):
        return True
    if _read_id(Path(note["path"])) == found:
        return False  # It is a copy.
    _note(found[0], folder, found[1])
    return True


def can_be_trusted(root: Path) -> bool:
    """Return whether `trust` may succeed: `.workbench` in `root` is a folder of this user, or missing."""
    return not _why_unusable(_folder_of(root))


def trust(root: Path) -> None:
    """Trust `.workbench` in `root` from now on, with a new `id`, because the old one may be known to others.

    Raises:
        OSError: the folder is missing, a link or another user's, or its `id` cannot be replaced.
    """
    folder = _folder_of(root)
    if why := _why_unusable(folder):
        raise OSError(errno.EPERM, why, str(folder))
    delete_stored(folder / _ID, missing_ok=True)
    _make_id(folder)


def make_state_dir(path: Path) -> None:
    """Create a state folder for its owner only, unless it exists.

    An empty folder gets an `id`. A folder without a `.gitignore` gets one that ignores everything in it, unless it is a
    folder with other files that the user named.

    Raises:
        OSError: the folder cannot be created or written.
    """
    make_stored_folder(path)
    names = [entry.name for entry in listed(path)]
    if not names:
        _make_id(path)
    ignore = path / ".gitignore"
    is_own = path.name == STATE_FOLDER or all(name == _ID or name.startswith("runs.") for name in names)
    if is_own and not os.path.lexists(ignore):
        replace_stored(ignore, b"*\n")  # On a full disk, no file is better than an empty one.


def is_forgotten(path: Path) -> bool:
    """Return whether this process made a state folder but could not record it, so later processes will not trust it."""
    return path in _made_here


def _folder_of(root: Path) -> Path:
    return Path(os.path.realpath(root)) / STATE_FOLDER


def _why_unusable(folder: Path) -> str:
    """Return why a folder can never be trusted, or "" if it can, or is missing."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(status.st_mode):
        return "it is a link" if stat.S_ISLNK(status.st_mode) else "it is not a folder"
    return "" if status.st_uid == os.geteuid() else "it belongs to another user"


def _why_foreign(folder: Path) -> str:
    """Return why a usable but unrecorded folder is not trusted, or "" if it is missing or empty.

    An empty one gets an `id`, and is trusted from then on.
    """
    try:
        if next(listed(folder), None) is not None:
            return "you did not create it on this machine"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    with contextlib.suppress(OSError):  # A read-only one stays empty.
        _make_id(folder)
    return ""


def _read_id(folder: Path) -> tuple[str, int] | None:
    """Return the ID of a state folder and its time of creation, or None if it has no valid ID of this user.

    The time distinguishes a moved folder from a clone with a known ID.
    """
    try:
        with reading(folder / _ID) as file:
            status, content = os.fstat(file.fileno()), file.read(100).strip()
    except OSError:
        return None
    if status.st_uid != os.geteuid() or not _ID_FORM.fullmatch(content):
        return None
    return content.decode("ascii"), int(status.st_mtime)


def _make_id(folder: Path) -> None:
    """Give the folder an ID unless it has one, and record it."""
    name, made = secrets.token_hex(16), int(time.time())
    noted = _note(name, folder, made)  # First, because another process may look at any time.
    try:
        descriptor = open_stored(folder / _ID, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:  # Another process was faster.
        if (note := _note_file(name)) is not None:
            with contextlib.suppress(OSError):
                note.unlink()
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(name.encode("ascii") + b"\n")
        file.flush()
        os.utime(file.fileno(), (made, made))
    if not noted:
        _made_here.add(folder)


def _note_file(name: str) -> Path | None:
    known = user_state_folder()
    return None if known is None else known / "state-folders" / name


def _read_note(name: str) -> dict[str, Any] | None:
    try:
        file = _note_file(name)
        note = None if file is None else json.loads(read_regular(file, _NOTE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) and isinstance(note.get("path"), str) and "made" in note else None


def _note(name: str, folder: Path, made: int) -> bool:
    """Record the path of the folder with this ID. Return whether that succeeded."""
    file = _note_file(name)
    try:
        if file is None:
            return False
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_content(file, json.dumps({"path": str(folder), "made": made}).encode("ascii"), mode=0o600)
    except OSError:
        return False
    return True


# Access to files and folders in a state folder


def open_stored(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor. A new file is readable by its owner only.

    Raises:
        OSError: the file cannot be opened, a part of the path is a link, or it is not a regular file.
    """
    with _inside(path) as folder:
        # Opening a device can do something, so look first. With O_NONBLOCK, a pipe that comes between does not wait.
        with contextlib.suppress(FileNotFoundError):
            check_regular(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))
        more = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path.name, flags | more, 0o600, dir_fd=folder)
    try:
        check_regular(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def reading(path: Path) -> BinaryIO:
    """Open a file for reading in pieces. Raises OSError as `open_stored` does."""
    return os.fdopen(open_stored(path), "rb")


def replace_stored(path: Path, content: bytes) -> None:
    """Replace a file, link or device completely, or leave the old one.

    Raises:
        OSError: the folder is missing, reached through a link, or not writable, or the disk is full.
    """
    draft = f".{path.name[:100]}.{secrets.token_hex(4)}.tmp"
    with _inside(path) as folder:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(content)
            os.rename(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def delete_stored(path: Path, *, missing_ok: bool = False) -> None:
    """Delete a file, or a link itself.

    Raises:
        OSError: the file cannot be deleted, or is missing without `missing_ok`.
    """
    try:
        with _inside(path) as folder:
            os.unlink(path.name, dir_fd=folder)
    except FileNotFoundError:
        if not missing_ok:
            raise


def make_stored_folder(path: Path, *, exist_ok: bool = True) -> None:
    """Create a folder and its missing parents, accessible to the owner only.

    Raises:
        OSError: the folder cannot be created, or exists without `exist_ok`.
    """
    try:
        with _inside(path) as folder:
            os.mkdir(path.name, 0o700, dir_fd=folder)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_stored_folder(path.parent)
        make_stored_folder(path, exist_ok=exist_ok)
    except FileExistsError:
        if not exist_ok:
            raise


def listed(path: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder. Call an entry's `stat` before you take the next entry.

    Raises:
        OSError: the folder cannot be read, or a part of the path is a link.
    """
    with _inside(path) as above:
        descriptor = os.open(path.name, os.O_RDONLY | _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    try:
        with os.scandir(descriptor) as items:
            yield from items
    finally:
        os.close(descriptor)


def stored_folders(path: Path) -> list[str]:
    """Return the names of the subfolders, or [] if the folder is missing, a link or unreadable."""
    try:
        return [item.name for item in listed(path) if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []


@contextlib.contextmanager
def _inside(path: Path) -> Iterator[int]:
    """Yield a descriptor of the folder that contains `path`. No link is followed. Errors name the whole path."""
    descriptor = -1
    try:
        if _NOT_ANY:
            descriptor = os.open(path.parent, os.O_RDONLY | _FOLDER | _NOT_ANY)
        else:
            descriptor = os.open(path.anchor, _WALK)
            for name in path.parts[1:-1]:
                outer, descriptor = descriptor, os.open(name, _WALK, dir_fd=descriptor)
                os.close(outer)
        yield descriptor
    except OSError as error:
        error.filename = str(path)
        if error.errno == errno.ELOOP:
            error.strerror = "it is a link"
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)

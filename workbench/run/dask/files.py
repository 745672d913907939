"""The files, package versions and variables that this machine sends to a cluster, and the states of its machines.

Nothing is sent before the user has confirmed it.
"""

import contextlib
import fnmatch
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from workbench.agents.environment import python_version
from workbench.files.file_access import open_regular, read_regular, replace_content, size_words
from workbench.files.folders import settings_folder
from workbench.files.git import run_git
from workbench.files.run_options import UsageFaultError
from workbench.files.walk import up_to
from workbench.freshness.agent_inputs import packages_bundle
from workbench.run.plan.plan import AgentSetting
from workbench.text.counting import counted

_GIT_SECONDS = 60
_LARGEST: Final = 512 * 1024 * 1024
"""Maximum size of all files together, in bytes."""
_MOST = 50_000
_FEWER = "Untrack or move away files that the agents do not need"
_SEARCHED = 1024 * 1024
"""Number of bytes at the start of a file that are searched for a key."""
_KEY_NAMES = (
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore"),
    *("*.kdbx", "*.ppk", "*.gpg", "*.pgp", "*.env", "netrc", "_netrc", "credentials", "credentials.json"),
    *("credentials.*", "application_default_credentials*", "service[-_]account*.json", "*serviceaccount*.json"),
    *("client_secret*.json", "kubeconfig", "secrets.*", "*.secret", "htpasswd", "pgpass"),
    *("token", "*.token", "*token.json", "*token.txt", "*token.pickle"),
    *("apikey", "api_key", "api[-_]key.*", "apikey.*", "password.txt", "passwords.txt", "*.env.*", "env.local"),
)
_KEY_CONTENT = re.compile(
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File|aws_secret_access_key\s*="
    rb"|\"type\"\s*:\s*\"(?:service_account|authorized_user|external_account)\""
    rb"|\b(?:gh[opsur]_\w{36}|github_pat_\w{22}|glpat-[\w-]{20}|xox[abprs]-[\w-]{10}|hf_\w{34}"
    rb"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|sk-(?:ant|proj)-[\w-]{20})"
)
"""Texts that mark private keys and credentials, and tokens with a known form."""
_NOT_SEARCHED = (".py", ".md")
"""Suffixes of files that mention keys more often than they contain one."""
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
_ENVIRONMENT_FILE = ".env"
_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_LARGEST_PROJECT_FILE = 1 << 20
_VERSION = re.compile(r"\d[\w.+!-]*")
_CONFIRMED = "places.json"
_LARGEST_LIST = 1 << 20


class FilesError(Exception):
    """Files that cannot be sent to other machines. The message says why."""


@dataclass(frozen=True)
class Files:
    """The files of the project in `root` that travel.

    `sizes` are their sizes by path relative to the root, with links as 0. `left_out` maps files that stay here to the
    reasons. Untracked files that agents have read are among them.
    """

    root: Path
    sizes: Mapping[str, int]
    left_out: Mapping[str, str]
    signature: tuple[object, ...] = field(default=(), repr=False)
    """A value that changes whenever a file may have changed."""

    @property
    def size(self) -> int:
        """Size of all files together, in bytes."""
        return sum(self.sizes.values())


def files_of_agents(
    root: Path, settings: Mapping[str, AgentSetting], read_before: Mapping[str, Collection[Path]]
) -> Files:
    """Return the files that travel for agents of the project in `root`: for variants, those of their copies.

    The arguments and errors are those of `find_files`.
    """
    copies = {name: setting.root for name, setting in settings.items() if setting.original is not None}
    if not copies:
        folders = {name: setting.agent.folder for name, setting in settings.items()}
        return find_files(root, folders, read_before)
    return find_files(next(iter(settings.values())).base, copies, {}, whole=True)


def find_files(
    root: Path, agents: Mapping[str, Path], read_before: Mapping[str, Collection[Path]], *, whole: bool = False
) -> Files:
    """Return the files that travel for `agents` (name → folder). Call it in a thread.

    `read_before` are the files that each agent read in earlier runs. With `whole`, everything in the folders travels,
    whether or not git tracks it.

    Raises:
        FilesError: the files are too many or too large, an agent has no file that travels, or git cannot list the files
            of a repository.
    """
    sizes: dict[str, int] = {}
    left_out: dict[str, str] = {}
    signature: list[object] = []
    base = os.path.realpath(root)
    folders: dict[str, bool] = {}
    """Folder → whether it exists and is not behind a link."""
    tracked = None if whole else _tracked(root)
    found = _in_folders(root, agents.values(), whole=whole) if tracked is None else tracked
    for name in sorted(set(found)):
        path = root / name
        try:
            status = path.lstat()
        except OSError:
            continue  # Git tracks it, and it was deleted.
        folder = os.path.dirname(name)  # noqa: PTH120 - much faster for many files
        if folder not in folders:
            folders[folder] = os.path.realpath(root / folder) == os.path.normpath(f"{base}/{folder}")
        why = _why_left(path, name, root, status.st_mode) if folders[folder] else "its folder is a link"
        if why:
            left_out[name] = why
            continue
        sizes[name] = 0 if stat.S_ISLNK(status.st_mode) else status.st_size
        signature.append((name, status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode))
    for agent, paths in read_before.items():
        for name in _missing(root, paths, sizes, left_out):
            left_out[name] = f"git does not track it, and {agent} has read it: `git add` it"
    _check(root, sizes, left_out, agents)
    return Files(root, sizes, left_out, tuple(signature))


def _why_left(path: Path, name: str, root: Path, mode: int) -> str:
    """Return why a file stays here, or "" if it travels."""
    if why := _hidden(name):
        return why
    if not _is_text(name):
        return "its name is not UTF-8"
    if stat.S_ISLNK(mode):
        return "" if _stays_inside(path, root) else "it is a link that leads out of the project"
    if stat.S_ISDIR(mode):
        return "it is another git repository"
    return _key(path) if stat.S_ISREG(mode) else "it is not a regular file"


def pack(files: Files, folder: Path) -> tuple[Path, str]:
    """Write the files into a new zip file in `folder`, and return it with its digest. Call it in a thread.

    A file that changes during packing is packed as it was read. Files that no longer exist are left out.

    Raises:
        FilesError: a file cannot be read, or the zip file cannot be written.
    """
    # Imported late: most runs are on this machine, and these take ten milliseconds.
    import tempfile
    import zipfile

    digest = hashlib.sha256()
    number, name = tempfile.mkstemp(".zip", "agent-workbench-", folder)
    try:
        with os.fdopen(number, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
            for path in files.sizes:
                found = _content(files.root / path)
                if found is None:
                    continue
                mode, content = found
                entry = zipfile.ZipInfo(path, _FIXED_TIME)
                entry.external_attr = mode << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                made.writestr(entry, content)
                for part in (path.encode("utf-8"), b"%o" % mode, content):
                    digest.update(b"%d:" % len(part) + part)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        what = f"{error.filename}: " if error.filename else ""
        raise FilesError(f"the project cannot be packed: {what}{error.strerror or error}") from None
    return Path(name), digest.hexdigest()[:32]


def _content(path: Path) -> tuple[int, bytes] | None:
    """Return the mode and content of a file, or None if it does not exist. Data that is added meanwhile is left out."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return stat.S_IFLNK | 0o777, os.fsencode(path.readlink())
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            return stat.S_IFREG | (0o700 if status.st_mode & stat.S_IXUSR else 0o600), file.read(size)
    except FileNotFoundError:
        return None


def _tracked(root: Path) -> Iterator[str] | None:
    """Return the paths that git tracks in `root`, or None if it is in no repository.

    Raises:
        FilesError: it is in a repository, but git cannot list the files.
    """
    listed = run_git(root, "ls-files", "--cached", "-z", seconds=_GIT_SECONDS)
    if listed is None:
        for folder in (root, *root.parents):
            if (folder / ".git").is_file() or os.path.lexists(folder / ".git/HEAD"):
                why = f"`git -C {shlex.quote(str(root))} ls-files` says why"
                raise FilesError(f"only files that git tracks travel, and git cannot list those of {folder}. {why}")
        return None
    names = (os.fsdecode(name) for name in listed.split(b"\0") if name)
    # A damaged index could name files elsewhere.
    return (name for name in names if not name.startswith("/") and not {"", ".", ".."} & set(name.split("/")))


def _in_folders(root: Path, folders: Collection[Path], *, whole: bool) -> Iterator[str]:
    for folder in folders:
        tracked = None if whole else _tracked(folder)
        if tracked is not None:
            yield from (os.path.relpath(folder / name, root) for name in tracked)
            continue
        for base, inner, names in os.walk(folder):
            environments = {name for name in inner if Path(base, name, "pyvenv.cfg").exists()}
            inner[:] = [name for name in inner if name != "__pycache__" and name not in environments]
            links = [name for name in inner if Path(base, name).is_symlink()]
            yield from (os.path.relpath(Path(base, name), root) for name in (*names, *links))


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _hidden(name: str) -> str:
    hidden = next((part for part in name.split("/") if part.startswith(".")), "")
    if not hidden:
        return ""
    if hidden == _ENVIRONMENT_FILE:
        return "its variables travel instead"
    return "it is hidden" if name.endswith(hidden) else f"{hidden} is hidden"


def _key(path: Path) -> str:
    name = path.name.lower()
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in _KEY_NAMES):
        return "its name looks like a key"
    if path.suffix.lower() in _NOT_SEARCHED:
        return ""
    try:
        with open_regular(path) as file:
            return "it looks like a key" if _KEY_CONTENT.search(file.read(_SEARCHED)) else ""
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"


def _stays_inside(path: Path, root: Path) -> bool:
    target = os.readlink(path)  # noqa: PTH115 - the bytes of the link
    if os.path.isabs(target):  # noqa: PTH117 - the root has another path there
        return False
    real, base = os.path.realpath(path), os.path.realpath(root)
    relative = os.path.relpath(real, base)
    return real.startswith(f"{base}/") and not _hidden(relative) and not (os.path.isfile(real) and _key(Path(real)))  # noqa: PTH113


def _missing(root: Path, paths: Collection[Path], sizes: Mapping[str, int], left: Mapping[str, str]) -> Sequence[str]:
    names = (os.path.relpath(path, root) for path in sorted(paths) if path.is_relative_to(root) and path.is_file())
    unknown = (name for name in names if name not in sizes and name not in left)
    return [name for name in unknown if "__pycache__" not in name and not _hidden(name)]


def _check(root: Path, sizes: Mapping[str, int], left: Mapping[str, str], agents: Mapping[str, Path]) -> None:
    """Raise FilesError if a limit is exceeded, or an agent has no file that travels."""
    for name, folder in agents.items():
        relative = os.path.relpath(folder, root)
        if not any(path.startswith(f"{relative}/") or relative == "." for path in sizes):
            why = next((f"{path}: {left[path]}" for path in left if f"{path}/".startswith(f"{relative}/")), "")
            found = f"no file of {name} ({relative}) can travel. {why}"
            raise FilesError(found if why else f"git tracks no file of {name} ({relative}): `git add` it")
    total = sum(sizes.values())
    if len(sizes) > _MOST:
        raise FilesError(f"{counted(len(sizes), 'file')} would travel, and at most {_MOST:,} can. {_FEWER}")
    if total > _LARGEST:
        most = f"{size_words(total)} would travel, and at most {size_words(_LARGEST)} can"
        raise FilesError(f"{most}. The largest file is {max(sizes, key=lambda name: sizes[name])}. {_FEWER}")


def needs_of(settings: Iterable[AgentSetting]) -> dict[str, str]:
    """Return the versions that a worker must have: of `python`, `agent-workbench` and packages. Call it in a thread.

    The packages are google-adk, if an agent uses it, and the project's declared dependencies that are installed here.
    """
    needs = {"agent-workbench": importlib.metadata.version("agent-workbench")}
    for setting in settings:
        version = python_version(setting.interpreter.path)
        if version is not None:
            needs.setdefault("python", f"{version[0]}.{version[1]}")
        installed = packages_bundle(setting.interpreter.path, setting.root).inputs["packages"]
        declared = set(_declared(setting.agent.folder, setting.root))
        if _uses_adk(setting):
            declared.add("google-adk")
        for name in sorted(declared):
            # The version of a package of the project is that of its files.
            if _VERSION.fullmatch(installed.get(name, "")):
                needs.setdefault(name, installed[name])
    return needs


def _uses_adk(setting: AgentSetting) -> bool:
    agent = setting.agent
    try:
        return agent.kind == "yaml" or b"google.adk" in read_regular(agent.definition, _LARGEST_PROJECT_FILE)
    except OSError:
        return False


def _declared(folder: Path, root: Path) -> Iterator[str]:
    """Yield the normalized names of the project's dependencies."""
    import tomllib  # Imported late: most runs are on this machine.

    for above in up_to(folder, root):
        lines: list[str] = []
        with contextlib.suppress(OSError, ValueError):
            lines += read_regular(above / "requirements.txt", _LARGEST_PROJECT_FILE).decode("utf-8").splitlines()
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError, TypeError):
            text = read_regular(above / "pyproject.toml", _LARGEST_PROJECT_FILE).decode("utf-8")
            project = tomllib.loads(text).get("project", {})
            lines += [line for line in project.get("dependencies", ()) if isinstance(line, str)]
        for line in lines:
            if found := _NAME.match(line):
                yield re.sub(r"[-_.]+", "-", found[1]).lower()


@dataclass(frozen=True)
class MachineState:
    """The current state of a machine of a cluster.

    `phase` is `connecting`, `preparing` (it is being probed), `ready`, `lost` or `unusable`. `why` is the reason for
    the last two. For `connecting`, it is the awaited event. For `ready`, it says if the machine does not answer.
    """

    name: str
    phase: Literal["connecting", "preparing", "ready", "lost", "unusable"]
    slots: int
    """Number of cases that it may run at a time."""
    running: int = 0
    lost: int = 0
    """Number of attempts that it has lost in this run."""
    why: str = ""
    about: str = ""
    """Its Python version and operating system as text, or "" if they are not known."""
    done: int = 0
    """Number of cases that it has run in this run."""
    seen: float = 0.0
    """Seconds since its last sign of life."""
    cases: tuple[tuple[str, int], ...] = ()
    """The cases that it runs, with their turns (0: not known)."""


def cleaned_states(states: Sequence[MachineState], clean: Callable[[str], str]) -> Sequence[MachineState]:
    """Return the states with `clean` applied to the reasons, because these come from other machines."""
    return tuple(replace(state, why=clean(state.why)) if state.why else state for state in states)


@dataclass(frozen=True)
class Sending:
    """The files and variables that leave this machine for a place. All texts are raw.

    `place` is the place as the user wrote it, and `address` the address of its scheduler. `sizes` and `left_out` are as
    in `Files`.
    """

    place: str
    address: str
    root: Path
    sizes: Mapping[str, int]
    left_out: Mapping[str, str]
    variables: tuple[str, ...] = field(default=())

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is encrypted."""
        return self.address.startswith("tls://")


class UnconfirmedError(UsageFaultError):
    """A refusal to send anything, because the user has not confirmed that `sending` may leave this machine."""

    def __init__(self, sending: Sending) -> None:
        named = f"{sending.place} ({sending.address})" if sending.place != sending.address else sending.address
        super().__init__(
            f"nothing was sent to {named}: you have not confirmed that this project runs there",
            f"If you trust it, confirm once with --on {sending.place}. To run on this machine, use --on local",
            "config",
        )
        self.sending = sending


def is_confirmed(sending: Sending) -> bool:
    """Return whether the user confirmed this address, root and variables before."""
    return _read().get(str(sending.root), {}).get(sending.address) == sorted(sending.variables)


def confirm(sending: Sending) -> None:
    """Store the user's confirmation. If it cannot be stored, the user is asked again next time."""
    known = _read()
    places = {**known.get(str(sending.root), {}), sending.address: sorted(sending.variables)}
    with contextlib.suppress(OSError):
        folder = settings_folder()
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps({**known, str(sending.root): places}, indent=1) + "\n"
        replace_content(folder / _CONFIRMED, content.encode("ascii"), mode=0o600)


def _read() -> dict[str, dict[str, list[str]]]:
    try:
        found = json.loads(read_regular(settings_folder() / _CONFIRMED, _LARGEST_LIST))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {root: places for root, places in found.items() if isinstance(places, dict)}

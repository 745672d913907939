"""The client's side of a bundle: sends to one host what it lacks, and learns where the project is there."""

import base64
import hashlib
import itertools
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from workbench.agents.channel import Frame
from workbench.places.bundle.contents import Contents
from workbench.places.bundle.installed import normalized
from workbench.places.host.manifest import LINK, PIECE, Entry, encoded
from workbench.places.host.recipe import Recipe
from workbench.places.place import MachineEnvironment
from workbench.regular_file import open_regular

_numbers = itertools.count(1)
"""Each transfer has its own, so that answers to one that was given up are not taken for those to the next."""
WINDOW = 8
"""Number of `file` messages that may be unacknowledged."""
_MOST_PIECES = 1000
_MOST_PACKAGES = 5000
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_VERSION = re.compile(r"[A-Za-z0-9.!+_-]{1,100}")
_ROW = 120
"""Characters of an entry besides its path."""
_ROUNDS = 5
"""Times that a host may ask for contents: first for what it lacks, then for what was damaged."""


class ChangedError(Exception):
    """A file changed after its digest was taken. The text is its path."""


class InvalidAnswerError(ValueError):
    """A host broke the protocol."""


class NotPreparedError(Exception):
    """A machine that cannot use the project. The text says why, `log` has what its tools printed."""

    def __init__(self, why: str, log: str = "") -> None:
        super().__init__(why)
        self.log = log


@dataclass(frozen=True)
class Bundle:
    """What travels: the files, and the recipes of the interpreters. `project` names the project on all machines."""

    contents: Contents
    recipes: tuple[Recipe, ...]
    project: str


@dataclass(frozen=True)
class Unpacked:
    """A project on another machine.

    `root` is its folder there. By the path of an interpreter here, `interpreters` has its path there, `versions` its
    version, `packages` the versions of its packages, and `failed` why it could not be built.
    """

    root: str
    interpreters: Mapping[str, str]
    versions: Mapping[str, str]
    packages: Mapping[str, Mapping[str, str]]
    failed: Mapping[str, str]
    log: str

    @property
    def environments(self) -> dict[Path, MachineEnvironment]:
        """The interpreters there, by their paths here."""
        return {
            Path(here): MachineEnvironment(there, self.versions.get(here, ""), _packages(self.packages.get(here, {})))
            for here, there in self.interpreters.items()
        }


@dataclass
class _File:
    """A file that is being sent in pieces."""

    entry: Entry
    file: BinaryIO
    left: int
    running: "hashlib._Hash" = field(default_factory=hashlib.sha256)


class Sending:
    """One bundle on its way to one host.

    `begin` gives the first messages. Then `next_message` gives messages until it returns None. That is when the window
    is full, when the host has to answer, or at the end. `take` takes the answers. If the host is `known` to have the
    files, only the recipes are sent.
    """

    def __init__(self, bundle: Bundle, *, known: bool = False) -> None:
        self._contents, self._recipes, self._project = bundle.contents, bundle.recipes, bundle.project
        self._number = next(_numbers)
        self._known = known
        self._by_digest = {entry.sha256: entry for entry in bundle.contents.entries}
        self._waiting: deque[Entry] = deque()
        self._open: _File | None = None
        self._handed_out = 0
        self._acknowledged = 0
        self._rounds = 0
        self.unpacked: Unpacked | None = None
        """The result, once the machine is ready."""
        self.sent = 0
        """Bytes of files and manifest that were handed out so far, as they travel."""
        self.needed = 0
        """Bytes of the files that the host asked for."""

    def begin(self) -> Iterator[Frame]:
        """Yield the messages with the names and digests of all files, and the recipes."""
        last = {"last": True, "recipes": [recipe.as_json() for recipe in self._recipes]}
        if self._known:
            yield {**self._manifest(None, 0), **last}
            return
        rows: list[Entry] = []
        size = 0
        for entry in self._contents.entries:
            size += _ROW + len(entry.path)
            rows.append(entry)
            if size >= PIECE:
                yield self._manifest(rows, size)
                rows, size = [], 0
        yield {**self._manifest(rows, size), **last}

    def take(self, frame: Frame) -> None:
        """Take an answer of the host.

        Raises:
            InvalidAnswerError: it is no valid answer.
            NotPreparedError: the machine cannot use the bundle.
        """
        if frame.get("number") != self._number:
            return  # An answer to a bundle that was given up.
        match frame.get("op"):
            case "need":
                self._need(frame.get("files"))
            case "got":
                if self._acknowledged >= self._handed_out:
                    raise InvalidAnswerError("it acknowledged a message that was not sent")
                self._acknowledged += 1
            case "ready":
                self.unpacked = _unpacked(frame, {recipe.interpreter for recipe in self._recipes})
            case "unready":
                why, log = frame.get("why"), frame.get("log")
                raise NotPreparedError(
                    why if isinstance(why, str) and why else "it gave no reason", log if isinstance(log, str) else ""
                )

    def next_message(self) -> Frame | None:
        """Return the next message with contents, or None if there is none now. It reads files: call it in a thread.

        Raises:
            ChangedError: a file is not the one that was announced.
        """
        if self._handed_out - self._acknowledged >= WINDOW:
            return None
        pieces: list[tuple[str, str, bool]] = []
        space = PIECE
        while space > 0 and len(pieces) < _MOST_PIECES and (self._open is not None or self._waiting):
            if self._open is None and pieces and self._waiting[0].size > space:
                break  # A file that fits into one message is not divided.
            sha256, content, is_last = self._piece(space)
            space -= len(content)
            pieces.append((sha256, base64.b64encode(zlib.compress(content, 1)).decode("ascii"), is_last))
        if not pieces:
            return None
        self._handed_out += 1
        self.sent += sum(len(sha256) + len(content) for sha256, content, _ in pieces)
        return {"op": "file", "number": self._number, "pieces": pieces}

    def close(self) -> None:
        """Close the file that is being sent."""
        if self._open is not None:
            self._open.file.close()
            self._open = None

    def _manifest(self, rows: list[Entry] | None, size: int) -> Frame:
        self.sent += size
        named = {"number": self._number, "digest": self._contents.digest, "project": self._project}
        return {"op": "bundle", **named, "manifest": rows, "last": False}

    def _need(self, files: object) -> None:
        self._rounds += 1
        names = files if isinstance(files, list) else [None]
        wanted = [self._by_digest.get(name) if isinstance(name, str) else None for name in names]
        if None in wanted or self._rounds > _ROUNDS or self._waiting or self._open is not None:
            raise InvalidAnswerError("it asked for files that it was not offered")
        self._waiting = deque(entry for entry in wanted if entry is not None)
        self.needed += sum(entry.size for entry in self._waiting)

    def _piece(self, space: int) -> tuple[str, bytes, bool]:
        """Return digest, content and end of the next piece, of at most `space` bytes."""
        if self._open is None:
            entry = self._waiting.popleft()
            if entry.mode == LINK:
                return entry.sha256, self._contents.links[entry.path], True
            self._open = _File(entry, self._opened(entry), entry.size)
        current = self._open
        try:
            content = current.file.read(min(space, current.left))
            current.left -= len(content)
            current.running.update(content)
            is_short = not content and current.left > 0
            is_last = current.left == 0
            if is_last:
                is_short = bool(current.file.read(1)) or current.running.hexdigest() != current.entry.sha256
        except OSError:
            is_short = is_last = True
        if is_short:
            self.close()
            raise ChangedError(current.entry.path)
        if is_last:
            self.close()
        return current.entry.sha256, content, is_last

    def _opened(self, entry: Entry) -> BinaryIO:
        try:
            return open_regular(Path(os.fsdecode(os.fsencode(self._contents.root) + b"/" + encoded(entry.path))))
        except OSError:
            raise ChangedError(entry.path) from None


def _unpacked(frame: Frame, asked: set[str]) -> Unpacked:
    """Return the message `ready`, checked."""
    root, log, packages = frame.get("root"), frame.get("log"), frame.get("packages")
    if not _is_path(root) or not isinstance(log, str):
        raise InvalidAnswerError("it is ready, but named no folder")
    interpreters, versions, failed = (_texts(frame.get(name)) for name in ("interpreters", "versions", "failed"))
    if interpreters.keys() | failed.keys() != asked or not all(map(_is_path, interpreters.values())):
        raise InvalidAnswerError("it named other interpreters than it was asked for")
    if not isinstance(packages, dict):
        raise InvalidAnswerError("it did not name its packages")
    named = {name: _texts(value) for name, value in packages.items()}
    return Unpacked(str(root), interpreters, versions, named, failed, log)


def _packages(told: Mapping[str, str]) -> dict[str, str]:
    """Return the valid ones of the packages that a machine told, with normalized names."""
    valid = ((name, version) for name, version in told.items() if _NAME.fullmatch(name) and _VERSION.fullmatch(version))
    return {normalized(name): version for name, version in itertools.islice(valid, _MOST_PACKAGES)}


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and "\0" not in value


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidAnswerError("it is ready, but its answer is incomplete")
    return value

"""The host's side of a bundle: receives what the machine lacks, unpacks it, and builds the interpreters.

Each message is checked. A client that breaks the protocol gets `unready`, like one whose bundle does not fit on the
disk. No failure here ends the host.
"""

import base64
import binascii
import os
import queue
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from workbench.places.host.cache import Cache
from workbench.places.host.contents import Contents, DamagedContentError, Incoming
from workbench.places.host.in_place import with_packages
from workbench.places.host.manifest import MOST_FILES, PIECE, Entry, ManifestError, manifest_digest, read_manifest
from workbench.places.host.recipe import Recipe, RecipeError
from workbench.places.host.recipes import Builder, BuildError, Environment
from workbench.places.host.roots import Root, take_root

Frame: TypeAlias = dict[str, Any]
_REPAIRS = 2
"""Times that damaged contents are asked for again."""
_MOST_RECIPES = 1000


class InvalidBundleError(ValueError):
    """A message that breaks the protocol."""


@dataclass
class _Bundle:
    """A bundle that arrives under a number of the client.

    `missing` are the sizes of contents that were asked for, by digest.
    """

    number: int
    digest: str
    project: str
    rows: list[Any] = field(default_factory=list)
    entries: tuple[Entry, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)
    incoming: Incoming | None = None
    repairs: int = 0


class Unpacking:
    """Takes the messages `bundle` and `file`, and yields the answers. It blocks, so it has a thread of its own."""

    def __init__(self, cache: Cache, environ: Mapping[str, str], in_use: Callable[[str], bool]) -> None:
        self._cache = cache
        self._in_use = in_use
        self._contents = Contents(cache.contents)
        self._builder = Builder(cache, environ)
        self._bundle: _Bundle | None = None
        self._roots: dict[tuple[str, str], Root] = {}
        """Project and digest → the root that has this bundle."""

    def take(self, frame: Frame) -> Iterator[Frame]:
        """Yield the answers to a message: `need`, `got`, and at the end `ready` or `unready`."""
        bundle, number = self._bundle, frame.get("number")
        try:
            if frame.get("op") == "bundle":
                yield from self._manifest(frame)
            elif bundle is not None and number == bundle.number:
                self._content(bundle, frame.get("pieces"))
                yield {"op": "got", "number": bundle.number}
                if not bundle.missing:
                    yield from self._finish(bundle)
            # Else: a piece of a bundle that failed, and was on its way.
        except (InvalidBundleError, ManifestError, RecipeError) as error:
            yield self._unready(number, f"the bundle is invalid: {error}")
        except BuildError as error:
            yield self._unready(number, str(error), error.log)
        except OSError as error:
            where = os.fsdecode(error.filename or self._cache.folder)
            yield self._unready(number, f"{where}: {error.strerror or error}")
        except Exception as error:
            # Not expected, but the other machines must go on.
            yield self._unready(number, f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        """End what is being built. It may be called from another thread."""
        self._builder.stop()

    def release(self) -> None:
        """Let other processes use the roots. Call it when no agent runs any more."""
        self._drop()
        for root in self._roots.values():
            root.release()
        self._roots.clear()
        self._builder.release()

    def _manifest(self, frame: Frame) -> Iterator[Frame]:
        number, digest, project = frame.get("number"), frame.get("digest"), frame.get("project")
        rows = frame.get("manifest")
        if not (type(number) is int and isinstance(digest, str) and isinstance(project, str)):
            raise InvalidBundleError("it has no number, digest or project")
        if self._bundle is None or self._bundle.number != number or self._bundle.digest != digest:
            self._drop()
            self._bundle = _Bundle(number, digest, project)
        bundle = self._bundle
        if rows is None:
            if (project, digest) not in self._roots:
                raise InvalidBundleError("it has no files, and this machine does not have them")
            bundle.recipes = _recipes(frame.get("recipes"))
            yield from self._build(bundle, self._roots[project, digest])
            return
        if not isinstance(rows, list) or bundle.entries:
            raise InvalidBundleError("it has no files, or twice")
        bundle.rows += rows
        if len(bundle.rows) > MOST_FILES:
            raise InvalidBundleError(f"it has more than {MOST_FILES:,} files")
        if frame.get("last") is not True:
            return
        bundle.entries, bundle.rows = read_manifest(bundle.rows), []
        if manifest_digest(bundle.entries) != digest:
            raise InvalidBundleError("its digest is another one")
        bundle.recipes = _recipes(frame.get("recipes"))
        self._cache.make()
        yield from self._ask(bundle)

    def _ask(self, bundle: _Bundle) -> Iterator[Frame]:
        wanted = {entry.sha256: entry.size for entry in bundle.entries}
        bundle.missing = {sha256: size for sha256, size in wanted.items() if not self._contents.has(sha256, size)}
        yield {"op": "need", "number": bundle.number, "files": list(bundle.missing)}
        if not bundle.missing:
            yield from self._finish(bundle)

    def _content(self, bundle: _Bundle, pieces: Any) -> None:
        """Store pieces: digest of the file, compressed content in base64, and whether it is the last one."""
        if not isinstance(pieces, list):
            raise InvalidBundleError("a message has no pieces")
        space = PIECE
        for item in pieces:
            if not isinstance(item, list) or len(item) != 3:
                raise InvalidBundleError("a piece is no list of digest, content and end")
            sha256, encoded, is_last = item
            content = _decompressed(encoded, space)
            space -= len(content)
            self._add(bundle, sha256, content, is_last=is_last is True)

    def _add(self, bundle: _Bundle, sha256: Any, content: bytes, *, is_last: bool) -> None:
        if not isinstance(sha256, str) or sha256 not in bundle.missing:
            raise InvalidBundleError("a content was sent that is not needed")
        incoming = bundle.incoming
        if incoming is None:
            incoming = bundle.incoming = self._contents.receive(sha256)
        if incoming.sha256 != sha256:
            raise InvalidBundleError("two contents are mixed")
        bundle.missing[sha256] -= len(content)
        if bundle.missing[sha256] < 0:
            raise InvalidBundleError("a content is longer than announced")
        incoming.add(content)
        if is_last:
            if bundle.missing[sha256]:
                raise InvalidBundleError("a content is shorter than announced")
            bundle.incoming = None
            if not incoming.finish():
                raise InvalidBundleError("a content does not have its digest")
            del bundle.missing[sha256]

    def _finish(self, bundle: _Bundle) -> Iterator[Frame]:
        try:
            root = self._root(bundle)
        except DamagedContentError:
            bundle.repairs += 1
            if bundle.repairs > _REPAIRS:
                raise
            self._contents.delete_damaged({entry.sha256 for entry in bundle.entries})
            yield from self._ask(bundle)
            return
        yield from self._build(bundle, root)

    def _root(self, bundle: _Bundle) -> Root:
        """Return a root with the bundle. One that has it already stays as it is, because agents may run in it."""
        key = bundle.project, bundle.digest
        if key not in self._roots:
            for held in [held for held, root in self._roots.items() if not self._in_use(str(root.files))]:
                if held[0] == bundle.project:
                    self._roots.pop(held).release()
            self._roots[key] = take_root(self._cache, bundle.project, bundle.entries, self._contents)
        return self._roots[key]

    def _build(self, bundle: _Bundle, root: Root) -> Iterator[Frame]:
        interpreters: dict[str, str] = {}
        built: dict[str, Environment] = {}
        failed: dict[str, BuildError] = {}
        for recipe in bundle.recipes:
            try:
                found = self._builder.environment(recipe, root.files)
            except BuildError as error:
                failed[recipe.interpreter] = BuildError(f"{recipe.source}: {error}", error.log)
                continue
            built[recipe.interpreter] = found
            interpreters[recipe.interpreter] = with_packages(found, recipe.packages, root.folder, root.files)
        if failed and not built:
            raise next(iter(failed.values()))
        self._bundle = None
        logs = [error.log for error in failed.values()] + [one.log for one in built.values()]
        yield {
            "op": "ready",
            "number": bundle.number,
            "root": str(root.files),
            "interpreters": interpreters,
            "versions": {local: one.version for local, one in built.items()},
            "packages": {local: dict(one.installed) for local, one in built.items()},
            "failed": {local: str(error) for local, error in failed.items()},
            "log": "\n".join(log for log in dict.fromkeys(logs) if log),
        }
        self._cache.clean()

    def _unready(self, number: Any, why: str, log: str = "") -> Frame:
        self._drop()
        return {"op": "unready", "number": number if type(number) is int else 0, "why": why, "log": log}

    def _drop(self) -> None:
        """Forget the bundle that arrives. Its complete contents stay."""
        if self._bundle is not None and self._bundle.incoming is not None:
            self._bundle.incoming.drop()
        self._bundle = None


class Preparing:
    """The bundles of a host process, taken in a thread, so that the host answers meanwhile.

    `send` gets the answers, and `in_use` tells whether agents run in the folder of a root. Both are called in that
    thread.
    """

    def __init__(
        self,
        send: Callable[[Frame], None],
        cache: Cache,
        environ: Mapping[str, str] = os.environ,
        in_use: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._send = send
        self._unpacking = Unpacking(cache, environ, in_use)
        self._waiting: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, frame: Frame) -> None:
        """Take a message `bundle` or `file`. It never blocks."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="bundle", daemon=True)
            self._thread.start()
        self._waiting.put(frame)

    def close(self, seconds: float = 5.0) -> None:
        """End what is being built, wait for the thread, and let other processes use the root.

        Call it when no agent runs any more. After `seconds` the thread is left alone: its locks end with the process.
        """
        self._unpacking.stop()
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(seconds)
            if self._thread.is_alive():
                return
        self._unpacking.release()

    def _work(self) -> None:
        while (frame := self._waiting.get()) is not None:
            for answer in self._unpacking.take(frame):
                self._send(answer)


def _recipes(data: Any) -> tuple[Recipe, ...]:
    if not isinstance(data, list) or len(data) > _MOST_RECIPES:
        raise InvalidBundleError("it has no list of recipes")
    return tuple(map(Recipe.from_json, data))


def _decompressed(encoded: Any, most: int) -> bytes:
    if not isinstance(encoded, str):
        raise InvalidBundleError("a piece is no text")
    try:
        reader = zlib.decompressobj()
        content = reader.decompress(base64.b64decode(encoded, validate=True), most + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise InvalidBundleError("a piece cannot be decoded") from None
    if len(content) > most:
        raise InvalidBundleError("a message has too much content")
    if not reader.eof:
        raise InvalidBundleError("a piece is not complete")
    return content

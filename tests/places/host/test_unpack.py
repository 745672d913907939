import base64
import errno
import hashlib
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.places.host import cache as cache_module
from workbench.places.host.cache import UNUSED_SECONDS, Cache, cache_folder, remove_all
from workbench.places.host.contents import Incoming
from workbench.places.host.drivers import store_drivers
from workbench.places.host.manifest import LINK, PIECE, PLAIN, Entry, manifest_digest
from workbench.places.host.unpack import Preparing, Unpacking

Frame = dict[str, Any]


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _entry(path: str, content: bytes, mode: int = PLAIN) -> Entry:
    return Entry(path, _sha(content), mode, len(content))


def _bundle(*entries: Entry, **more: Any) -> Frame:
    ordered = sorted(entries)
    rows = [list(entry) for entry in ordered]
    frame = {
        "op": "bundle",
        "number": 1,
        "digest": manifest_digest(ordered),
        "project": "p",
        "manifest": rows,
        "last": True,
    }
    return {**frame, "recipes": [], **more}


def _piece(content: bytes, *, sha: str | None = None, last: bool = True) -> list[Any]:
    return [_sha(content) if sha is None else sha, base64.b64encode(zlib.compress(content)).decode(), last]


def _file(bundle: Frame, *pieces: Any) -> Frame:
    return {"op": "file", "number": bundle["number"], "pieces": list(pieces)}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def unpacking(cache: Cache) -> Iterator[Unpacking]:
    unpacking = Unpacking(cache, {}, lambda _: False)
    yield unpacking
    unpacking.release()


def _ops(unpacking: Unpacking, *frames: Frame) -> list[Frame]:
    return [answer for frame in frames for answer in unpacking.take(frame)]


def test_a_bundle_is_asked_for_received_and_unpacked(unpacking: Unpacking) -> None:
    bundle = _bundle(_entry("a", b"one"), _entry("b/c", b"two"), _entry("b/d", b"one"))
    need, *answers = _ops(unpacking, bundle, _file(bundle, _piece(b"one"), _piece(b"two")))
    assert need["files"] == [_sha(b"one"), _sha(b"two")]
    assert [answer["op"] for answer in answers] == ["got", "ready"]
    root = Path(answers[-1]["root"])
    assert [(root / name).read_bytes() for name in ("a", "b/c", "b/d")] == [b"one", b"two", b"one"]


def test_an_empty_project_is_ready_at_once(unpacking: Unpacking) -> None:
    assert [answer["op"] for answer in _ops(unpacking, _bundle())] == ["need", "ready"]


def test_a_manifest_may_come_in_parts(unpacking: Unpacking) -> None:
    one, two = _entry("a", b""), _entry("b", b"")
    whole = _bundle(one, two)
    parts = [{**whole, "manifest": [list(one)], "last": False}, {**whole, "manifest": [list(two)]}]
    assert [answer["op"] for answer in _ops(unpacking, *parts)] == ["need"]


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a//b"])
def test_paths_out_of_the_root_are_refused(unpacking: Unpacking, path: str) -> None:
    (answer,) = _ops(unpacking, _bundle(_entry(path, b"")))
    assert answer["op"] == "unready"
    assert "outside of its root" in answer["why"]


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../../x", b"", b"a\0b"])
def test_links_out_of_the_root_are_refused(unpacking: Unpacking, cache: Cache, target: bytes) -> None:
    bundle = _bundle(_entry("d/link", target, LINK), _entry("a", b"x"))
    answers = _ops(unpacking, bundle, _file(bundle, _piece(target), _piece(b"x")))
    assert answers[-1]["op"] == "unready"
    assert "leads out" in answers[-1]["why"]
    assert not list(cache.roots.glob("*/files/*"))


@pytest.mark.parametrize("project", ["", "..", "a/b", ".x", "x" * 101, "a\n"])
def test_names_of_projects_that_are_no_names_are_refused(unpacking: Unpacking, project: str) -> None:
    assert _ops(unpacking, _bundle(project=project))[-1]["op"] == "unready"


def _with(bundle: Frame, *pieces: Any) -> list[Frame]:
    return [bundle, _file(bundle, *pieces)]


_ONE = _bundle(_entry("a", b"one"), _entry("b", b"two"))


@pytest.mark.parametrize(
    "frames",
    [
        [{**_ONE, "digest": "0" * 64}],
        [{**_ONE, "digest": 7}],
        [{**_ONE, "manifest": None}],
        [{**_ONE, "manifest": "x"}],
        [{**_ONE, "number": None}],
        [_ONE, _ONE],
        [{**_ONE, "recipes": None}],
        [{**_ONE, "recipes": [{"kind": "rm -rf"}]}],
        [{**_ONE, "recipes": [{"kind": "uv.lock", "folder": "../..", "inputs": {}}]}],
        _with(_ONE, _piece(b"three")),
        _with(_ONE, _piece(b"three", sha=_sha(b"one"))),
        _with(_ONE, _piece(b"on", sha=_sha(b"one"))),
        _with(_ONE, _piece(b"eno", sha=_sha(b"one"))),
        _with(_ONE, _piece(b"on", sha=_sha(b"one"), last=False), _piece(b"two")),
        _with(_ONE, [_sha(b"one"), "not base64!", True]),
        _with(_ONE, [_sha(b"one"), base64.b64encode(b"not compressed").decode(), True]),
        _with(_ONE, [_sha(b"one"), base64.b64encode(zlib.compress(b"one")[:-2]).decode(), True]),
        _with(_ONE, _piece(bytes(PIECE + 1), sha=_sha(b"one"))),
        _with(_ONE, [_sha(b"one"), None, True]),
        _with(_ONE, "piece"),
        [_ONE, {"op": "file", "number": 1, "pieces": None}],
    ],
)
def test_messages_that_break_the_protocol_are_refused(unpacking: Unpacking, cache: Cache, frames: list[Frame]) -> None:
    answer = _ops(unpacking, *frames)[-1]
    assert answer["op"] == "unready"
    assert answer["why"].startswith("the bundle is invalid")
    assert not list(cache.contents.glob("*/*.tmp"))


def test_pieces_of_a_bundle_that_failed_are_dropped(unpacking: Unpacking) -> None:
    assert _ops(unpacking, _file(_ONE, _piece(b"one"))) == []


def test_a_full_disk_is_named_and_leaves_nothing_half_written(
    unpacking: Unpacking, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Incoming, piece: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Incoming, "add", full)
        answer = _ops(unpacking, _ONE, _file(_ONE, _piece(b"one")))[-1]
    assert answer["op"] == "unready"
    assert answer["why"] == f"{cache.folder}: No space left on device"
    assert not list(cache.contents.glob("*/*.tmp"))
    assert _ops(unpacking, _ONE, _file(_ONE, _piece(b"one"), _piece(b"two")))[-1]["op"] == "ready"


def test_a_disk_that_is_full_while_unpacking_is_repaired_later(
    unpacking: Unpacking, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fdopen
    opened: list[int] = []

    def full(descriptor: int, mode: str) -> Any:
        opened.append(descriptor)
        if len(opened) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", full)
        assert _ops(unpacking, _ONE, _file(_ONE, _piece(b"one"), _piece(b"two")))[-1]["op"] == "unready"
    os.close(opened[-1])
    answers = _ops(unpacking, _ONE)
    assert answers[0]["files"] == []
    root = Path(answers[-1]["root"])
    assert [(root / name).read_bytes() for name in ("a", "b")] == [b"one", b"two"]
    assert root == cache.roots / "p.0" / "files"


def test_the_cache_must_belong_to_the_user_alone(
    unpacking: Unpacking, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.folder.mkdir()
    cache.folder.chmod(0o777)
    assert _ops(unpacking, _ONE)[-1]["op"] == "need"
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    answer = _ops(unpacking, {**_ONE, "number": 2})[-1]
    assert answer["op"] == "unready"
    assert "XDG_CACHE_HOME" in answer["why"]


def test_a_link_to_the_cache_must_be_the_users_own(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large disk").mkdir()
    cache.folder.symlink_to(tmp_path / "large disk")
    cache.make()
    assert (tmp_path / "large disk" / "roots").is_dir()
    theirs = os.stat_result([0o120777, 0, 0, 0, os.geteuid() + 1, 0, 0, 0, 0, 0])
    monkeypatch.setattr(Path, "lstat", lambda path: theirs)
    with pytest.raises(PermissionError, match="belongs to another user"):
        cache.make()


def test_drivers_are_not_taken_from_the_cache_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store_drivers({}) == {}
    path = Path(store_drivers({"kind": "x = 1"})["kind"])
    assert path.read_text() == "x = 1"
    path.write_text("x = 1; planted()")
    assert Path(store_drivers({"kind": "x = 1"})["kind"]).read_text() == "x = 1"
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    with pytest.raises(PermissionError):
        store_drivers({"kind": "x = 1"})


def test_the_cache_is_below_the_home_or_among_the_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/agent-workbench")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "agent-workbench"
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("TMPDIR", "/temporary")
    assert cache_folder() == Path(f"/temporary/agent-workbench-{os.getuid()}")


def _age(path: Path, seconds: float) -> None:
    for item in (path, *path.rglob("*")):
        os.utime(item, (seconds, seconds), follow_symlinks=False)


def test_what_nobody_used_for_two_weeks_is_deleted(unpacking: Unpacking, cache: Cache) -> None:
    _ops(unpacking, _ONE, _file(_ONE, _piece(b"one"), _piece(b"two")))
    now = 10**9 + 2 * UNUSED_SECONDS
    _age(cache.folder, 10**9)
    cache.clean(now)
    # The root is in use.
    assert not list(cache.contents.glob("*/*"))
    assert (cache.roots / "p.0" / "files" / "a").exists()
    unpacking.release()
    _age(cache.folder, 10**9)
    cache.clean(now)
    assert not list(cache.roots.iterdir())


def test_what_was_used_lately_stays_and_cleaning_happens_once_a_day(unpacking: Unpacking, cache: Cache) -> None:
    _ops(unpacking, _ONE, _file(_ONE, _piece(b"one"), _piece(b"two")))
    unpacking.release()
    later = (cache.folder / "cleaned").stat().st_mtime + UNUSED_SECONDS / 2
    cache.clean(later)
    assert len(list(cache.contents.glob("*/*"))) == 2
    assert (cache.roots / "p.0" / "files" / "a").exists()
    _age(cache.roots, 10**9)
    cache.clean(later + 3600)
    assert (cache.roots / "p.0").exists()


def test_stored_contents_that_are_used_do_not_age(unpacking: Unpacking, cache: Cache) -> None:
    _ops(unpacking, _ONE, _file(_ONE, _piece(b"one"), _piece(b"two")))
    _age(cache.contents, 10**9)
    _ops(unpacking, _ONE)
    assert all(path.stat().st_mtime > 10**9 + 1 for path in cache.contents.glob("*/*"))


def test_unreadable_folders_are_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").touch()
    (folder / "link").symlink_to(kept)
    (folder / "a" / "b").chmod(0)
    (folder / "a").chmod(0)
    remove_all(folder)
    assert not folder.exists()
    assert kept.stat().st_mode & 0o777 == 0o500
    remove_all(folder)


def test_locks_are_shared_or_alone(cache: Cache) -> None:
    one, two = cache.lock("root", "x"), cache.lock("root", "x")
    assert one.take()
    assert not two.take()
    assert not two.take(shared=True)
    assert one.take(shared=True)
    assert two.take(shared=True)
    one.release()
    assert two.take()
    two.release()
    two.release()


def test_messages_are_taken_in_a_thread(cache: Cache) -> None:
    answers: list[Frame] = []
    ready = threading.Event()

    def send(frame: Frame) -> None:
        answers.append(frame)
        if frame["op"] in ("ready", "unready"):
            ready.set()

    preparing = Preparing(send, cache, {})
    preparing.take(_ONE)
    preparing.take(_file(_ONE, _piece(b"one"), _piece(b"two")))
    assert ready.wait(10)
    assert [answer["op"] for answer in answers] == ["need", "got", "ready"]
    preparing.close()
    lock = cache.lock("root", "p.0")
    assert lock.take()
    lock.release()


def test_a_host_without_bundles_closes_at_once(cache: Cache) -> None:
    Preparing(lambda _: None, cache).close()
    assert not cache.folder.exists()
    assert cache_module.UNUSED_SECONDS == 14 * 86_400

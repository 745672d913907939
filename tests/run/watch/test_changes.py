"""Batches of file changes, with the real file watcher."""

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import watchfiles

from workbench.freshness.changes import PROMPT, Batch, Changes, is_watched, native_changes, remote_kind
from workbench.freshness.rereading import looks_unfinished

WITHIN = 60.0
OFTEN = replace(PROMPT, interval=20)
"""The effort of a watch that polls more often."""


@pytest.fixture(autouse=True)
def _looks_for_the_project_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.freshness.changes._RETURNS", 0.05)


class Seen:
    """The batches, as they come."""

    def __init__(self) -> None:
        self.batches: asyncio.Queue[Batch] = asyncio.Queue()

    async def next(self) -> Batch:
        return await asyncio.wait_for(self.batches.get(), WITHIN)

    async def until(self, path: Path) -> list[Batch]:
        """Return all batches up to the one with this path."""
        found: list[Batch] = []
        while not found or path not in found[-1].paths:
            found.append(await self.next())
        return found


@asynccontextmanager
async def watching(
    root: Path, folders: Callable[[], list[Path]] | None = None, on_polling: Callable[[str], None] = lambda why: None
) -> AsyncIterator[Seen]:
    seen = Seen()
    changes = Changes(root, folders or (lambda: [root, *(path for path in root.iterdir() if path.is_dir())]), OFTEN)
    changes.on_polling = lambda: on_polling(changes.polling)

    async def read() -> None:
        async for batch in changes.batches():
            seen.batches.put_nowait(batch)

    task = asyncio.create_task(read())
    await asyncio.wait_for(changes.armed.wait(), WITHIN)
    # A new watch looks once at everything, soon after it began.
    while not (await seen.next()).all_files:
        pass
    try:
        yield seen
    finally:
        changes.close()
        await asyncio.wait_for(task, WITHIN)


async def test_save_is_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    async with watching(tmp_path) as seen:
        path.write_text("x = 1\n")
        assert (await seen.next()).paths == {path}


async def test_save_by_renaming_reports_the_file(tmp_path: Path) -> None:
    path, draft = tmp_path / "agent.py", tmp_path / "agent.py.tmp"
    path.write_text("x = 1\n")
    async with watching(tmp_path) as seen:
        draft.write_text("x = 2\n")
        draft.replace(path)
        assert (await seen.until(path))[-1].paths == {path}


async def test_half_written_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow editor writes the other half a moment after it was seen that it lacks."""
    path = tmp_path / "agent.py"
    halves = ["def root_agent(message,", " session):\n    return message\n"]

    loop = asyncio.get_running_loop()

    def look(file: Path) -> bool:
        unfinished = looks_unfinished(file)
        if unfinished:
            loop.call_soon_threadsafe(loop.call_later, 0.05, lambda: path.write_text("".join(halves)))
        return unfinished

    monkeypatch.setattr("workbench.freshness.changes.looks_unfinished", look)
    async with watching(tmp_path) as seen:
        path.write_text(halves[0])
        assert (await seen.next()).paths == {path}
        assert not looks_unfinished(path)
        assert seen.batches.empty()


async def test_changed_files_are_not_parsed_in_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bool] = []

    def look(file: Path) -> bool:
        parsed.append(threading.current_thread() is threading.main_thread())
        return False

    monkeypatch.setattr("workbench.freshness.changes.looks_unfinished", look)
    async with watching(tmp_path) as seen:
        (tmp_path / "agent.py").write_text("x = 1\n")
        assert (await seen.next()).paths == {tmp_path / "agent.py"}
    assert set(parsed) == {False}


async def test_broken_file_is_reported_after_a_pause(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    async with watching(tmp_path) as seen:
        path.write_text("def root_agent(\n")
        assert (await seen.next()).paths == {path}


async def test_thousand_files_are_one_batch(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    lock = tmp_path / ".git" / "index.lock"
    async with watching(tmp_path, lambda: [tmp_path]) as seen:
        lock.touch()
        for number in range(1000):
            (tmp_path / f"module_{number}.py").write_text("x = 1\n")
            if number % 100 == 0:
                await asyncio.sleep(0.01)
        lock.unlink()
        assert len((await seen.next()).paths) == 1000
        assert seen.batches.empty()


async def test_git_switch_is_one_batch(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            env=environment,
        )

    git("init", "-q")
    for number in range(100):
        (tmp_path / f"module_{number}.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "one")
    git("switch", "-qc", "other")
    for number in range(100):
        (tmp_path / f"module_{number}.py").write_text("x = 2\n")
    git("commit", "-qam", "two")
    async with watching(tmp_path, lambda: [tmp_path]) as seen:
        await asyncio.to_thread(git, "switch", "-q", "-")
        batch = await seen.next()
        assert len(batch.paths) == 100
        assert seen.batches.empty()


async def test_new_folder_is_watched_with_its_files(tmp_path: Path) -> None:
    async with watching(tmp_path) as seen:
        folder = tmp_path / "prompts"
        folder.mkdir()
        first = folder / "first.txt"
        first.write_text("hello")
        await seen.until(first)
        second = folder / "second.txt"
        second.write_text("hello")
        await seen.until(second)


@pytest.mark.parametrize("others", ["no other folder", "another folder"])
async def test_missing_and_returned_project_is_reported_and_rescanned(tmp_path: Path, others: str) -> None:
    root, away, settings = tmp_path / "project", tmp_path / "away", tmp_path / "settings"
    root.mkdir()
    settings.mkdir()
    changes = Changes(root, lambda: [root, settings] if others == "another folder" else [root])
    told: asyncio.Queue[bool] = asyncio.Queue()
    changes.on_gone = lambda: told.put_nowait(changes.gone)

    seen = Seen()

    async def read() -> None:
        async for batch in changes.batches():
            seen.batches.put_nowait(batch)

    task = asyncio.create_task(read())
    await asyncio.wait_for(changes.armed.wait(), WITHIN)
    root.rename(away)
    assert await asyncio.wait_for(told.get(), WITHIN)
    while not seen.batches.empty():
        seen.batches.get_nowait()
    away.rename(root)
    assert not await asyncio.wait_for(told.get(), WITHIN)
    while not (await seen.next()).all_files:
        continue
    changes.close()
    await asyncio.wait_for(task, WITHIN)
    assert told.empty()


async def test_returned_folder_is_watched_again(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    path = root / "agent.py"
    path.write_text("x = 1\n")
    async with watching(root, lambda: [root]) as seen:
        path.unlink()
        root.rmdir()
        await seen.next()
        root.mkdir()
        path.write_text("x = 2\n")
        while True:
            batch = await seen.next()
            if batch.all_files or path in batch.paths:
                break
        path.write_text("x = 3\n")
        await seen.until(path)


async def test_polling_finds_a_changed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    path = tmp_path / "agent.py"
    path.write_text("x = 1\n")
    async with watching(tmp_path) as seen:
        path.write_text("x = 22\n")
        await seen.until(path)


@pytest.mark.parametrize(
    "name",
    [
        ".git/index",
        ".workbench/runs/a",
        "desk/__pycache__/agent.pyc",
        "desk/.agent.py.swp",
        "desk/agent.py~",
        "4913",
        "desk/.#agent.py",
        "desk/#agent.py#",
    ],
)
def test_temporary_files_are_not_watched(name: str) -> None:
    assert not is_watched(Path("/project") / name)


def test_half_written_files_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text, unfinished in (("", True), ('{"a": ', True), ("{}", False), ("[1, 2", True)):
        path.write_text(text)
        assert looks_unfinished(path) is unfinished, text
    path.write_text(json.dumps({"a": "b" * (2 << 20)}))
    assert not looks_unfinished(path)
    path.write_text(path.read_text()[:-10])
    assert looks_unfinished(path)
    assert looks_unfinished(tmp_path / "not there.py")


def test_network_file_systems_are_polled(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:40 / /home rw shared:1 - nfs4 server:/home rw\n"
        "24 23 0:41 / /home/me/fast rw - ext4 /dev/sdb1 rw\nbroken line\n"
        "25 22 0:42 / /mnt/my\\040disk rw - 9p C:\\134 rw\n26 22 0:43 / /app rw - fuse.grpcfuse x rw\n"
        "27 22 0:44 / /box rw - fuse.fuse-overlayfs x rw\n28 22 0:45 / /app rw - ext4 x rw\n"
    )
    kinds = {
        "/home/me/project": "nfs4",
        "/home/me/fast/project": "",
        "/homes": "",
        "/srv": "",
        "/mnt/my disk/project": "9p",
        "/box/project": "",
        "/app/project": "",  # Something else is mounted over it.
    }
    assert {folder: remote_kind([Path(folder)], mounts) for folder in kinds} == kinds
    assert remote_kind([Path("/srv"), Path("/home/me")], mounts) == "nfs4", "a folder of the project lies elsewhere"
    assert remote_kind([Path("/srv")], tmp_path / "none") == ""


class _Told:
    """A fake `awatch` that yields its steps, or raises those that are exceptions."""

    def __init__(self, *steps: object) -> None:
        self.steps = steps

    async def __call__(self, *folders: Path, **options: object) -> AsyncIterator[object]:
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            yield step


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError('OS file watch limit reached. about ["/x"]'), "max_user_watches"),
        (RuntimeError("Error creating recommended watcher: Too many open files (os error 24)"), "max_user_instances"),
    ],
)
async def test_folders_are_polled_if_the_system_has_no_watches_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr("watchfiles.awatch", _Told(error))
    path = tmp_path / "agent.py"
    told: list[str] = []
    async with watching(tmp_path, on_polling=told.append) as seen:
        while not told:
            await asyncio.sleep(0)
        assert (await seen.next()).all_files, "what was saved meanwhile"
        path.write_text("x = 1\n")
        await seen.until(path)
    assert len(told) == 1
    assert said in told[0]


async def test_unreadable_folder_is_not_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, path = tmp_path / "closed", tmp_path / "agent.py"
    closed.mkdir()
    asked: list[set[Path]] = []
    awatch = watchfiles.awatch

    def watch(*folders: Path, ignore_permission_denied: bool, **options: object) -> AsyncIterator[object]:
        assert not ignore_permission_denied, "it would hide the end of the system's watches as well"
        asked.append(set(folders))
        return awatch(*folders, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("watchfiles.awatch", watch)
    monkeypatch.setattr("workbench.freshness.changes.os.access", lambda folder, mode: folder != closed)
    async with watching(tmp_path) as seen:
        path.write_text("x = 1\n")
        await seen.until(path)
    assert asked == [{tmp_path}]


async def test_folder_deleted_at_the_start_does_not_cause_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Callable[..., AsyncIterator[object]]] = [_Told(FileNotFoundError("gone")), watchfiles.awatch]
    monkeypatch.setattr("watchfiles.awatch", lambda *folders, **options: calls.pop(0)(*folders, **options))
    path = tmp_path / "agent.py"
    told: list[str] = []
    async with watching(tmp_path, on_polling=told.append) as seen:
        while calls:
            await asyncio.sleep(0.01)
        path.write_text("x = 1\n")
        await seen.until(path)
    assert told == []


async def test_all_files_are_checked_after_a_stop_or_lost_events(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The system's event queue may have overflowed, which `watchfiles` does not report."""
    few, many = {(1, "/x")}, {(1, f"/{number}") for number in range(3000)}
    monkeypatch.setattr("watchfiles.awatch", _Told(few, many, few, set()))
    clock = iter([0.0, 1.0, 1.0, 2.0, 2.0, 30.0, 30.0, 33.0, 33.0])
    monkeypatch.setattr("workbench.freshness.changes.monotonic", lambda: next(clock))
    told = [more async for _, more in native_changes([tmp_path], asyncio.Event(), asyncio.Event())]
    assert told == [False, True, True, False]


async def test_lock_of_a_dead_git_does_not_delay_a_batch(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    lock = tmp_path / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (1_700_000_000, 1_700_000_000))
    path = tmp_path / "agent.py"
    async with watching(tmp_path, lambda: [tmp_path]) as seen:
        path.write_text("x = 1\n")
        assert (await asyncio.wait_for(seen.next(), 60)).paths == {path}

"""The open folder, without a screen."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from threading import Event, current_thread
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace
from tests.ui.fake_view import Bench, FakeView
from workbench.agents.workspace import Workspace
from workbench.store.owners import read_owners


async def test_dependent_controllers_are_notified_of_each_read(bench: Bench) -> None:
    told: list[str] = []
    bench.folder.when_loaded.append(lambda: told.append("read"))
    bench.folder.reload()
    await bench.view.settled()
    assert (told, bench.view.said) == (["read"], ["folder reloaded"])


async def test_unreadable_folder_keeps_the_shown_cases(bench: Bench) -> None:
    def gone(arrived: Any = None) -> Workspace:
        raise FileNotFoundError("the folder is gone")

    before = bench.workspace
    bench.session.read = gone  # type: ignore[method-assign]
    assert not await bench.folder.read_again()
    assert bench.view.notices == ["the folder is gone"]
    assert bench.session.read_error == "the folder is gone"
    assert bench.session.workspace is before


@pytest.fixture
def loose(make_workspace: MakeWorkspace) -> Bench:
    """A folder with an agent, and an evalset that belongs to none."""
    return Bench(FakeView(make_workspace({"desk": {"one": ["a"]}, "": {"two": ["b"]}})))


async def test_run_asks_once_which_agent_an_evalset_belongs_to(loose: Bench) -> None:
    loose.view.answers = [None]
    for _ in range(2):
        await loose.folder.give_agents([(1, 0)])
    assert len(loose.view.asked) == 1


async def test_chosen_agent_is_saved_and_reported(loose: Bench) -> None:
    told: list[str] = []
    loose.folder.when_owned.append(lambda: told.append("owners"))
    loose.view.answers = [loose.workspace.agents[0]]
    loose.put_cursor(1)
    loose.folder.choose_agent()
    await loose.view.settled()
    assert told == ["owners"]
    assert read_owners(loose.session.state_dir)


async def test_ignored_evalset_can_be_opened(bench: Bench) -> None:
    from workbench.agents.discovery import Ignored

    file = bench.workspace.root / "copy.json"
    ignored = (Ignored(file, "another name", evalset=True),)
    bench.session.workspace = replace(bench.workspace, ignored=ignored)
    bench.view.answers = [file]
    bench.folder.ignored()
    await bench.view.settled()
    assert bench.view.asked == ["1 path ignored"]
    assert bench.session.extra_evalsets == {file}


async def test_reading_stops_at_the_next_file_after_it_is_cancelled(bench: Bench) -> None:
    begun, left, ended = asyncio.Event(), Event(), Event()
    loop, files, threads = asyncio.get_running_loop(), [], []

    def many_files(arrived: Callable[[Workspace], None]) -> Workspace:
        threads.append(current_thread())
        loop.call_soon_threadsafe(begun.set)
        left.wait(60)
        try:
            for number in range(1000):
                files.append(number)
                arrived(bench.workspace)
        finally:
            ended.set()
        return bench.workspace

    bench.session.read = many_files  # type: ignore[method-assign,assignment]
    reading = asyncio.create_task(bench.folder.read_again())
    await begun.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    left.set()
    assert ended.wait(60)
    assert files == [0]
    assert threads[0].daemon, "the program does not wait for a file that takes long"


async def test_partial_results_take_little_of_the_reading_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now, shown = [100.0], []

    def show(workspace: Workspace) -> None:
        shown.append(now[0])
        now[0] += 0.5

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    class Loop:
        @staticmethod
        def call_soon_threadsafe(call: Callable[..., None], *arguments: Any) -> None:
            call(*arguments)

    def many_files(arrived: Callable[[Workspace], None]) -> Workspace:
        for _ in range(1000):
            now[0] += 0.02
            arrived(bench.workspace)
        return bench.workspace

    monkeypatch.setattr("workbench.ui.screen.folder.time", Clock)
    monkeypatch.setattr(bench.view, "show_workspace", show)
    bench.session.read, bench.session.reading = many_files, True  # type: ignore[method-assign,assignment]
    bench.folder._read(Loop, lambda: False)  # type: ignore[arg-type]
    assert shown[0] < 101
    assert len(shown) == 4, "20 s of reading"

"""A watch that runs its cases in the event loop of a program."""

import threading
from pathlib import Path

import pytest

from tests.cli.projects import BAD, GOOD, Project
from workbench.events.events import RunFinished, RunStarted
from workbench.files.run_options import RunOptions
from workbench.project.project import Project as Opened
from workbench.project.watch import News, RunningWatch
from workbench.project.watch_queue import Job
from workbench.project.watching import Start, Watching
from workbench.run.plan.plan import Plan


async def watched(root: Path, monkeypatch: pytest.MonkeyPatch, *, stop: bool = False) -> tuple[list[bool], list[News]]:
    """Watch two cases, save their threshold, and end the watch after the run or, with `stop`, at its start.

    Return for each plan after the save whether it was made in a thread, and the news.
    """
    project = Project(root)
    project.evalset(GOOD, BAD)
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    in_threads: list[bool] = []
    seen: list[News] = []
    make = Watching.plan

    def plan(watching: Watching, job: Job) -> Plan:
        in_threads.append(threading.current_thread() is not threading.main_thread())
        return make(watching, job)

    def take(news: News) -> None:
        seen.append(news)
        if isinstance(news, Start) if stop else in_threads and isinstance(news, RunFinished):
            watch.stop()

    monkeypatch.setattr(Watching, "plan", plan)
    monkeypatch.chdir(root)
    async with Opened.open() as opened:
        targets = opened.targets()
        workspace, options = targets.open(), RunOptions()
        watch = RunningWatch(opened, targets, workspace, targets.plan(options, workspace), options, take)
        async for news in watch.follow():
            if isinstance(news, RunFinished) and not watch.ended:
                await watch.watching.watcher.changes.armed.wait()
                project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.0}})
    return in_threads, seen


async def test_transcripts_are_read_outside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads, seen = await watched(tmp_path, monkeypatch)
    assert in_threads == [True]
    assert sum(isinstance(news, RunStarted) for news in seen) == 2


async def test_watch_stopped_before_its_plan_is_made_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, seen = await watched(tmp_path, monkeypatch, stop=True)
    assert sum(isinstance(news, RunStarted) for news in seen) == 1

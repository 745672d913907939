"""Pictures of every screen and dialog, to look at one by one: `python -m tests.screens FOLDER`.

Each scene is taken at four sizes in a dark and a light theme, on the project of `tests.planted` after a run, or on
those of `tests.frozen` after a frozen run or a thaw, or that of `tests.tried_shop`. The files are called
`SIZE-THEME/NUMBER-SCENE.svg`. `tests/ui/test_golden.py` compares the scenes with the snapshots beside it.
"""

import argparse
import asyncio
import fcntl
import io
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Literal, NamedTuple

from textual.pilot import Pilot
from textual.strip import Strip

from tests import frozen, planted, tried_shop
from tests.steady import steady
from tests.ui.quiet import next_timer, quick_pilots
from tests.ui.shown import shown_strips
from workbench.__main__ import execute
from workbench.files import settings as config
from workbench.files.folders import trust
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import DEFAULT, Themes
from workbench.ui.variants.screen import TryScreen

SIZES = ("60x20", "80x24", "120x40", "200x50")
_USUAL = "80x24"
"""Size in which keys are pressed."""
THEMES = ("night", "paper")
_PASSING = 24
"""Number of passing cases in the planted project."""
_SECONDS = 60.0
"""How long a scene may take until its screen is still."""
_SOON = 0.1
"""Seconds within which timers may still change a screen."""


class Scene(NamedTuple):
    """A screen or dialog, and the keys that lead there from the scene before it, or from the cases if it is the first.

    `keys` are Textual's names. A key with a dot is an action of the action table. `sizes` are those that are compared
    with snapshots. `lasts` says that a run or conversation goes on while the picture is taken. `until` is a text that
    it waits for.
    """

    name: str
    keys: str
    sizes: tuple[str, ...] = ("80x24",)
    lasts: bool = False
    until: str = ""


class Tour(NamedTuple):
    """Scenes that are shown one after the other by one workbench, opened on a project."""

    project: Literal["planted", "frozen", "thawed", "tried", "trying"]
    scenes: tuple[Scene, ...]


TOURS = (
    Tour(
        "planted",
        (
            Scene("overview", "g", SIZES),
            Scene("overview-cursor", "tab"),
            Scene("overview-agent", "tab g j j"),
            Scene("criteria", "c", SIZES),
            Scene("next-run", "escape o"),
            Scene("new-case", "escape j +"),
            Scene("new-evalset", "escape cases.new_evalset"),
            Scene("talk", "escape k T", lasts=True),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("evidence-error", "g n 1"),
            Scene("jump", "'"),
            Scene("help-case", "escape question_mark"),
            Scene("repeat", "escape X"),
            Scene("rename", "escape cases.rename"),
            Scene("move", "escape m"),
            Scene("agreement", "escape triage.agreement"),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("overview-filter", "/ : f a i l enter g"),
            Scene("overview-marks", "a"),
            Scene("filter-typing", "escape escape / c a u s e : r"),
            Scene("filter-nothing", "escape / x q z"),
            Scene("filter-fault", "escape / : f o o"),
            Scene("fork", "escape / m o v e d enter g n f"),
            Scene("fork-text", "e"),
            Scene("fork-tries", "x ctrl+o r"),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("evidence-calls", "/ 返 金 の enter g n 1", ("80x24", "120x40", "200x50")),
            Scene("evidence-narrow", "enter", ("60x20",)),
            Scene("evidence-answer", "escape escape / p r o m i s e d enter g n 1"),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("evidence-judged", "/ d i n n e r _ f enter g n 1"),
            Scene("judges", "2"),
            Scene("triage", "1 t"),
            Scene("review-judged", "escape escape / d i n n e r _ enter g V"),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("evidence-names", "/ m o v e d enter g n"),
            Scene("triage-unjudged", "t"),
            Scene("accept", "escape A"),
            Scene("case-history", "escape 4"),
            Scene("maximised", "1 z"),
            Scene("no-tree", "z b"),
            Scene("trace", "b enter 3"),
            Scene("editor", "escape e"),
            Scene("editor-field", "j j enter"),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("table", "g M", SIZES),
            Scene("table-right", "l l l"),
            Scene("table-runs", "h h h M"),
            Scene("review", "escape g V n n n n n", SIZES),
            Scene("review-cause", "escape g V asterisk a"),
            Scene("accept-several", "escape escape g A"),
            Scene("history", "escape H"),
            Scene("history-run", "enter"),
            Scene("history-run-case", "enter"),
            Scene("compare", "escape escape escape C"),
        ),
    ),
    Tour(
        "planted",
        (
            Scene("palette", ": r e"),
            Scene("theme", "escape general.theme"),
            Scene("problems", "escape checks.found"),
            Scene("ignored", "escape folder.ignored"),
            Scene("watched", "escape watch.watched"),
            Scene("notices", "escape general.notices"),
            Scene("help", "escape g question_mark"),
        ),
    ),
    Tour(
        "frozen",
        (
            Scene("frozen-compare", "C"),
            Scene("frozen-overview", "escape g"),
            Scene("frozen-table", "M"),
            Scene("frozen-runs", "M"),
            Scene("frozen-next-run", "escape g j j o K"),
            Scene("frozen-review", "escape g V n"),
            Scene("frozen-history", "escape H"),
        ),
    ),
    Tour(
        "frozen",
        (
            Scene("frozen-miss", "/ 返 金 enter g n 1"),
            Scene("frozen-choices", "K"),
            Scene("frozen-scores", "escape escape / w r o n g enter g n 2"),
            Scene("frozen-file", "escape / l o n g enter g n 1"),
        ),
    ),
    Tour(
        "frozen",
        (
            Scene("faults-before", "/ c a r d enter g faults.try_faults"),
            Scene("faults", "enter"),
            Scene("faults-by-case", "M"),
            Scene("fault", "M n enter enter"),
        ),
    ),
    Tour(
        "tried",
        (
            Scene("try", "W", SIZES, until="done,"),
            Scene("try-files", "E"),
            Scene("try-cases", "escape enter j j"),
            Scene("try-case", "g n enter"),
        ),
    ),
    Tour(
        "tried",
        (
            Scene("try-dialog", "variants.try_variants tab tab"),
            Scene("try-question", "T O N E = b r i e f enter", until="enter starts it"),
            Scene("try-unclear", "enter j", SIZES, until="done,"),
        ),
    ),
    Tour("trying", (Scene("try-running", "W", lasts=True, until="22 of 90"),)),
    Tour("thawed", (Scene("freeze", "g K"), Scene("thawed-compare", "escape C enter ]"))),
    Tour(
        "thawed",
        (
            Scene("thawed", "/ 返 金 enter g n 1"),
            Scene("thawed-history", "4"),
            Scene("thawed-accept", "1 A enter"),
        ),
    ),
)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Do something in one process at a time."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Projects:
    """The projects of the scenes, each run once when it is first needed.

    `above` is a folder for them, which several processes may share.
    """

    def __init__(self, above: Path) -> None:
        self._above = above

    def copy(self, project: str) -> Path:
        """Return a new copy of a project after its runs."""
        folder = self._above / project / "shop"
        with alone(self._above / f"{project}.lock"):
            if not folder.exists():
                _MAKE[project](folder)
        copy = Path(mkdtemp(dir=self._above)) / "shop"
        shutil.copytree(folder, copy)
        if (copy / ".workbench").exists():
            trust(copy)
        return copy


def _workbench(folder: Path, minutes_ago: int, *words: str) -> None:
    said = io.StringIO()
    with steady(folder.parent, minutes_ago), chdir(folder), redirect_stdout(said), redirect_stderr(said):
        execute(list(words))


def _planted(folder: Path) -> None:
    planted.write(folder, passing=_PASSING)
    _workbench(folder, 60, "run", ".")


def _frozen(folder: Path, *, thaw: bool = False) -> None:
    frozen.write(folder)
    minutes_ago = iter((60, 45, 30))
    frozen.run_with_recordings(folder, lambda *words: _workbench(folder, next(minutes_ago), *words), thaw=thaw)


_MAKE: dict[str, Callable[[Path], None]] = {
    "planted": _planted,
    "frozen": _frozen,
    "thawed": partial(_frozen, thaw=True),
    "tried": tried_shop.write,
    "trying": partial(tried_shop.write, slow=True),
}


def open_app(folder: Path, theme: str = DEFAULT) -> WorkbenchApp:
    """Return the workbench on a folder, without the user's settings."""
    themes = Themes()
    settings = config.Settings(folder.parent / "settings.toml")
    return WorkbenchApp(Session(folder, checks=True), settings, themes, themes.read(theme))


async def go(pilot: Pilot[int], scene: Scene) -> None:
    """Press the keys of a scene, and wait each time until the screen is still."""
    app = pilot.app
    assert isinstance(app, WorkbenchApp)
    await _settle(pilot, app, lasts=scene.lasts)
    app.main.clear_message()
    for key in scene.keys.split():
        if "." in key and len(key) > 1:
            app.main.do(key.rpartition(".")[2])
        else:
            await pilot.press({"/": "slash", ":": "colon"}.get(key, key))
        await _settle(pilot, app, lasts=scene.lasts, looks_twice=False)
    await _settle(pilot, app, lasts=scene.lasts)
    while scene.until not in "\n".join(strip.text for strip in shown_strips(app)):
        await asyncio.sleep(0.02)
        await _settle(pilot, app, lasts=scene.lasts)


async def _settle(pilot: Pilot[int], app: WorkbenchApp, *, lasts: bool, looks_twice: bool = True) -> None:
    """Wait until nothing is read, run or compared, and with `looks_twice` until the screen stays the same."""
    end = time.monotonic() + _SECONDS
    before: list[Strip] | None = None
    while time.monotonic() < end:
        await pilot.pause()
        if (works := bool(_at_work(app, lasts=lasts))) or next_timer() < _SOON:
            before = None
            await asyncio.sleep(0.005 if works else max(next_timer(), 0.005))
        elif not looks_twice:
            return
        elif (shown := shown_strips(app)) != before:
            before = shown
        else:
            return
    raise TimeoutError(f"the screen never came to rest: {_at_work(app, lasts=lasts)}")


def _at_work(app: WorkbenchApp, *, lasts: bool) -> list[str]:
    """Return what may still change the screen by itself."""
    session, dialogs = app.session, app._key_order._dialogs
    named = {
        "painting": app.screen._compositor.size != app.size,
        "reading": session.workspace is None or session.is_loading,
        "comparing": bool(session.loading),
        "running": session.store.activity.busy and not lasts,
        "starting": lasts and any("starting the agent" in strip.text for strip in shown_strips(app)),
        "trying": "controllers" in vars(app.main)
        and bool(app.main.controllers.thread._others)
        and not lasts
        and not _has_tried(app),
    }
    open_now = [worker for worker in app.workers if not worker.is_finished and worker.group != "disk"]
    waiting = [worker.group for worker in open_now if dialogs.get(worker) not in app.screen_stack]
    return [name for name, is_so in named.items() if is_so] + waiting


def _has_tried(app: WorkbenchApp) -> bool:
    """Return whether a try is shown that waits for the user. Its copies stay until it is left."""
    return isinstance(app.screen, TryScreen) and not app.screen.tried.going


def main() -> None:
    """Take the pictures of all scenes, or of those named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("scenes", nargs="*", help="names of scenes (default: all)")
    parser.add_argument("--size", action="append", choices=SIZES, help="default: all")
    parser.add_argument("--theme", action="append", help=f"default: {' and '.join(THEMES)}")
    options = parser.parse_intermixed_args()
    with TemporaryDirectory() as home, quick_pilots():
        os.environ |= dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), home)
        projects = Projects(Path(home))
        numbers = {scene.name: number for number, scene in enumerate(scene for tour in TOURS for scene in tour.scenes)}
        for tour in TOURS:
            wanted = [scene.name for scene in tour.scenes if not options.scenes or scene.name in options.scenes]
            for theme in options.theme or THEMES if wanted else ():
                folder = projects.copy(tour.project)
                pictures = asyncio.run(take(folder, tour, theme, options.size or SIZES))
                for (name, size), drawn in pictures.items():
                    place = options.folder / f"{size}-{theme}"
                    place.mkdir(parents=True, exist_ok=True)
                    if name in wanted:
                        (place / f"{numbers[name]:02}-{name}.svg").write_text(drawn, encoding="utf-8")


async def take(folder: Path, tour: Tour, theme: str = DEFAULT, sizes: Sequence[str] = ()) -> dict[tuple[str, str], str]:
    """Return the pictures of a tour by scene and size, as SVG. Each scene is taken at `sizes`, by default at its own.

    Raises:
        TimeoutError: A screen never came to rest.
    """
    pictures = {}
    with steady(folder.parent):
        app = open_app(folder, theme)
        async with app.run_test(size=_cells(_USUAL), notifications=True) as pilot:
            try:
                for scene in tour.scenes:
                    await go(pilot, scene)
                    for size in sizes or scene.sizes:
                        await _resize(pilot, app, size, lasts=scene.lasts)
                        pictures[scene.name, size] = app.export_screenshot(title=app.title)
                    await _resize(pilot, app, _USUAL, lasts=scene.lasts)
            finally:
                await asyncio.to_thread(app.close_runs, 1.0)
    return pictures


def _cells(size: str) -> tuple[int, int]:
    columns, _, lines = size.partition("x")
    return int(columns), int(lines)


async def _resize(pilot: Pilot[int], app: WorkbenchApp, size: str, *, lasts: bool) -> None:
    if app.size != _cells(size):
        await pilot.resize_terminal(*_cells(size))
        await _settle(pilot, app, lasts=lasts)


if __name__ == "__main__":
    main()

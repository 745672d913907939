"""Pictures of every screen and dialog, to look at one by one: `python -m tests.screens FOLDER`.

Each scene is taken at four sizes in a dark and a light theme, on the project of `tests.planted` after a run, or on
those of `tests.frozen` after a frozen run or a thaw, or that of `tests.tried_shop`. The files are called
`SIZE-THEME/NUMBER-SCENE.svg`. `tests/ui/test_golden.py` compares the scenes with the snapshots beside it.
"""

import argparse
import asyncio
import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from textual.pilot import Pilot
from textual.strip import Strip

from tests import frozen, planted, tried_shop
from tests.steady import steady
from tests.ui.quiet import next_timer, quick_pilots
from tests.ui.shown import shown_strips
from workbench.__main__ import execute
from workbench.files import settings as config
from workbench.files.state_folder import trust
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import DEFAULT, Themes
from workbench.ui.variants.screen import TryScreen

SIZES = ("60x20", "80x24", "120x40", "200x50")
THEMES = ("night", "paper")
_PASSING = 24
"""Number of passing cases in the planted project."""
_SECONDS = 60.0
"""How long a scene may take until its screen is still."""
_SOON = 0.1
"""Seconds within which timers may still change a screen."""


class Scene(NamedTuple):
    """A screen or dialog, and how to get there from the cases.

    `keys` are Textual's names. A key with a dot is an action of the action table. `project` is where it is taken.
    `lasts` says that a run or conversation goes on while the picture is taken. `until` is a text that it waits for.
    """

    name: str
    keys: str
    project: Literal["planted", "frozen", "thawed", "tried", "trying"] = "planted"
    lasts: bool = False
    until: str = ""


SCENES = (
    Scene("overview", "g"),
    Scene("overview-cursor", "g tab"),
    Scene("overview-agent", "g j j"),
    Scene("overview-filter", "/ : f a i l enter g"),
    Scene("overview-marks", "/ : f a i l enter g a"),
    Scene("evidence-error", "g n 1"),
    Scene("evidence-calls", "/ 返 金 の enter g n 1"),
    Scene("evidence-answer", "/ p r o m i s e d enter g n 1"),
    Scene("evidence-judged", "/ d i n n e r _ f enter g n 1"),
    Scene("evidence-names", "/ m o v e d enter g n"),
    Scene("judges", "/ d i n n e r _ f enter g n 2"),
    Scene("trace", "/ m o v e d enter g n enter 3"),
    Scene("case-history", "/ m o v e d enter g n 4"),
    Scene("maximised", "/ m o v e d enter g n 1 z"),
    Scene("no-tree", "/ m o v e d enter g n b"),
    Scene("filter-typing", "/ c a u s e : r"),
    Scene("filter-nothing", "/ x q z"),
    Scene("filter-fault", "/ : f o o"),
    Scene("jump", "g n '"),
    Scene("palette", ": r e"),
    Scene("help", "g question_mark"),
    Scene("help-case", "g n question_mark"),
    Scene("theme", "general.theme"),
    Scene("review", "g V n n n n n"),
    Scene("review-judged", "/ d i n n e r _ enter g V"),
    Scene("review-cause", "g V asterisk a"),
    Scene("table", "g M"),
    Scene("table-right", "g M l l l"),
    Scene("table-runs", "g M M"),
    Scene("triage", "/ d i n n e r _ f enter g n t"),
    Scene("triage-unjudged", "/ m o v e d enter g n t"),
    Scene("editor", "/ m o v e d enter g n e"),
    Scene("editor-field", "/ m o v e d enter g n e j j enter"),
    Scene("criteria", "g j j c"),
    Scene("next-run", "g j j o"),
    Scene("accept", "/ m o v e d enter g n A"),
    Scene("accept-several", "g A"),
    Scene("repeat", "g n X"),
    Scene("fork", "/ m o v e d enter g n f"),
    Scene("fork-text", "/ m o v e d enter g n f e"),
    Scene("fork-tries", "/ m o v e d enter g n f e x ctrl+o r"),
    Scene("history", "H"),
    Scene("history-run", "H enter"),
    Scene("history-run-case", "H enter enter"),
    Scene("compare", "C"),
    Scene("talk", "g j j T", lasts=True),
    Scene("new-case", "g j j j +"),
    Scene("new-evalset", "g j j j cases.new_evalset"),
    Scene("rename", "g n cases.rename"),
    Scene("move", "g n m"),
    Scene("agreement", "g triage.agreement"),
    Scene("problems", "checks.found"),
    Scene("ignored", "folder.ignored"),
    Scene("notices", "general.notices"),
    Scene("watched", "watch.watched"),
    Scene("frozen-overview", "g", "frozen"),
    Scene("frozen-miss", "/ 返 金 enter g n 1", "frozen"),
    Scene("frozen-ways-out", "/ 返 金 enter g n K", "frozen"),
    Scene("frozen-file", "/ l o n g enter g n 1", "frozen"),
    Scene("frozen-scores", "/ w r o n g enter g n 2", "frozen"),
    Scene("frozen-review", "g V n", "frozen"),
    Scene("frozen-table", "g M", "frozen"),
    Scene("frozen-runs", "g M M", "frozen"),
    Scene("frozen-history", "H", "frozen"),
    Scene("frozen-compare", "C", "frozen"),
    Scene("frozen-next-run", "g j j o K", "frozen"),
    Scene("faults-before", "/ c a r d enter g faults.try_faults", "frozen"),
    Scene("faults", "/ c a r d enter g faults.try_faults enter", "frozen"),
    Scene("faults-by-case", "/ c a r d enter g faults.try_faults enter M", "frozen"),
    Scene("fault", "/ c a r d enter g faults.try_faults enter n enter enter", "frozen"),
    Scene("try-dialog", "variants.try_variants tab tab", "tried"),
    Scene("try-question", "variants.try_variants tab tab T O N E = b r i e f enter", "tried"),
    Scene("try", "W", "tried"),
    Scene("try-cases", "W enter j j", "tried"),
    Scene("try-case", "W n enter", "tried"),
    Scene("try-files", "W E", "tried"),
    Scene("try-unclear", "variants.try_variants tab tab T O N E = b r i e f enter enter j", "tried"),
    Scene("try-running", "W", "trying", lasts=True, until="22 of 90"),
    Scene("freeze", "g K", "thawed"),
    Scene("thawed", "/ 返 金 enter g n 1", "thawed"),
    Scene("thawed-history", "/ 返 金 enter g n 4", "thawed"),
    Scene("thawed-compare", "C enter ]", "thawed"),
    Scene("thawed-accept", "/ 返 金 enter g n A enter", "thawed"),
)


class Projects:
    """The projects of the scenes, each run once when it is first needed. `above` is a folder for them."""

    def __init__(self, above: Path) -> None:
        self._above = above
        self._copies = 0

    def copy(self, project: str) -> Path:
        """Return a new copy of a project after its runs."""
        folder = self._above / project / "shop"
        if not folder.exists():
            _MAKE[project](folder)
        self._copies += 1
        copy = self._above / str(self._copies) / "shop"
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
        await _settle(pilot, app, lasts=scene.lasts)
    while scene.until not in "\n".join(strip.text for strip in shown_strips(app)):
        await asyncio.sleep(0.02)
        await _settle(pilot, app, lasts=scene.lasts)


async def _settle(pilot: Pilot[int], app: WorkbenchApp, *, lasts: bool) -> None:
    """Wait until nothing is read, run or compared, and the screen stays the same."""
    end = time.monotonic() + _SECONDS
    before: list[Strip] | None = None
    while time.monotonic() < end:
        await pilot.pause()
        if _at_work(app, lasts=lasts) or next_timer() < _SOON:
            before = None
            await asyncio.sleep(0.005)
        elif (shown := shown_strips(app)) != before:
            before = shown
        else:
            return
    raise TimeoutError(f"the screen never came to rest: {_at_work(app, lasts=lasts)}")


def _at_work(app: WorkbenchApp, *, lasts: bool) -> list[str]:
    """Return what may still change the screen by itself."""
    session, dialogs = app.session, app._key_order._dialogs
    named = {
        "reading": session.workspace is None or session.is_loading,
        "comparing": bool(session.loading),
        "running": session.store.activity.busy and not lasts,
        "starting": lasts and any("starting the agent" in strip.text for strip in shown_strips(app)),
        "trying": app.main.has_controllers and bool(app.runs._others) and not lasts and not _has_tried(app),
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
        for number, scene in enumerate(SCENES):
            if options.scenes and scene.name not in options.scenes:
                continue
            for size in options.size or SIZES:
                for theme in options.theme or THEMES:
                    place = options.folder / f"{size}-{theme}"
                    place.mkdir(parents=True, exist_ok=True)
                    try:
                        folder = projects.copy(scene.project)
                        drawn = asyncio.run(_take(folder, scene, size, theme))
                    except TimeoutError as error:
                        sys.stdout.write(f"{place.name} {scene.name}: {error}\n")
                    else:
                        (place / f"{number:02}-{scene.name}.svg").write_text(drawn, encoding="utf-8")


async def _take(folder: Path, scene: Scene, size: str, theme: str) -> str:
    columns, _, lines = size.partition("x")
    with steady(folder.parent):
        app = open_app(folder, theme)
        async with app.run_test(size=(int(columns), int(lines)), notifications=True) as pilot:
            try:
                await go(pilot, scene)
                return app.export_screenshot(title=scene.name)
            finally:
                await asyncio.to_thread(app.close_runs, 1.0)


if __name__ == "__main__":
    main()

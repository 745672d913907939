"""The workbench without a terminal: it opens a folder, takes keys, and shows its screen as text or as a frame."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from textual.pilot import Pilot

from docs.pictures.frame import Frame, read_frame
from workbench.files import settings as config
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import DEFAULT, Themes

SAMPLES = Path(__file__).parents[2] / "sample_agents"
_QUIET_SECONDS = 0.4
"""A screen that has not changed for so long has taken in the last key."""


class Player:
    """One opened workbench. `folder` is what it shows."""

    def __init__(self, app: WorkbenchApp, pilot: Pilot[int], folder: Path) -> None:
        self.folder = folder
        self._app, self._pilot = app, pilot

    @property
    def frame(self) -> Frame:
        """The screen as it is now."""
        return read_frame(self._app.export_screenshot(simplify=True))

    @property
    def text(self) -> str:
        """The lines of the screen."""
        strips = self._app.screen._compositor.render_strips(self._app.size)
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def at_rest(self) -> bool:
        """Whether the folder has been read and no run is requested or running."""
        session = self._app.session
        return session.workspace is not None and not session.reading and not session.store.activity.busy

    async def pause(self, seconds: float) -> None:
        """Give the workbench time."""
        await self._pilot.pause(seconds)

    async def press(self, *keys: str) -> None:
        """Press keys by Textual's names."""
        await self._pilot.press(*keys)

    async def act(self, action: str) -> None:
        """Run an action of the action table that has no key."""
        self._app.main.do(action)
        await self._pilot.pause(0.1)

    async def leave(self) -> None:
        """Go back to the cases of the main screen, whatever is open.

        Raises:
            LookupError: `escape` does not lead there.
        """
        for _ in range(12):
            if self._app.screen is self._app.main and self._app.main.tree_view.has_focus:
                return
            await self._pilot.press("escape")
            await self._pilot.pause(0.1)
        raise LookupError(f"escape does not lead back from here:\n{self.text}")

    async def until(self, condition: Callable[[str], bool], seconds: float = 60.0) -> None:
        """Wait until the text of the screen fulfils a condition.

        Raises:
            TimeoutError: It did not within that time. The message holds the text of the screen.
        """
        end = time.monotonic() + seconds
        while not condition(self.text):
            if time.monotonic() > end:
                raise TimeoutError(f"the screen never came to show it:\n{self.text}")
            await self._pilot.pause(0.05)

    async def settle(self, seconds: float = 60.0) -> None:
        """Wait until no case runs and the screen stays the same."""
        before, since, end = "", time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.text
            if text != before or not self.at_rest:
                before, since = text, time.monotonic()
            if time.monotonic() - since > _QUIET_SECONDS:
                return
            await self._pilot.pause(0.05)
        raise TimeoutError(f"the screen never came to rest:\n{self.text}")

    def replace(self, file: str, old: str, new: str) -> None:
        """Save a file of the folder with one text replaced, as an editor would."""
        path = self.folder / file
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} is not once in {file}"
        path.write_text(text.replace(old, new), "utf-8")


@contextmanager
def _demo_folder() -> Iterator[Path]:
    """Make a folder with a short name, which pictures show, unless another process has it."""
    folder = Path(gettempdir()) / "demo"
    try:
        folder.mkdir()
    except FileExistsError:
        with TemporaryDirectory() as other:
            yield Path(other)
    else:
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


@asynccontextmanager
async def opened(size: tuple[int, int], *, only: tuple[str, ...] = ()) -> AsyncIterator[Player]:
    """Open a copy of the sample agents, or of those of their files and folders that `only` names."""
    with _demo_folder() as above:
        folder = above / "sample_agents"
        without = shutil.ignore_patterns("__pycache__", ".workbench", ".adk")
        for name in only or (".",):
            if (SAMPLES / name).is_dir():
                shutil.copytree(SAMPLES / name, folder / name, ignore=without, dirs_exist_ok=True)
            else:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(SAMPLES / name, folder / name)
        (folder / ".git").mkdir()
        async with playing(folder, size) as player:
            yield player


@asynccontextmanager
async def playing(folder: Path, size: tuple[int, int], theme: str = DEFAULT) -> AsyncIterator[Player]:
    """Open a folder in a theme, without the user's settings."""
    settings = config.Settings(folder.parent / "settings.toml")
    themes = Themes()
    app = WorkbenchApp(Session(folder, checks=True), settings, themes, themes.read(theme))
    async with app.run_test(size=size, notifications=True) as pilot:
        player = Player(app, pilot, folder)
        try:
            await player.settle()
            yield player
        finally:
            await asyncio.to_thread(app.main.controllers.thread.close, 2.0)

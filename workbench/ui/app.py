"""The way in: what the command line calls to open the screen. Textual is imported here and not before."""

import gc
import sys
from pathlib import Path

from workbench import config
from workbench.text import one_line, plain
from workbench.ui import terminal
from workbench.ui.watchdog import Watchdog

_REFUSED = 2


def open_screen(
    path: Path,
    *,
    theme: str | None = None,
    mouse: bool = True,
    watch: bool = False,
    state_dir: Path | None = None,
) -> int:
    """Opens the workbench on a folder, evalset or agent until the user leaves; returns the exit code: 0, 2 if it could
    not open (and why is on stderr), 128 + the signal that ended it.

    `theme` None: the one of the settings, else the default. `mouse` False, here or in the settings, leaves the mouse
    to the terminal. `watch` arms the watch. `state_dir` None: `.workbench` in the root.
    """
    before = terminal.Before()
    watchdog = Watchdog(lambda: before.put_back(wait=False))
    watchdog.start()
    terminal.prepare()
    gc.disable()  # Until the first frame: importing makes much that stays and little to collect.
    sys.setswitchinterval(0.0005)  # Until then, too: a thread of Textual's writes it, while this one goes on.
    from workbench.ui.session import Session
    from workbench.ui.themes import DEFAULT, ThemeError, Themes
    from workbench.ui.workbench_app import WorkbenchApp

    settings = config.read_settings()
    themes = Themes([config.folder() / "themes"])
    faults: list[str] = []
    try:
        chosen = themes.read(theme or settings.theme or DEFAULT)
    except ThemeError as error:
        if theme is not None:
            return _refuse(str(error))
        faults.append(str(error))
        chosen = themes.read(DEFAULT)
    if not path.exists():
        return _refuse(f"{path} does not exist")
    app = WorkbenchApp(
        Session(path, state_dir=state_dir, prices=settings.prices, checks=True),
        settings,
        themes,
        chosen,
        faults=faults,
        watch=watch,
        watchdog=watchdog,
    )
    watchdog.last_act = lambda: app.runs.close(timeout=0.5)
    with terminal.restored(before):
        try:
            code = app.run(mouse=mouse and settings.mouse)
        finally:
            app.runs.close(timeout=2.0)
    if app.return_code:
        return app.return_code
    return code or 0


def _refuse(message: str) -> int:
    sys.stderr.write(f"agent-workbench: {plain(one_line(message))}\n")
    return _REFUSED

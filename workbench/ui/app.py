"""Entry point of the screen for the command line. Textual is imported only when the screen opens."""

import gc
import os
import sys
from functools import partial
from pathlib import Path

from workbench.files import settings as config
from workbench.files.folders import settings_folder
from workbench.text.collecting import scan_everything
from workbench.text.safe_text import one_line, plain
from workbench.ui.terminal import terminal
from workbench.ui.terminal.terminal import SIXTEEN_COLORS, Display, Watchdog, find_display, tell_textual


def open_screen(
    path: Path,
    *,
    theme: str | None = None,
    mouse: bool = True,
    watch: bool = False,
    state_dir: Path | None = None,
) -> int:
    """Open the workbench on a folder, evalset or agent. Return the exit code when the user quits.

    The exit code is 0, or 2 if the workbench could not open (the reason is on stderr), or 128 + the signal that ended
    it. A `theme` of None means the one of the settings, else the default. Without `mouse`, here or in the settings, the
    terminal handles the mouse. `watch` and `state_dir` (default: `.workbench` in the root) do not apply to a folder
    that the user opens later.
    """
    before = terminal.TerminalState()
    watchdog = Watchdog(lambda: before.restore(wait=False))
    watchdog.start()
    terminal.prepare()
    shown = find_display(os.environ, sys.stdout.encoding)
    tell_textual(shown)
    gc.disable()  # Until the first frame. Imports leave little to collect.
    sys.setswitchinterval(0.0005)  # Until the first frame, which Textual writes in another thread.
    from workbench.ui.main.workbench_app import WorkbenchApp
    from workbench.ui.session.session import Session
    from workbench.ui.terminal.themes import DEFAULT, ThemeError, Themes

    settings = config.read_settings()
    # Without colours, the filter of lines knows the colours of our own theme only.
    themes = Themes([settings_folder() / "themes"] if shown.colors != "none" else [])
    faults: list[str] = []
    try:
        chosen = themes.read(_theme_name(shown, theme, settings.theme or DEFAULT))
    except ThemeError as error:
        if theme is not None:
            return _refuse(str(error))
        faults.append(str(error))
        chosen = themes.read(DEFAULT)
    if not path.exists():
        return _refuse(f"{path} does not exist")
    try:
        while True:
            app = WorkbenchApp(
                Session(path, state_dir=state_dir, prices=settings.prices, checks=True),
                settings,
                themes,
                chosen,
                faults=faults,
                watch=watch,
                watchdog=watchdog,
                shown=shown,
            )
            watchdog.cleanup = partial(app.close_runs, 0.5)
            try:
                code = app.run(mouse=mouse and settings.mouse)
            finally:
                app.close_runs(2.0)
            if app.return_code or app.main.next_path is None:
                return app.return_code or code or 0
            # The user chose another folder. The settings may have changed meanwhile.
            path, state_dir, watch, faults = app.main.next_path, None, False, []
            settings = config.read_settings()
            chosen = themes.read(app.theme)
            watchdog.cleanup = lambda: None
            del app
            scan_everything()  # The app has cycles, and its cases take much memory.
    finally:
        before.restore()


def _theme_name(shown: Display, named: str | None, saved: str) -> str:
    """Return the initial theme. With sixteen colours, `saved` is ignored, and without colours, `named`, too."""
    if shown.colors == "none":
        return SIXTEEN_COLORS
    return named or (SIXTEEN_COLORS if shown.needs_plain_theme else saved)


def _refuse(message: str) -> int:
    sys.stderr.write(f"agent-workbench: {plain(one_line(message))}\n")
    return 2

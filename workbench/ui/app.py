"""The way in: what the command line calls to open the screen. Textual is imported here and not before."""

import sys
from pathlib import Path

from workbench import config, resources
from workbench.text import one_line, plain
from workbench.ui import terminal

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
    to the terminal. `watch` is not in this version and says so. `state_dir` None: `.workbench` in the root.
    """
    terminal.prepare()
    from workbench.ui.session import Session
    from workbench.ui.themes import DEFAULT, load_themes
    from workbench.ui.workbench_app import WorkbenchApp

    settings = config.read_settings()
    themes, faults = load_themes([resources.themes(), config.folder() / "themes"])
    if theme is not None and theme not in themes:
        return _refuse(f"there is no theme {theme}; there are {', '.join(sorted(themes))}")
    if not path.exists():
        return _refuse(f"{path} does not exist")
    name = theme or settings.theme or DEFAULT
    if name not in themes:
        faults = (*faults, f"there is no theme {name}; there are {', '.join(sorted(themes))}")
        name = DEFAULT
    if watch:
        faults = (*faults, "watching is not in this version: r runs again")
    app = WorkbenchApp(Session(path, state_dir=state_dir), settings, themes, name, faults=faults)
    with terminal.restored():
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

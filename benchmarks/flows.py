"""How much code a reader passes through in three flows: functions, modules, and steps from one module to another.

    python -m benchmarks.flows [--list FLOW]

The flows are `r` to the verdict on the screen, `e` to the bytes of the saved file, and a save of the agent in the watch
to the new verdict. Counted is our own code in this process, in all threads: the child processes are not. A step is a
pair of a function and a function of another module that it calls. `--list` prints the modules of a flow with the number
of their functions.
"""

import argparse
import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

from textual.pilot import Pilot

from benchmarks import figures
from tests.planted import write
from workbench.files.settings import Settings
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import DEFAULT, Themes

_OURS = str(Path(__file__).parents[1] / "workbench")
_CASE = ("slash", *"moved", "enter", "g", "n")
"""Keys to a failed case."""
_SECONDS = 60.0


def _is_counted(code: CodeType) -> bool:
    """Whether this is a function of ours. Bodies of modules and classes run when a module is loaded, not in a flow."""
    is_body = not code.co_flags & inspect.CO_OPTIMIZED
    return not is_body and code.co_filename.startswith(_OURS) and not code.co_name.startswith("<")


class Passed:
    """The functions that were called, and the steps from one module to another."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.steps: set[tuple[CodeType, CodeType]] = set()
        self._counts = False

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is called meanwhile."""
        self._counts = True
        try:
            yield
        finally:
            self._counts = False

    def look(self, frame: FrameType, event: str, _: object) -> None:
        """Take a call, as `sys.setprofile` reports it."""
        if not self._counts or event != "call":
            return
        code = frame.f_code
        if not _is_counted(code):
            return
        self.functions.add(code)
        caller = frame.f_back
        while caller is not None and not _is_counted(caller.f_code):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            self.steps.add((caller.f_code, code))

    @property
    def modules(self) -> Counter[str]:
        """The modules, with the number of their functions that were called."""
        return Counter(code.co_filename for code in self.functions)


async def _until(condition: Callable[[], bool], pilot: Pilot[int]) -> None:
    end = asyncio.get_running_loop().time() + _SECONDS
    while not condition():
        if asyncio.get_running_loop().time() > end:
            raise TimeoutError("the flow did not end")
        await asyncio.sleep(0.01)
    await pilot.pause()


async def _run(pilot: Pilot[int], app: WorkbenchApp, folder: Path, passed: Passed) -> None:
    with passed.counting():
        await pilot.press("r")
        await _ran(pilot, app)


async def _ran(pilot: Pilot[int], app: WorkbenchApp) -> None:
    await _until(lambda: app.session.store.activity.busy, pilot)
    await _until(lambda: not app.session.store.activity.busy, pilot)


async def _edit(pilot: Pilot[int], app: WorkbenchApp, folder: Path, passed: Passed) -> None:
    before = _bytes(folder)
    with passed.counting():
        for key in ("e", "j", "j", "enter", "x", "ctrl+o"):
            await pilot.press(key)
            await pilot.pause()
        await _until(lambda: _bytes(folder) != before, pilot)


def _bytes(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.rglob("*.json"))]


async def _save(pilot: Pilot[int], app: WorkbenchApp, folder: Path, passed: Passed) -> None:
    await pilot.press("w")
    await pilot.pause(2.0)
    await _until(lambda: not app.session.store.activity.busy, pilot)
    with passed.counting():
        for path in folder.rglob("agent.py"):
            path.write_text(path.read_text(encoding="utf-8") + "\n_ADDED = 1\n", encoding="utf-8")
        await _ran(pilot, app)


_FLOWS: dict[str, Callable[[Pilot[int], WorkbenchApp, Path, Passed], Awaitable[None]]] = {
    "r to the verdict": _run,
    "e to the bytes": _edit,
    "save to the verdict": _save,
}


async def _flow(folder: Path, name: str, passed: Passed) -> None:
    themes = Themes()
    app = WorkbenchApp(Session(folder), Settings(folder.parent / "settings.toml"), themes, themes.read(DEFAULT))
    async with app.run_test(size=(120, 40)) as pilot:
        try:
            await _until(lambda: app.session.workspace is not None and not app.session.is_loading, pilot)
            for key in _CASE:
                await pilot.press(key)
            await pilot.pause(1.0)
            await _FLOWS[name](pilot, app, folder, passed)
        finally:
            await asyncio.to_thread(app.close_runs, 1.0)


def main() -> None:
    """Print the three numbers of each flow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=tuple(_FLOWS))
    chosen = parser.parse_args().list
    with TemporaryDirectory() as home:
        os.environ |= dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), home)
        for number, name in enumerate(_FLOWS if chosen is None else (chosen,)):
            passed, folder = Passed(), Path(home) / str(number) / "shop"
            write(folder, passing=24)
            command = [sys.executable, "-m", "workbench", "run", str(folder), "--plain"]
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            look: Any = passed.look
            threading.setprofile(look)
            sys.setprofile(look)
            try:
                asyncio.run(_flow(folder, name, passed))
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            functions, modules, steps = len(passed.functions), len(passed.modules), len(passed.steps)
            print(f"{name}: {functions:,} functions in {modules:,} modules, {steps:,} steps")
            for number_of, unit in ((functions, "functions"), (modules, "modules"), (steps, "steps")):
                figures.record("flows", f"{name}: {unit}", number_of, unit)
            if chosen is not None:
                for module, number in passed.modules.most_common():
                    print(f"  {number:4} {Path(module).relative_to(_OURS)}")


if __name__ == "__main__":
    main()

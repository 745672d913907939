"""The workbench with a run that changes a hundred rows a second: `python -m benchmarks.screen_busy FOLDER [decided]`.

With `decided`, the first run decides every case at once.

Only for `benchmarks.screen`: the run is made up, so that what is measured is the screen alone.
"""

import asyncio
import random
import sys
from pathlib import Path

from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.ui.running.run_thread import Build, Publish
from workbench.ui.terminal import terminal

ROWS_A_SECOND = 100
PLANNED = 2_000


class Busy:
    """A run in which a case starts or ends every hundredth of a second, most of them near the top of the list."""

    def __init__(self, publish: Publish, refs: list[CaseRef], root: str) -> None:
        self._publish, self._refs, self._root = publish, refs, root
        self._over = asyncio.Event()

    async def execute(self) -> None:
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in self._refs)
        self._publish(RunStarted("busy", self._root, "2026-11-21T10:30:00Z", planned))
        dice = random.Random(7)
        while not self._over.is_set():
            for _ in range(5):
                ref = self._refs[dice.randrange(200)]
                self._publish(CaseStarted(ref, 0.0, (), {}))
                self._publish(CaseFinished(ref, dice.choice(("passed", "failed", "error")), None, 0.1))
            await asyncio.sleep(5 / ROWS_A_SECOND)
        self._publish(RunFinished(1.0))

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        self._over.set()

    def stop(self) -> None:
        self._over.set()

    def machines(self) -> tuple[()]:
        return ()


class Decided(Busy):
    """A run that decides all cases at once. One in five fails."""

    async def execute(self) -> None:
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in self._refs)
        self._publish(RunStarted("decided", self._root, "2026-11-21T10:30:00Z", planned))
        for number, ref in enumerate(self._refs):
            score = number % 150 / 150
            self._publish(CaseStarted(ref, 0.0, (), {}))
            for name, threshold in (("tool_trajectory_avg_score", 1.0), ("response_match_score", 0.2)):
                result = MetricResult(name, "passed" if score >= threshold else "failed", score, threshold, "")
                self._publish(MetricScored(ref, result))
            self._publish(CaseFinished(ref, "failed" if number % 5 == 0 else "passed", None, number % 97 / 10))
            if number % 100 == 0:
                await asyncio.sleep(0)
        self._publish(RunFinished(1.0))


def main() -> None:
    """Open the screen. `r` starts the made-up run."""
    terminal.prepare()
    from workbench.files import settings as config
    from workbench.ui.main.workbench_app import WorkbenchApp
    from workbench.ui.running.engine_run import Engine
    from workbench.ui.session.session import Session
    from workbench.ui.terminal.themes import DEFAULT, Themes

    session = Session(Path(sys.argv[1]))

    def build(targets: object, times: object = None) -> Build:
        assert session.workspace is not None
        entry = session.workspace.evalsets[0]
        document = entry.document
        decided = sys.argv[2:] == ["decided"] and not session.store.current
        cases = document.cases if decided else document.cases[:PLANNED]
        refs = [CaseRef("shop", entry.relative, document.eval_set_id, case.eval_id) for case in cases]

        async def busy(publish: Publish) -> Busy:
            return (Decided if decided else Busy)(publish, refs, str(sys.argv[1]))

        return busy

    themes = Themes()
    settings = config.Settings(Path("none.toml"))
    engine = Engine(session, settings)
    engine.build = build  # type: ignore[method-assign, assignment]
    WorkbenchApp(session, settings, themes, themes.read(DEFAULT), engine=engine).run()


if __name__ == "__main__":
    main()

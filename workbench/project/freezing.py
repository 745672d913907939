"""Freezing of cases of a stored run."""

from collections.abc import Sequence
from pathlib import Path

from workbench.agents.targets import find_root
from workbench.authoring.freezing import Freezing, freezing_of
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.plan.selection import refuse_unknown_cases
from workbench.history.state_dir import state_dir
from workbench.history.stored_run import open_run
from workbench.project.scoring import root_of_run

_TRIES = 3


def freeze_run(
    word: str,
    *,
    folder: Path,
    cases: Sequence[str] = (),
    models: bool = False,
    prune: bool = False,
    dry_run: bool = False,
    explicit_state: Path | None = None,
) -> Freezing:
    """Freeze cases of a stored run, and return what was done.

    `word` is an id or the start of one, `last`, or a JSON report. `folder` is in the project. The edit can be undone on
    the screen. Do not call it in an event loop's thread: it reads and writes files.

    Raises:
        UsageFaultError: the run or a case does not exist.
        OSError: a file cannot be read or written. Nothing was written.
    """
    here = find_root(folder)
    run = open_run(word, state_dir(here, explicit_state), folder)
    if not run.cases:
        raise UsageFaultError(f"run {run.run_id} has no cases", "", "nothing")
    refuse_unknown_cases(cases, {ref.eval_id for ref in run.cases}, f"run {run.run_id}")
    root = root_of_run(run, here, explicit_state)
    for tries in range(_TRIES):
        freezing = freezing_of(run, root, cases=cases, models=models, prune=prune)
        try:
            if freezing.contents and not dry_run:
                Saver(state_dir(root, explicit_state)).save(freezing.label, freezing.contents)
            return freezing
        except ChangedOnDiskError as error:
            if tries == _TRIES - 1:
                raise OSError(f"{error.file} is being changed by another program; nothing was frozen") from None
    raise AssertionError

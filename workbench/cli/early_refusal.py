"""What is named on a command line and not there is said before the rooms are loaded that carry it out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.agents.targets import find_root
from workbench.cli.refusal import Refused
from workbench.engine.plan.early import refuse_unknown
from workbench.engine.plan.options import UsageFaultError, UsageKind

if TYPE_CHECKING:
    from workbench.cli.outputs import Wanted
    from workbench.cli.run_command import RunRequest
    from workbench.cli.score_command import ScoreRequest


def refuse_run(request: "RunRequest") -> None:
    """Looks for all that the command line of `run` names.

    Raises:
        UsageFaultError: something of it is not there.
    """
    with _kept_for(request):
        targets = request.targets
        refuse_unknown(targets.selection(), targets.folder)
        _refuse_missing(targets.config, "config")
        _refuse_missing(targets.initial_session_file, "broken_file")


def refuse_score(request: "ScoreRequest") -> None:
    """Looks for the run and the config that the command line of `score` names.

    Raises:
        UsageFaultError: one of them is not there.
    """
    from workbench.history.run_words import place_of
    from workbench.history.state_dir import state_dir

    here = Path.cwd()
    with _kept_for(request):
        place_of(request.run, state_dir(find_root(here), request.state_dir), here)
        _refuse_missing(request.config, "config")


def refuse_runs(words: Sequence[str], explicit: Path | None) -> None:
    """Looks for runs that are to be shown or handed on; `explicit` is what `--state-dir` names.

    Raises:
        UsageFaultError: one of them is not there.
    """
    from workbench.history.run_words import place_of
    from workbench.history.state_dir import state_dir

    here = Path.cwd()
    state = state_dir(find_root(here), explicit)
    for word in words:
        place_of(word, state, here)


def _refuse_missing(file: Path | None, kind: UsageKind) -> None:
    if file is not None and not file.exists():
        raise UsageFaultError(f"{file}: there is no such file", kind=kind)


@contextmanager
def _kept_for(wanted: "Wanted") -> Iterator[None]:
    """A refusal also stands where a report was asked for."""
    try:
        yield
    except UsageFaultError as fault:
        if wanted.json is not None:
            from workbench.cli.outputs import write_refusal_file

            write_refusal_file(wanted, Refused.from_fault(fault))
        raise

"""Stored runs by name, without reading them, in the state folders of a project.

A name is a run's ID or its beginning, `last`, `baseline`, or the path of a JSON report or a result file.
"""

import contextlib
import difflib
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workbench.files.file_access import real_path
from workbench.files.folders import STATE_FOLDER, is_trusted, stored_folders, untrusted_root, untrusted_text
from workbench.files.gitignore import is_repository
from workbench.files.run_options import UsageFaultError
from workbench.store.database.database import database, is_stored, run_path, state_of
from workbench.store.database.opening import FILE_NAME
from workbench.store.database.runs import find_run as run_by_id
from workbench.store.database.runs import run_ids as stored_ids
from workbench.store.database.values import get_value
from workbench.text.counting import counted, few
from workbench.text.json_values import mapping

Age = tuple[bool, str, str, str]
_SECOND = len("2026-11-21T10-30-00")
_ID_TIME = "%Y-%m-%dT%H-%M-%S"
_MAX_DEPTH = 4
_MAX_FOLDERS = 2_000
"""Maximum number of folders searched for nested state folders."""
_IGNORED = frozenset({"node_modules", "site-packages", "__pycache__"})


def ages() -> Callable[[str, str], Age]:
    """Return a sort key for runs, oldest first. Its arguments are the run's ID and start time.

    If the start time is "", the ID tells it. For verdicts that a resumed run made afterwards, it is the time of the
    resume, which counts as later than the IDs of that second. A wrong clock can leave runs that start in the future.
    They would stay the newest until that time comes, so runs more than a day ahead count as the oldest.
    """
    latest = f"{datetime.now(UTC) + timedelta(days=1):{_ID_TIME}}"

    def age(run_id: str, started: str) -> Age:
        start = started or run_id
        second = start[:_SECOND].replace(":", "-")
        return second <= latest, second, start, run_id

    return age


def started_at(run_id: str) -> str:
    """Return the start time in a run's ID (UTC, ISO 8601), or "" if the ID does not begin with a time."""
    try:
        return f"{datetime.strptime(run_id[:_SECOND], _ID_TIME).replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""


def states_of(state: Path) -> list[Path]:
    """Return the state folder `state`, then the trusted ones with runs below its project, nearest first.

    A folder below the project that was opened on its own has its own `.workbench`. With `--state-dir`, only the named
    folder is used.
    """
    return [state, *filter(is_trusted, _states_below(state.parent) if state.name == STATE_FOLDER else ())]


def _states_below(root: Path) -> list[Path]:
    """Return all state folders with runs below `root`, nearest first.

    The search goes a few levels deep. It ignores repositories, hidden folders, environments and installed packages.
    """
    found: list[Path] = []
    level, searched = [root], 0
    for _ in range(_MAX_DEPTH):
        below: list[Path] = []
        for folder in level:
            searched += 1
            if searched > _MAX_FOLDERS:
                return found
            below += _folders_in(folder)
        states = [folder / STATE_FOLDER for folder in below]
        found += [state for state in states if os.path.lexists(state / FILE_NAME)]
        level = below
    return found


def _folders_in(folder: Path) -> list[Path]:
    names = sorted(stored_folders(folder))
    paths = [folder / name for name in names if not name.startswith(".") and name not in _IGNORED]
    return [path for path in paths if not is_repository(path) and not os.path.lexists(path / "pyvenv.cfg")]


def not_shown(state: Path) -> list[str]:
    """Return messages about nested state folders that are not trusted, whose runs are not shown."""
    below = _states_below(state.parent) if state.name == STATE_FOLDER else []
    strange = ["; ".join(untrusted_text(one.parent)) for one in below if not is_trusted(one)]
    if len(strange) > 1:
        strange[1:] = [f"ignored for the same reason: {counted(len(strange) - 1, 'more folder')} below"]
    return strange


LAST = "last"
BASELINE = "baseline"
_NO_RUN_HINT = "`agent-workbench run` stores one, --state-dir selects another folder"
_MAX_LISTED = 5


def find_run(name: str, state: Path, folder: Path | None = None) -> Path:
    """Return the path of the stored run that `name` names (see `run_path`), or of the file `name` in `folder`.

    The file is not read. Without `folder`, only stored runs count.

    Raises:
        UsageFaultError: There is no such run, several match, or it is in a state folder that is not trusted.
    """
    stored = _by_id(name, state)
    if stored is not None:
        return stored
    path = (folder or state) / name
    if folder is not None and name and path.is_file():
        found = real_path(path)
        own = next((parent for parent in found.parents if parent.name == STATE_FOLDER), state)
        message, hint = untrusted_text(own.parent) if own != state else ("", "")
        if message:
            raise UsageFaultError(message, hint)
        return found
    raise _unknown(name, state, path)


def is_there(path: Path) -> bool:
    """Return whether a stored run, or a file, exists."""
    if not is_stored(path):
        return path.exists()
    return path in _runs(state_of(path))


def last_run_without_faults(state: Path) -> str:
    """Return the ID of the newest run in which agents ran cases without injected faults, or `last` if there is none.

    State folders nested in the project are searched, too.
    """
    runs = ((path for path in _runs(one) if not _has_other_verdicts(path, faults=True)) for one in states_of(state))
    found = _newest(path for one in runs if (path := next(one, None)) is not None)
    return LAST if found is None else found.name


def last_run(state: Path) -> Path | None:
    """Return the path of the newest run in which agents ran cases, else of the newest run, else None.

    Runs that only scored another run again have no transcripts of their own. Runs of forks have other conversations
    than their cases.
    """
    runs = _runs(state)
    return next((path for path in runs if not _has_other_verdicts(path)), next(iter(runs), None))


def run_ids(state: Path) -> list[str]:
    """Return the IDs of all stored runs, newest first."""
    return [path.name for path in _runs(state)]


def _by_id(name: str, state: Path) -> Path | None:
    states = states_of(state)
    if name == LAST:
        found = _newest(filter(None, map(last_run, states)))
        if found is None:
            raise UsageFaultError(_no_run(state), _NO_RUN_HINT)
        return found
    if name == BASELINE:
        for one in states:
            pinned = baseline(one)
            if pinned is not None:
                return run_path(one, pinned)
        raise UsageFaultError("no baseline is set", "`agent-workbench history pin RUN` sets it")
    if not name or "/" in name or name in (".", ".."):
        return None
    known = [path for one in states for path in _runs(one)]
    exact = next((path for path in known if path.name == name), None)
    if exact is not None:
        return exact
    matches = [path for path in known if path.name.startswith(name)]
    if len(matches) > 1:
        hint = f"They are {few((path.name for path in matches), _MAX_LISTED)}"
        raise UsageFaultError(f"{counted(len(matches), 'run')} start with {name}", hint)
    return matches[0] if matches else None


def _newest(runs: Iterable[Path]) -> Path | None:
    age = ages()
    return max(runs, key=lambda path: age(path.name, ""), default=None)


def _runs(state: Path) -> list[Path]:
    try:
        found = database(state).read(stored_ids) or []
    except OSError:
        return []
    age = ages()
    newest = sorted((run_id for _, run_id in found), key=lambda run_id: age(run_id, ""), reverse=True)
    return [run_path(state, run_id) for run_id in newest]


def baseline(state: Path) -> str | None:
    """Return the ID of the run pinned as baseline, or None if there is none or it was deleted."""
    try:
        run_id = database(state).read(lambda connection: get_value(connection, BASELINE))
        run = database(state).read(lambda connection: run_by_id(connection, run_id or ""))
    except OSError:
        return None
    return None if run is None else run.run_id


def _has_other_verdicts(path: Path, *, faults: bool = False) -> bool:
    """Return whether a run scored another run again, tried a fork, or has no readable beginning.

    With `faults`, injected faults count, too.
    """
    from workbench.store.history.stored_events import announcement  # 15 ms, and a mistyped name does not need it.

    first = announcement(path)
    if first is None:
        return True  # It was killed before it started, or its beginning is lost: nothing of it can be scored.
    if faults and mapping(first.inputs.get("options")).get("inject"):
        return True
    return bool(first.scored_from) or any(planned.fork is not None for planned in first.cases[:1])


def _unknown(name: str, state: Path, path: Path) -> UsageFaultError:
    if not name:
        return UsageFaultError("the name of the run is empty", _run_hint(state))
    if "/" in name or name.endswith(".json"):
        beside: list[str] = []
        with contextlib.suppress(OSError):
            beside = [item.name for item in path.parent.iterdir() if item.is_file()]
        near = difflib.get_close_matches(path.name, beside, n=1)
        hint = f"Did you mean {near[0]}?" if near else _run_hint(state)
        return UsageFaultError(f"{name} does not exist", hint)
    ids = [run_id for one in states_of(state) for run_id in run_ids(one)]
    near = difflib.get_close_matches(name, [*ids, LAST], n=3, cutoff=0.5)
    hint = f"Similar names: {', '.join(near)}. {_run_hint(state)}" if near else _run_hint(state)
    return UsageFaultError(f"no run {name} found, and no report with that name", hint)


def _run_hint(state: Path) -> str:
    ids = [run_id for one in states_of(state) for run_id in run_ids(one)]
    if not ids:
        return no_run_message(state)
    return f"`agent-workbench history` lists all runs. Newest: {few(ids, _MAX_LISTED)}"


def no_run_message(state: Path) -> str:
    """Return a message that `state` holds no run, and how to get one."""
    others = (line[:1].upper() + line[1:] for line in not_shown(state))
    return ". ".join([f"N{_no_run(state)[1:]}; {_NO_RUN_HINT}", *others])


def _no_run(state: Path) -> str:
    return "no run is stored here" if untrusted_root(state) else f"no run is stored in {state}"

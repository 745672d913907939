"""Stored runs by name, without reading them: lookup, deletion, limits, and the pinned baseline.

A name is a run's ID or its beginning, `last`, `baseline`, or the path of a JSON report or a result file. The baseline,
a run in progress, and a run whose transcripts a remaining run was scored from are never removed by limits.
"""

import difflib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workbench.files.file_access import real_path
from workbench.files.run_options import UsageFaultError
from workbench.files.settings import Limits
from workbench.files.state_folder import STATE_FOLDER, untrusted_root, untrusted_text
from workbench.store.database.database import Connection, database
from workbench.store.database.runs import RunRow, all_runs, facts_of, shrink
from workbench.store.database.runs import delete_runs as delete_stored_runs
from workbench.store.database.runs import find_run as run_by_id
from workbench.store.database.runs import run_ids as stored_ids
from workbench.store.database.values import drop_contents, get_value, set_value
from workbench.store.history.state_dir import ages, is_stored, not_shown, run_path, state_of, states_of
from workbench.store.history.stored_events import announcement
from workbench.text.counting import counted, few
from workbench.text.json_values import mapping

LAST = "last"
BASELINE = "baseline"
_NO_RUN_HINT = "`agent-workbench run` stores one, --state-dir selects another folder"
_MAX_LISTED = 5


def find_run(word: str, state: Path, folder: Path) -> Path:
    """Return the path of the stored run that `word` names (`workbench.store.history.state_dir`), or of the file there.

    The file is not read.

    Raises:
        UsageFaultError: there is no such run, or it is in a state folder that is not trusted.
    """
    stored = _by_id(word, state)
    if stored is not None:
        return stored
    path = folder / word
    if word and path.is_file():
        found = real_path(path)
        _refuse_untrusted(found, state)
        return found
    raise _unknown(word, state, folder)


def _refuse_untrusted(path: Path, state: Path) -> None:
    own = next((parent for parent in path.parents if parent.name == STATE_FOLDER), state)
    message, hint = untrusted_text(own.parent) if own != state else ("", "")
    if message:
        raise UsageFaultError(message, hint)


def refuse_unknown_runs(words: Iterable[str], state: Path, folder: Path) -> None:
    """Check that all runs exist.

    Raises:
        UsageFaultError: one of `words` names no run.
    """
    for word in words:
        find_run(word, state, folder)


def find_stored_run(word: str, state: Path) -> Path:
    """Return the path of the stored run that `word` names, in the state folder or in nested older ones.

    Raises:
        UsageFaultError: there is no such run.
    """
    stored = _by_id(word, state)
    if stored is None:
        raise _unknown(word, state, state)
    return stored


def is_there(path: Path) -> bool:
    """Return whether a stored run, or a file, exists."""
    if not is_stored(path):
        return path.exists()
    return path in _runs(state_of(path))


def last_unharmed_run(state: Path) -> str:
    """Return the ID of the newest run in which agents ran cases and no faults were injected, or `last` without one.

    The state folder's nested older ones are searched, too.
    """
    runs = ((path for path in _runs(one) if not _has_other_verdicts(path, faults=True)) for one in states_of(state))
    found = _newest(path for one in runs if (path := next(one, None)) is not None)
    return LAST if found is None else found.name


def last_run(state: Path) -> Path | None:
    """Return the path of the newest run in which agents ran cases, else of the newest run, else None.

    A run that only scored another one again has no transcripts of its own, and may lack most cases. A fork has
    conversations that are not those of its case.
    """
    runs = _runs(state)
    return next((path for path in runs if not _has_other_verdicts(path)), next(iter(runs), None))


def run_ids(state: Path) -> list[str]:
    """Return the IDs of all stored runs, newest first."""
    return [path.name for path in _runs(state)]


def _by_id(word: str, state: Path) -> Path | None:
    states = states_of(state)
    if word == LAST:
        found = _newest(filter(None, map(last_run, states)))
        if found is None:
            raise UsageFaultError(_no_run(state), _NO_RUN_HINT)
        return found
    if word == BASELINE:
        for one in states:
            pinned = baseline(one)
            if pinned is not None:
                return run_path(one, pinned)
        raise UsageFaultError("no baseline is set", "`agent-workbench history pin RUN` sets it")
    if not word or "/" in word or word in (".", ".."):
        return None
    known = [path for one in states for path in _runs(one)]
    exact = next((path for path in known if path.name == word), None)
    if exact is not None:
        return exact
    matches = [path for path in known if path.name.startswith(word)]
    if len(matches) > 1:
        raise UsageFaultError(
            f"{counted(len(matches), 'run')} start with {word}",
            f"They are {few((p.name for p in matches), _MAX_LISTED)}",
        )
    return matches[0] if matches else None


def _newest(runs: Iterable[Path]) -> Path | None:
    age = ages()
    return max(runs, key=lambda path: age(path.name, ""), default=None)


def _runs(state: Path) -> list[Path]:
    """Return the paths of all runs, newest first by ID; none if the database cannot be read."""
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
    """Return whether a run scored another one, or tried a fork, or with `faults` whether some were injected."""
    first = announcement(path)
    if first is None:
        return True  # It was killed before it started, or its beginning is lost: nothing of it can be scored.
    if faults and mapping(first.inputs.get("options")).get("inject"):
        return True
    return bool(first.scored_from) or any(planned.fork is not None for planned in first.cases[:1])


def _unknown(word: str, state: Path, folder: Path) -> UsageFaultError:
    if not word:
        return UsageFaultError("the name of the run is empty", _run_hint(state))
    if "/" in word or word.endswith(".json"):
        near = difflib.get_close_matches(Path(word).name, _names_beside(folder / word), n=1)
        hint = f"Did you mean {near[0]}?" if near else _run_hint(state)
        return UsageFaultError(f"{word} does not exist", hint)
    ids = _all_ids(state)
    near = difflib.get_close_matches(word, [*ids, LAST], n=3, cutoff=0.5)
    hint = f"Similar names: {', '.join(near)}. {_run_hint(state)}" if near else _run_hint(state)
    return UsageFaultError(f"no run {word} found, and no report with that name", hint)


def _all_ids(state: Path) -> list[str]:
    return [run_id for one in states_of(state) for run_id in run_ids(one)]


def _names_beside(path: Path) -> list[str]:
    try:
        return [item.name for item in path.parent.iterdir() if item.is_file()]
    except OSError:
        return []


def _run_hint(state: Path) -> str:
    """Return a hint that lists stored runs."""
    ids = _all_ids(state)
    if not ids:
        return no_run_message(state)
    return f"`agent-workbench history` lists all runs. Newest: {few(ids, _MAX_LISTED)}"


def no_run_message(state: Path) -> str:
    """Return a message that `state` holds no run, and how to get one."""
    others = (line[:1].upper() + line[1:] for line in not_shown(state))
    return ". ".join([f"N{_no_run(state)[1:]}; {_NO_RUN_HINT}", *others])


def _no_run(state: Path) -> str:
    return "no run is stored here" if untrusted_root(state) else f"no run is stored in {state}"


_SPARE = 20
"""The limit may be exceeded by one part in 20 before anything is deleted."""
_MEGABYTE = 1024 * 1024
_DAY = len("2026-11-21")
_RECENT = 3600.0
"""Contents used in the last hour stay: a run in progress may not have named them yet."""


def pin(state: Path, run_id: str) -> None:
    """Make a run the baseline, in place of any other.

    Raises:
        OSError: the database cannot be written, or another workbench has deleted the run.
    """

    def change(connection: Connection) -> None:
        if run_by_id(connection, run_id) is None:
            raise FileNotFoundError(2, "no such run", str(run_path(state, run_id)))
        set_value(connection, BASELINE, run_id)

    database(state).write(change)


def unpin(state: Path) -> None:
    """Clear the baseline. Raises OSError."""
    if database(state).exists:
        database(state).write(lambda connection: set_value(connection, BASELINE, None))


def delete_runs(state: Path, run_ids: Iterable[str]) -> list[str]:
    """Delete runs that are not being written, and file contents that no other run uses. Return the deleted IDs.

    Raises:
        OSError: the database cannot be written. Nothing was deleted.
    """
    wanted = list(run_ids)
    return _delete(state, lambda connection: wanted) if wanted else []


def deletable_runs(state: Path, keep: int) -> list[str]:
    """Return the IDs of runs beyond the newest `keep` that may be deleted."""

    def ask(connection: Connection) -> list[str]:
        runs = _newest_first(connection)
        return _deletable(connection, runs[:keep], runs[keep:])

    return database(state).read(ask) or []


def tidy(state: Path, limits: Limits) -> list[str]:
    """Delete the oldest runs beyond `limits`, and return their IDs.

    The limits may be slightly exceeded, so that not every run leads to deletions. Reads and writes the database, so do
    not call it in an event loop's thread.

    Raises:
        OSError: the database cannot be read or written.
    """
    if not database(state).read(lambda connection: _exceeds(_newest_first(connection), limits)):
        return []

    def choose(connection: Connection) -> list[str]:
        runs = _newest_first(connection)
        return _deletable(connection, *_split(runs, limits)) if _exceeds(runs, limits) else []

    return _delete(state, choose)


def _exceeds(runs: Sequence[RunRow], limits: Limits) -> bool:
    most = limits.megabytes * _MEGABYTE
    if limits.runs and len(runs) > limits.runs + limits.runs // _SPARE:
        return True
    if most and sum(run.bytes for run in runs) > most + most // _SPARE:
        return True
    return bool(limits.days and runs and min(run.run_id for run in runs)[:_DAY] < _day_before(limits.days + 1))


def _split(runs: Sequence[RunRow], limits: Limits) -> tuple[list[RunRow], list[RunRow]]:
    """Return the runs within the limits and those beyond. The newest run always stays."""
    stay: list[RunRow] = []
    go: list[RunRow] = []
    size, oldest = 0, _day_before(limits.days) if limits.days else ""
    for run in runs:
        size += run.bytes if limits.megabytes else 0
        beyond = (
            (limits.runs and len(stay) >= limits.runs)
            or (limits.megabytes and size > limits.megabytes * _MEGABYTE)
            or run.run_id[:_DAY] < oldest
        )
        (go if beyond and stay else stay).append(run)
    return stay, go


def _deletable(connection: Connection, stay: Sequence[RunRow], go: Sequence[RunRow]) -> list[str]:
    needed = {name for run in stay for name in run.scored_from.split(", ")} | {get_value(connection, BASELINE)}
    return [run.run_id for run in go if run.run_id not in needed and not run.is_being_written]


def _newest_first(connection: Connection) -> list[RunRow]:
    age = ages()
    return sorted(all_runs(connection), key=lambda run: age(run.run_id, run.started), reverse=True)


def _delete(state: Path, choose: Callable[[Connection], Iterable[str]]) -> list[str]:
    """Delete runs in one change, and give their space back. Another workbench may have deleted some of them."""

    def change(connection: Connection) -> list[str]:
        chosen = {run.id: run.run_id for name in choose(connection) if (run := run_by_id(connection, name)) is not None}
        gone = delete_stored_runs(connection, chosen)
        if gone:
            _drop_unused(connection)
        return [chosen[number] for number in gone]

    deleted = database(state).write(change)
    if deleted:
        database(state).write(shrink)
    return deleted


def _drop_unused(connection: Connection) -> None:
    """Delete contents that no run uses. If that is not known of a damaged run, nothing is deleted."""
    used: set[str] = set()
    for run in all_runs(connection):
        facts = facts_of(connection, run.id)
        try:
            sources = json.loads(facts or "")["sources"]
        except (ValueError, KeyError, TypeError):
            if run.events:
                return
            continue
        for files in sources.values() if isinstance(sources, dict) else ():
            used.update(digest for digest in files.values() if isinstance(digest, str))
    drop_contents(connection, used, time.time() - _RECENT)


def _day_before(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"

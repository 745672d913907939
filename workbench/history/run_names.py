"""Lookup of stored runs by name, without reading them.

A name is a run's ID or its beginning, `last`, `baseline`, or the path of a JSON report, a run's folder or its journal.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

from workbench.counting import counted, few
from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.ages import ages
from workbench.history.state_dir import JOURNAL_FILE, runs_dir, states_of
from workbench.json_values import mapping
from workbench.state_folder import NO_STATE, STATE_FOLDER, read_stored, stored_folders, untrusted_text

LAST = "last"
BASELINE = "baseline"
_NO_RUN_HINT = "`agent-workbench run` stores one, --state-dir selects another folder"
_MAX_LISTED = 5
_MAX_NAME = 1000
"""Bytes of the file with the baseline."""


def find_run(word: str, state: Path, folder: Path) -> Path:
    """Return the journal of the stored run that `word` names, or the file at that path. The file is not read.

    Raises:
        UsageFaultError: there is no such run, or it is in a state folder that is not trusted.
    """
    journal = _by_id(word, state)
    if journal is not None:
        return journal
    path = folder / word
    for named in (path, path / JOURNAL_FILE) if word else ():
        if named.is_file():
            # A journal is read without following links, but the user may name it through some.
            found = named.resolve()
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
    """Return the journal of the stored run that `word` names, in the state folder or in nested older ones.

    Raises:
        UsageFaultError: there is no such run.
    """
    journal = _by_id(word, state)
    if journal is None:
        raise _unknown(word, state, state)
    return journal


def state_of(journal: Path) -> Path:
    """Return the state folder that contains a journal."""
    return journal.parents[2]


def last_unharmed_run(state: Path) -> str:
    """Return the ID of the newest run in which agents ran cases and no faults were injected, or `last` without one.

    The state folder's nested older ones are searched, too.
    """
    runs = ((path for path in _journals(one) if not _has_other_verdicts(path, faults=True)) for one in states_of(state))
    found = _newest(path for one in runs if (path := next(one, None)) is not None)
    return LAST if found is None else found.parent.name


def last_run(state: Path) -> Path | None:
    """Return the journal of the newest run in which agents ran cases, else of the newest run, else None.

    A run that only scored another one again has no transcripts of its own, and may lack most cases. A fork has
    conversations that are not those of its case.
    """
    journals = _journals(state)
    return next((path for path in journals if not _has_other_verdicts(path)), next(iter(journals), None))


def run_ids(state: Path) -> list[str]:
    """Return the IDs of all stored runs, newest first."""
    return [path.parent.name for path in _journals(state)]


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
                return runs_dir(one) / pinned / JOURNAL_FILE
        raise UsageFaultError("no baseline is set", "`agent-workbench history pin RUN` sets it")
    if not word or "/" in word or word in (".", ".."):
        return None
    for one in states:
        exact = runs_dir(one) / word / JOURNAL_FILE
        if exact.is_file():
            return exact
    matches = [path for one in states for path in _journals(one) if path.parent.name.startswith(word)]
    if len(matches) > 1:
        raise UsageFaultError(
            f"{counted(len(matches), 'run')} start with {word}",
            f"They are {few((p.parent.name for p in matches), _MAX_LISTED)}",
        )
    return matches[0] if matches else None


def _newest(journals: Iterable[Path]) -> Path | None:
    age = ages()
    return max(journals, key=lambda path: age(path.parent.name, ""), default=None)


def _journals(state: Path) -> list[Path]:
    """Return the journals of all runs, newest first by ID."""
    runs = runs_dir(state)
    found = [path for name in stored_folders(runs) if (path := runs / name / JOURNAL_FILE).is_file()]
    age = ages()
    return sorted(found, key=lambda path: age(path.parent.name, ""), reverse=True)


def baseline(state: Path) -> str | None:
    """Return the ID of the run pinned as baseline, or None if there is none or it was deleted."""
    try:
        run_id = read_stored(state / BASELINE, _MAX_NAME).decode("utf-8", "replace").strip()
        return run_id if run_id and "/" not in run_id and (runs_dir(state) / run_id / JOURNAL_FILE).is_file() else None
    except OSError:  # Also raised for a name that is too long.
        return None


def _has_other_verdicts(path: Path, *, faults: bool = False) -> bool:
    """Return whether a run scored another one, or tried a fork, or with `faults` whether some were injected."""
    from workbench.events import RunStarted
    from workbench.history.journal import read_journal

    try:
        first = next((event for event in read_journal(path) if isinstance(event, RunStarted)), None)
    except (OSError, ValueError):
        return True  # An unreadable run has no transcripts to score.
    if first is None:
        return True  # It was killed before it started.
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
    return f"N{_no_run(state)[1:]}; {_NO_RUN_HINT}"


def _no_run(state: Path) -> str:
    return "no run is stored here" if state == NO_STATE else f"no run is stored in {runs_dir(state)}"

"""Which kept run a word means, by its name alone: nothing is read that a mistyped name would have to wait for.

A word is a run's id or the beginning of one, `last`, `baseline`, or the path of a JSON report, of a run's folder or
of the journal in it.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

from workbench.agents.targets import find_root
from workbench.counting import counted, few
from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.ages import ages
from workbench.history.state_dir import JOURNAL_FILE, runs_dir, state_dir, states_of

LAST = "last"
BASELINE = "baseline"
_LISTED = 5


def place_of(word: str, state: Path, folder: Path) -> Path:
    """The journal of the kept run that `word` means, or the file; nothing of it is read yet.

    Raises:
        UsageFaultError: there is no such run.
    """
    journal = _by_id(word, state)
    if journal is not None:
        return journal
    path = folder / word
    if word and path.is_file():
        return path
    if word and (path / JOURNAL_FILE).is_file():
        return path / JOURNAL_FILE
    raise _unknown(word, state, folder)


def refuse_unknown_runs(words: Iterable[str], explicit_state: Path | None) -> Path:
    """Refuse words that mean no run, as seen from the current folder, and return the state folder of its project.

    `explicit_state` is what `--state-dir` names.

    Raises:
        UsageFaultError: there is no such run.
    """
    here = Path.cwd()
    state = state_dir(find_root(here), explicit_state)
    for word in words:
        place_of(word, state, here)
    return state


def kept_place(word: str, state: Path) -> Path:
    """The journal of the kept run that `word` means, in the state folder `state` or an older one below its project.

    Raises:
        UsageFaultError: there is no such run.
    """
    journal = _by_id(word, state)
    if journal is None:
        raise _unknown(word, state, state)
    return journal


def state_of(journal: Path) -> Path:
    """The state folder that a journal lies in."""
    return journal.parents[2]


def last_run(state: Path) -> Path | None:
    """The journal of the newest run in which agents ran, else of the newest of all; None if none is kept. A run that
    only scored another one again has no transcripts of its own, and may lack most cases."""
    journals = _journals(state)
    return next((path for path in journals if not _scored_again(path)), next(iter(journals), None))


def run_ids(state: Path) -> list[str]:
    """The ids of all runs that are kept, the newest first."""
    return [path.parent.name for path in _journals(state)]


def _by_id(word: str, state: Path) -> Path | None:
    states = states_of(state)
    if word == LAST:
        found = _newest(filter(None, map(last_run, states)))
        if found is None:
            raise UsageFaultError(f"no run is kept in {runs_dir(state)}", _where_runs_are(state))
        return found
    if word == BASELINE:
        for one in states:
            pinned = baseline(one)
            if pinned is not None:
                return runs_dir(one) / pinned / JOURNAL_FILE
        raise UsageFaultError("no run is the baseline", "`agent-workbench history pin RUN` makes one")
    if not word or "/" in word or word in (".", ".."):
        return None
    for one in states:
        exact = runs_dir(one) / word / JOURNAL_FILE
        if exact.is_file():
            return exact
    begun = [path for one in states for path in _journals(one) if path.parent.name.startswith(word)]
    if len(begun) > 1:
        raise UsageFaultError(
            f"{counted(len(begun), 'run')} begin with {word}",
            f"They are {few((p.parent.name for p in begun), _LISTED)}",
        )
    return begun[0] if begun else None


def _newest(journals: Iterable[Path]) -> Path | None:
    age = ages()
    return max(journals, key=lambda path: age(path.parent.name, ""), default=None)


def _journals(state: Path) -> list[Path]:
    """The journals of all runs, the newest first, by their ids."""
    try:
        found = [path for folder in runs_dir(state).iterdir() if (path := folder / JOURNAL_FILE).is_file()]
    except OSError:
        return []
    age = ages()
    return sorted(found, key=lambda path: age(path.parent.name, ""), reverse=True)


def baseline(state: Path) -> str | None:
    """The id of the run that is pinned; None where none is, or it is gone."""
    try:
        run_id = (state / BASELINE).read_text(encoding="utf-8", errors="replace").strip()
        return run_id if run_id and "/" not in run_id and (runs_dir(state) / run_id / JOURNAL_FILE).is_file() else None
    except OSError:  # Also of a name that is too long for one.
        return None


def _scored_again(path: Path) -> bool:
    from workbench.events import RunStarted
    from workbench.history.journal import read_journal

    try:
        first = next((event for event in read_journal(path) if isinstance(event, RunStarted)), None)
    except (OSError, ValueError):
        return True  # Nothing can be scored from it.
    return first is None or bool(first.scored_from)  # None: it was killed before it began.


def _unknown(word: str, state: Path, folder: Path) -> UsageFaultError:
    if not word:
        return UsageFaultError("the run has an empty name", _where_runs_are(state))
    if "/" in word or word.endswith(".json"):
        near = difflib.get_close_matches(Path(word).name, _names_beside(folder / word), n=1)
        hint = f"Beside it there is {near[0]}" if near else _where_runs_are(state)
        return UsageFaultError(f"{word} does not exist", hint)
    ids = _all_ids(state)
    near = difflib.get_close_matches(word, [*ids, LAST], n=3, cutoff=0.5)
    hint = f"The nearest: {', '.join(near)}. {_where_runs_are(state)}" if near else _where_runs_are(state)
    return UsageFaultError(f"no run {word} is kept, and there is no report of that name", hint)


def _all_ids(state: Path) -> list[str]:
    return [run_id for one in states_of(state) for run_id in run_ids(one)]


def _names_beside(path: Path) -> list[str]:
    try:
        return [item.name for item in path.parent.iterdir() if item.is_file()]
    except OSError:
        return []


def _where_runs_are(state: Path) -> str:
    """How to see which runs there are."""
    ids = _all_ids(state)
    if not ids:
        return no_run_kept(state)
    return f"`agent-workbench history` lists the runs that are kept, the newest: {few(ids, _LISTED)}"


def no_run_kept(state: Path) -> str:
    """That `state` holds no run, and where there are some."""
    way = "`agent-workbench run` keeps one, --state-dir names another folder"
    return f"No run is kept in {runs_dir(state)}; {way}"

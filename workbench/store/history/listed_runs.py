"""The list of all runs to show, newest first.

It has our runs, runs of `adk eval`, `adk web` and `agents-cli eval grade`, and runs that cannot be read.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.store.history.adk_results import adk_entries
from workbench.store.history.agents_cli_results import agents_cli_entries
from workbench.store.history.state_dir import Age, ages, not_shown, run_path
from workbench.store.history.stored_runs import list_runs
from workbench.store.history.summary import ListEntry, split_unreached


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list.

    - `path`: names the run (`workbench.store.history.state_dir`), or is ADK's result file. `word`: the name that
      `open_summary` finds it by.
    - `seconds`: None if unknown. `ended`: False if its end is not stored.
    - `better`: how many more cases passed than in the last run of the same cases, one vote per case. None without
      such a run.
    - `trouble`: why the run cannot be read.
    - `adk`: whether another program made it, and `made_by`: "adk" or "agents-cli".
    - `by_function`: whether a function judged anything.
    - `other_criteria`: whether criteria were changed for this run only.
    - `injected`: whether faults were injected into calls.
    - `fork`: the run that it forks, or "".
    - `frozen`: number of executions that were replayed.
    """

    run_id: str
    path: str
    started: str = ""
    seconds: float | None = None
    ended: bool = True
    interrupted: bool = False
    scored_from: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    commit: str = ""
    dirty: bool = False
    agents: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    adk: bool = False
    made_by: str = ""
    by_function: bool = False
    other_criteria: bool = False
    better: float | None = None
    trouble: str = ""
    injected: bool = False
    fork: str = ""
    frozen: int = 0

    @property
    def file(self) -> Path:
        """The path that names the run, or that of ADK's result file."""
        return Path(self.path)

    @property
    def word(self) -> str:
        """Name that finds the run: its ID, or the path of an ADK result file."""
        return self.path if self.adk else self.run_id

    @property
    def total(self) -> int:
        """Number of cases, counting repeats."""
        return sum(self.counts.values())


def newest_runs(state: Path) -> list[ListedRun]:
    """Return our runs without ADK's, the newest first."""
    return _listed_runs([(run, _named(state, run["run_id"])) for run in list_runs(state).runs])


def list_all_runs(state: Path, root: Path, agents: Iterable[Path]) -> tuple[list[ListedRun], list[str]]:
    """Return our runs and ADK's, the newest first, and what is not shown or only in part.

    Reads what `list_runs` reads, and every result file of ADK.
    """
    found = list_runs(state)
    folders = list(agents)
    entries, trouble = adk_entries(folders, root, {run["run_id"] for run in found.runs})
    others, more = agents_cli_entries(folders, root)
    entries, trouble = [*entries, *others], [*trouble, *more]
    listed = [(run, _named(state, run["run_id"])) for run in found.runs]
    listed += [(entry, str(root / entry["file"])) for entry in entries]
    if entries:
        age = _age()
        listed.sort(key=lambda item: age(item[0]), reverse=True)
    runs = _listed_runs(listed)
    for run_id, why in found.unreadable.items():
        broken = ListedRun(run_id, _named(state, run_id), _start_time(run_id), trouble=why)
        insort(runs, broken, key=lambda run: _reversed(run.started))
    partly = [line for line in found.trouble if line not in found.unreadable.values()]
    return runs, [*partly, *trouble, *not_shown(state)]


def _named(state: Path, run_id: str) -> str:
    return str(run_path(state, run_id))


def _age() -> Callable[[ListEntry], Age]:
    age = ages()
    return lambda run: age(run["run_id"], str(run.get("started")))


def _start_time(run_id: str) -> str:
    """Return when a run began, from its ID, such as `2026-11-21T10-30-00-3f2a`."""
    return f"{run_id[:13]}:{run_id[14:16]}:{run_id[17:19]}Z"


def _reversed(text: str) -> tuple[int, ...]:
    """Return a key that sorts texts in descending order."""
    return tuple(-ord(letter) for letter in text)


def _listed_runs(listed: list[tuple[ListEntry, str]]) -> list[ListedRun]:
    """Return the runs, each compared with the previous run of the same cases."""
    passed: dict[tuple[Any, ...], float] = {}
    runs: list[ListedRun] = []
    for entry, path in reversed(listed):
        counts = entry.get("counts")
        seconds, adk = entry.get("seconds"), bool(entry.get("adk"))
        unreached = (entry.get("no_verdict") or 0) if seconds is None else 0
        counts = split_unreached(counts if isinstance(counts, dict) else {}, unreached)
        ended = adk or seconds is not None
        agents, files = tuple(entry.get("agents") or ()), tuple(entry.get("files") or ())
        # Only runs that decided the same cases are compared, one vote per case.
        key, votes = (adk, agents, entry.get("decided")), entry.get("votes") or 0.0
        whole = (
            bool(sum(counts.values()))
            and ended
            and not entry.get("interrupted")
            and not (entry.get("injected") or entry.get("fork"))
        )
        better = votes - passed[key] if whole and key in passed else None
        if whole:
            passed[key] = votes
        runs.append(
            ListedRun(
                entry["run_id"],
                path,
                entry.get("started") or "",
                seconds,
                ended,
                bool(entry.get("interrupted")),
                entry.get("scored_from") or "",
                counts,
                entry.get("calls") or 0,
                entry.get("tokens") or 0,
                entry.get("commit") or "",
                bool(entry.get("dirty")),
                agents,
                files,
                adk,
                str(entry.get("made_by") or ("adk" if adk else "")),
                bool(entry.get("by_function")),
                bool(entry.get("other_criteria")),
                better,
                injected=bool(entry.get("injected")),
                fork=str(entry.get("fork") or ""),
                frozen=entry.get("frozen") or 0,
            )
        )
    runs.reverse()
    return runs

"""All runs that a person may look at, the newest first: ours, those of `adk eval` and `adk web`, and those of which
nothing can be read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.history.adk_results import adk_entries
from workbench.history.journal import FILE_NAME
from workbench.history.run_list import list_runs
from workbench.history.state_dir import runs_dir
from workbench.history.summary_files import IndexEntry


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run in the list. `file` is its journal or ADK's result file; `word` what `open_summary` finds it by. `seconds`
    is None where nobody knows; `ended` False where its end is not on disk. `better` is how many more cases passed than
    in the run before it of the same evalsets with as many cases; None where there is none. `trouble`: why nothing of
    it can be read."""

    run_id: str
    file: Path
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
    better: int | None = None
    trouble: str = ""

    @property
    def word(self) -> str:
        return str(self.file) if self.adk else self.run_id

    @property
    def total(self) -> int:
        """How many cases it has, repeats counted."""
        return sum(self.counts.values())


def kept_runs(state: Path, root: Path, agents: Iterable[Path]) -> tuple[list[KeptRun], list[str]]:
    """The runs of a state folder and of the folders of agents, and what is wrong with those that can be read in part.
    Reads what `list_runs` reads, and every result file of ADK."""
    found = list_runs(state)
    entries, trouble = adk_entries(agents, root)
    folder = runs_dir(state)
    runs = [_run(entry, folder / entry["run_id"] / FILE_NAME) for entry in found.runs]
    runs += [replace(_run(entry, root / entry["file"]), adk=True, ended=True) for entry in entries]
    runs += [KeptRun(run_id, folder / run_id / FILE_NAME, trouble=why) for run_id, why in found.unreadable.items()]
    runs.sort(key=_age, reverse=True)
    partly = [line for line in found.trouble if line not in found.unreadable.values()]
    return _compared(runs), [*partly, *trouble]


def _age(run: KeptRun) -> tuple[str, str]:
    # An id begins with the time: `2026-11-21T10-30-00-3f2a`.
    return run.started or f"{run.run_id[:13]}:{run.run_id[14:16]}:{run.run_id[17:19]}Z", run.run_id


def _run(entry: IndexEntry, file: Path) -> KeptRun:
    seconds, counts = entry.get("seconds"), entry.get("counts")
    return KeptRun(
        run_id=str(entry["run_id"]),
        file=file,
        started=str(entry.get("started") or ""),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        ended=seconds is not None,
        interrupted=bool(entry.get("interrupted")),
        scored_from=str(entry.get("scored_from") or ""),
        counts=counts if isinstance(counts, dict) else {},
        calls=_count(entry.get("calls")),
        tokens=_count(entry.get("tokens")),
        commit=str(entry.get("commit") or ""),
        dirty=bool(entry.get("dirty")),
        agents=tuple(map(str, entry.get("agents") or ())),
        files=tuple(map(str, entry.get("files") or ())),
    )


def _compared(runs: list[KeptRun]) -> list[KeptRun]:
    """The runs with how each came out against the one before it."""
    passed: dict[tuple[Any, ...], int] = {}
    for place in range(len(runs) - 1, -1, -1):
        run = runs[place]
        # ADK's names end with the time and do not say which file it was.
        of = run.run_id.rpartition("_")[0] if run.adk else run.files
        key = (run.agents, of, run.total)
        now = run.counts.get("passed", 0)
        if key in passed and run.total:
            runs[place] = replace(run, better=now - passed[key])
        if run.total and run.ended and not run.interrupted:
            passed[key] = now
    return runs


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0

"""The pass rate over the runs that are kept: of the same cases in each, one vote per case."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.history.run_list import list_runs, load_summary
from workbench.history.votes import Case, are_enough, case_votes

MOST = 60
"""So many runs are shown, the newest."""
_ROWS = 100_000
"""Executions that are read for it: a summary of 10,000 takes about a tenth of a second."""


@dataclass(frozen=True, slots=True)
class RunRate:
    """One run: how many of the `total` cases passed; one that passed in some of its repeats counts as their share.
    `started` is UTC in ISO 8601."""

    run_id: str
    started: str
    passed: float
    total: int

    @property
    def rate(self) -> float:
        return self.passed / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs of the same cases, the oldest first. `wanted` is how many cases were asked for; each rate is over those of
    them that all the runs decided. `left_out` counts runs that decided too few of them."""

    rates: tuple[RunRate, ...] = ()
    wanted: int = 0
    left_out: int = 0

    @property
    def is_comparable(self) -> bool:
        """Whether there are two runs, so that there is a trend at all."""
        return len(self.rates) > 1

    @property
    def cases(self) -> int:
        """How many cases each rate is over."""
        return self.rates[0].total if self.rates else 0


def pass_rates(state: Path, wanted: Collection[Case], *, until: str = "", most: int = MOST) -> Trend:
    """Return the trend of these cases over the newest runs of a state folder, up to the one that started at `until`.

    The runs are gone through from the newest one on. One is left out if it and those before it have not decided at
    least half of the wanted cases together: a rerun of three cases says nothing of sixty. Runs that were interrupted,
    or of which nothing can be read, are passed over. For a thread."""
    shared = set(wanted)
    found: list[tuple[dict[str, Any], dict[Case, float]]] = []
    left_out = rows = 0
    for entry in list_runs(state).runs:
        if len(found) == most or rows > _ROWS:
            break
        whole = entry.get("seconds") is not None and not entry.get("interrupted")
        if not whole or (until and str(entry.get("started")) > until) or not _may_share(entry, wanted):
            continue
        rows += sum((entry.get("counts") or {}).values())
        votes = _votes(state, entry)
        both = shared & votes.keys()
        if are_enough(both, wanted):
            shared = both
            found.append((entry, votes))
        else:
            left_out += bool(votes.keys() & set(wanted))
    rates = tuple(_rate(entry, votes, shared) for entry, votes in reversed(found))
    return Trend(rates, len(wanted), left_out)


def _may_share(entry: dict[str, Any], wanted: Collection[Case]) -> bool:
    return not {file for file, _ in wanted}.isdisjoint(entry.get("files") or ())


def _votes(state: Path, entry: dict[str, Any]) -> dict[Case, float]:
    try:
        return case_votes(load_summary(state, entry["run_id"])[0].rows.values())
    except (OSError, ValueError):
        return {}


def _rate(entry: dict[str, Any], votes: dict[Case, float], shared: set[Case]) -> RunRate:
    passed = sum(votes[case] for case in shared)
    return RunRate(entry["run_id"], str(entry.get("started") or ""), passed, len(shared))

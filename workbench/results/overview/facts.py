"""The content of an overview, for any set of cases."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.files.faults import Fault
from workbench.results.cause_groups import CauseGroup
from workbench.results.overview.tally import Tally

if TYPE_CHECKING:
    from workbench.store.history.pass_rates import Trend

LISTED_CHANGES = 8
"""The most lines about changed cases that are shown."""
Case: TypeAlias = tuple[int, int]
"""A case as (evalset, case)."""


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A case whose verdict differs from that in an earlier run.

    `name`, `before` and `after` are safe texts. `worse`: fewer of its executions pass.
    """

    case: Case
    name: str
    before: str
    after: str
    worse: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """The number of verdicts that changed since an earlier run, which began at `since` (such as `13:40`).

    `cases` are the first of them, the worse before the better, at least `LISTED_CHANGES` if there are so many.
    """

    since: str
    cases: Sequence[ChangedVerdict] = ()
    worse: int = 0
    better: int = 0

    @property
    def total(self) -> int:
        """The number of changed verdicts."""
        return self.worse + self.better


@dataclass(frozen=True, slots=True)
class Spent:
    """The time and money (else tokens) that the cases took, as safe texts. "" is left out."""

    time: str = ""
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """All that is known about some cases.

    `cases` is their number. `groups` are the failing ones by cause. `changes` and `trend` are None while they are read,
    or if there is nothing to compare with. `foot` has the problems of an agent.
    """

    tally: Tally = field(default_factory=Tally)
    cases: int = 0
    groups: Sequence[CauseGroup[Case]] = ()
    spent: Spent = Spent()
    changes: Changes | None = None
    trend: "Trend | None" = None
    foot: Sequence[tuple[str, str]] = ()
    """Labels and texts, both safe. Without a text, the label is a heading."""
    file: EvalsetEntry | None = None
    """The evalset that the overview is about, if it is one."""
    found: tuple[Fault, ...] = ()
    """The problems that `check` found in the evalset."""

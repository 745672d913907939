"""The parts of the main screen that decide which actions can work. Pure, so that tests can name any place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

_DECIDED = ("passed", "failed", "error", "not_evaluated")


def _one(action: str) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class Situation:
    """The place of the cursor and the state of the run.

    Attributes:
        folder: What the open folder holds. `reading` before it was read, `unreadable` if that failed, `agents` if there
            are agents without evalsets.
        row: Kind of the row under the cursor, or "" in an empty tree.
        state: Status of the case under the cursor, `not_run` if it never ran, or "" on other rows.
        side: The part that has the focus: the cases, the filter while the user types, the panes of a case, or a page.
        case_shown: Whether the right side shows the panes of a case or evalset.
        folded: Whether the pane has anything under the cursor to unfold, to fold or to go to.
        count: Returns the number of cases on which the action with this ID would act.
        marked: Number of marked cases.
        marking: Whether a range is being marked.
        filtered: Whether a filter is active.
        problems: Whether any case failed or ended in an error.
        verdicts: Whether any case has a verdict, or is about to get one.
        changed: Whether any verdict changed.
        busy: Whether a run is active or requested.
        running: Whether a run is active, so that it can be cancelled.
        watching: Whether the watch is on.
        agents: Whether the project has agents.
        back_to: Name of the page to which esc leads from the panes, such as `table`, or "" for the cases.
        selected: Number of cases for which the selected row of the overview stands, or 0.
        opens: Returns the name of the file and line that `E` opens, such as `agent.py:38`, or "".
        drifted: Whether any case of the last run differs from its recording.
        kills: Returns whether all cases that `x` takes were cancelled once, so that it kills them.
        machines: Whether the last run was on other machines.
        as_expected: Returns whether the case under the cursor is shown, and did exactly what is expected.
        missed: Whether the case under the cursor lacks a recording, or has one that cannot be read.
    """

    folder: Literal["reading", "unreadable", "nothing", "agents", "cases"] = "cases"
    row: Literal["", "all", "agent", "evalset", "case", "repeat"] = "all"
    state: str = ""
    side: Literal["cases", "filter", "panes", "page"] = "cases"
    case_shown: bool = False
    folded: bool = True
    count: Callable[[str], int] = _one
    marked: int = 0
    marking: bool = False
    filtered: bool = False
    problems: bool = False
    verdicts: bool = False
    changed: bool = False
    busy: bool = False
    running: bool = False
    watching: bool = False
    agents: bool = True
    back_to: str = ""
    selected: int = 0
    opens: Callable[[], str] = str
    missed: bool = False
    as_expected: Callable[[], bool] = bool
    drifted: bool = False
    kills: Callable[[], bool] = bool
    machines: bool = False

    @property
    def on_case(self) -> bool:
        """Whether the cursor is on a case or on one of its repeats."""
        return self.row in ("case", "repeat")

    @property
    def decided(self) -> bool:
        """Whether the case under the cursor has a verdict."""
        return self.state in _DECIDED

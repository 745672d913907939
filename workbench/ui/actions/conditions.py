"""The situation of the main screen, and the reasons why an action cannot work in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

_DECIDED = ("passed", "failed", "error", "not_evaluated")


def _one(action: str) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class Situation:
    """The place of the cursor and the state of the run, as plain values.

    Attributes:
        folder: The content of the open folder: `cases` if it has evalsets, `agents` if it has only agents, `nothing` if
            it has neither, `reading` until it is read, `unreadable` if that failed.
        row: Kind of the row under the cursor (`evalset` on its row of passed cases), or "" in an empty tree.
        state: Status of the case under the cursor, `not_run` if it never ran, or "" on other rows.
        side: The part that has the focus: the cases, the filter while the user types, the panes of a case, or a page or
            overview.
        case_shown: Whether the right side shows the panes of a case or evalset.
        can_unfold: Whether the item under the cursor can be unfolded or folded, or leads to another pane. Without
            items: whether any text can be unfolded or folded.
        count: Returns the number of cases on which the action with this ID would act.
        marked: Number of marked cases.
        marking: Whether a range is being marked.
        filtered: Whether a filter is active.
        problems: Whether any case failed or ended in an error.
        verdicts: Whether any case has a verdict or is part of the current run.
        changed: Whether any verdict changed.
        busy: Whether a run is active or requested.
        running: Whether a run is active and can be cancelled.
        watching: Whether the watch is on.
        agents: Whether the project has agents.
        back_to: Name of the page to which esc leads from the panes, such as `table`, or "" for the cases.
        selected: Number of cases of the item under the cursor of the overview, or 0.
        opens: Returns the name of the file and line that `E` opens, such as `agent.py:38`, or "".
        drifted: Whether any case of the last run differs from its recording.
        kills: Returns whether `x` would kill cases, because they were already cancelled.
        machines: Whether the last run was on other machines.
        as_expected: Returns whether the case under the cursor is shown and its agent did exactly what is expected.
        missed: Whether the recording of the case under the cursor lacks a call or is unreadable.
    """

    folder: Literal["reading", "unreadable", "nothing", "agents", "cases"] = "cases"
    row: Literal["", "all", "agent", "evalset", "case", "repeat"] = "all"
    state: str = ""
    side: Literal["cases", "filter", "panes", "page"] = "cases"
    case_shown: bool = False
    can_unfold: bool = True
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


class Condition(NamedTuple):
    """A condition of an action, and the reason to show if it is not met."""

    holds: Callable[[Situation], object]
    reason: str


Conditions: TypeAlias = tuple[Condition, ...]


def why_not(action: str, situation: Situation) -> str:
    """Return why the action with this ID cannot work now, or "" if it can. Actions without conditions always work."""
    if situation.side == "filter":
        return "" if action in ("enter", "back") else "the filter is being typed"
    return next((one.reason for one in _CONDITIONS.get(action, ()) if not one.holds(situation)), "")


def _unless(exempt: Callable[[Situation], object], conditions: Conditions) -> Conditions:
    """Return conditions that hold if the given ones do, and in all exempt situations."""

    def relaxed(one: Condition) -> Condition:
        return Condition(lambda at: exempt(at) or one.holds(at), one.reason)

    return tuple(map(relaxed, conditions))


def _on_one_case(at: Situation) -> bool:
    return at.on_case and not at.marked


_READ: Conditions = (
    Condition(lambda at: at.folder != "reading", "still reading the folder"),
    Condition(lambda at: at.folder != "unreadable", "the folder could not be read"),
)
_CASES = (*_READ, Condition(lambda at: at.folder == "cases", "there are no cases"))
_ENTERABLE = (
    Condition(lambda at: at.side != "panes" or at.can_unfold, "nothing to unfold here"),
    *_unless(lambda at: at.folder == "nothing", _CASES),
)
_TARGETS = (*_CASES, Condition(lambda at: at.count("run"), "no cases here"))
_TARGETS_WHEN_READ = _unless(lambda at: at.folder == "reading", _TARGETS)
"""A run requested while the folder is read starts afterwards."""
_IDLE = (Condition(lambda at: not at.busy, "a run is active"),)
_RUNNING = (Condition(lambda at: at.running, "nothing is running"),)
_RUNNING_HERE = (*_RUNNING, Condition(lambda at: at.count("cancel"), "nothing is running here"))
_AGENTS = (*_READ, Condition(lambda at: at.agents, "there are no agents"))
_VERDICTS = (*_CASES, Condition(lambda at: at.verdicts, "nothing has run yet"))
_PROBLEMS = (*_VERDICTS, Condition(lambda at: at.problems, "nothing failed"))
_CHANGED = (*_VERDICTS, Condition(lambda at: at.changed, "no verdict has changed"))
_VISIBLE = (*_CASES, Condition(lambda at: at.row, "no case matches the filter"))
_FAILED_HERE = (*_VISIBLE, *_VERDICTS, Condition(lambda at: at.count("rerun"), "nothing failed here"))
_REVIEWABLE = _unless(lambda at: at.marked and at.count("review"), _FAILED_HERE)
_RUN_HERE = (*_TARGETS, *_VERDICTS, Condition(lambda at: at.count("freeze"), "nothing here has run"))
_WATCHING = (Condition(lambda at: at.watching, "the watch is off"),)
_ON_CASE = (*_CASES, Condition(lambda at: at.on_case, "put the cursor on a case first"))
_ON_EVALSET = (
    *_CASES,
    Condition(lambda at: at.on_case or at.row == "evalset", "put the cursor on a case or an evalset first"),
)
_ON_CASE_OR_MARKED = (
    *_CASES,
    Condition(lambda at: at.on_case or at.marked, "put the cursor on a case first, or mark cases with space"),
)
_HAS_ENDED = (
    Condition(lambda at: at.state != "not_run", "the case has not run"),
    Condition(lambda at: at.state not in ("running", "queued"), "the case is still running"),
)
_VERDICT_OR_MARKS = (
    Condition(lambda at: not at.marked or at.count("triage"), "no marked case has a verdict"),
    *_unless(lambda at: at.marked, _HAS_ENDED),
)
_AS_EXPECTED = Condition(
    lambda at: at.drifted or not at.as_expected(), "the agent did what is expected: nothing to accept"
)
_FAILED_IN_GROUP = Condition(lambda at: at.count("accept"), "nothing failed here")
_ACCEPTABLE = (
    *_unless(lambda at: not _on_one_case(at), (*_HAS_ENDED, _AS_EXPECTED)),
    *_unless(lambda at: _on_one_case(at) or at.drifted, (*_VERDICTS, _FAILED_IN_GROUP)),
)
_OPENABLE = (*_READ, Condition(lambda at: at.opens(), "no file here: put the cursor on a case or an agent"))
_MACHINES = (Condition(lambda at: at.machines, "the last run was on this machine"),)
_CASE_SHOWN = (Condition(lambda at: at.case_shown, "no case is shown"),)

_CONDITIONS: Mapping[str, Conditions] = {
    **dict.fromkeys(("open", "close", "filter", "sort", "table", "criteria"), _CASES),
    "enter": _ENTERABLE,
    **dict.fromkeys(("next_turn", "previous_turn", "to_event", "pane"), _CASE_SHOWN),
    **dict.fromkeys(("mark", "mark_range", "mark_all"), _VISIBLE),
    "run": (*_TARGETS_WHEN_READ, *_IDLE),
    "rerun": (*_FAILED_HERE, *_IDLE),
    **dict.fromkeys(("repeat", "thaw", "try_faults", "try_head", "try_variants"), (*_TARGETS, *_IDLE)),
    **dict.fromkeys(("score", "score_afresh"), (*_RUN_HERE, *_IDLE)),
    "open_folder": _IDLE,
    **dict.fromkeys(("watch_off", "watched"), _WATCHING),
    "machines": _MACHINES,
    **dict.fromkeys(("options", "replace"), _TARGETS),
    "freeze": _RUN_HERE,
    "cancel": _RUNNING_HERE,
    "cancel_all": _RUNNING,
    "resume": (*_READ, *_IDLE),
    **dict.fromkeys(("next_problem", "previous_problem"), _PROBLEMS),
    "flaky_cases": _VERDICTS,
    "review": _REVIEWABLE,
    **dict.fromkeys(("next_changed", "previous_changed"), _CHANGED),
    **dict.fromkeys(("history", "compare", "found", "new_evalset", "new_test_file", "keep_session"), _READ),
    **dict.fromkeys(("undo", "redo", "copy_id", "copy_command"), _READ),
    **dict.fromkeys(("import_agents", "talk"), _AGENTS),
    **dict.fromkeys(("edit", "new_case", "new_scenario", "migrate", "choose_agent"), _ON_EVALSET),
    "edit_outside": _OPENABLE,
    **dict.fromkeys(("duplicate", "delete", "move_cases"), _ON_CASE_OR_MARKED),
    "rename": _ON_CASE,
    **dict.fromkeys(("fork", "keep_run"), (*_ON_CASE, *_HAS_ENDED)),
    "accept": _ACCEPTABLE,
    "triage": (*_ON_CASE_OR_MARKED, *_VERDICT_OR_MARKS),
}
"""Conditions by action ID. The first one that does not hold gives the reason."""

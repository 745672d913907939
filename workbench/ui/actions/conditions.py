"""The situation of the main screen, and why an action cannot work in it, for footer, help and palette."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

_DECIDED = ("passed", "failed", "error", "not_evaluated")


def _one(action: str) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class Situation:
    """The place of the cursor and the state of the run. Pure, so that tests can name any place.

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


Condition: TypeAlias = Callable[[Situation], str]
"""Returns why an action cannot work, or "" if it can."""


def why_not(action: str, situation: Situation) -> str:
    """Return why the action with this ID cannot work now, or "" if it can. Actions without conditions always work."""
    if situation.side == "filter":
        return "" if action in ("enter", "back") else "the filter is being typed"
    return next((reason for condition in _CONDITIONS.get(action, ()) if (reason := condition(situation))), "")


def _read(situation: Situation) -> str:
    trouble = {"reading": "still reading the folder", "unreadable": "the folder could not be read"}
    return trouble.get(situation.folder, "")


def _cases(situation: Situation) -> str:
    return _read(situation) or ("" if situation.folder == "cases" else "there are no cases")


def _enterable(situation: Situation) -> str:
    if situation.side == "panes" and not situation.folded:
        return "nothing to unfold here"
    return "" if situation.folder == "nothing" else _cases(situation)


def _targets(situation: Situation) -> str:
    return _cases(situation) or ("" if situation.count("run") else "no cases here")


def _targets_when_read(situation: Situation) -> str:
    """Let the run be requested while the folder is read. It starts afterwards."""
    return "" if situation.folder == "reading" else _targets(situation)


def _idle(situation: Situation) -> str:
    return "a run is active" if situation.busy else ""


def _running(situation: Situation) -> str:
    return "" if situation.running else "nothing is running"


def _running_here(situation: Situation) -> str:
    return _running(situation) or ("" if situation.count("cancel") else "nothing is running here")


def _agents(situation: Situation) -> str:
    return _read(situation) or ("" if situation.agents else "there are no agents")


def _verdicts(situation: Situation) -> str:
    return _cases(situation) or ("" if situation.verdicts else "nothing has run yet")


def _problems(situation: Situation) -> str:
    return _verdicts(situation) or ("" if situation.problems else "nothing failed")


def _failed_here(situation: Situation) -> str:
    return _visible(situation) or _verdicts(situation) or ("" if situation.count("rerun") else "nothing failed here")


def _reviewable(situation: Situation) -> str:
    return "" if situation.marked and situation.count("review") else _failed_here(situation)


def _run_here(situation: Situation) -> str:
    return _targets(situation) or _verdicts(situation) or ("" if situation.count("freeze") else "nothing here has run")


def _visible(situation: Situation) -> str:
    return _cases(situation) or ("" if situation.row else "no case matches the filter")


def _changed(situation: Situation) -> str:
    return _verdicts(situation) or ("" if situation.changed else "no verdict has changed")


def _watching(situation: Situation) -> str:
    return "" if situation.watching else "the watch is off"


def _on_case(situation: Situation) -> str:
    return _cases(situation) or ("" if situation.on_case else "put the cursor on a case first")


def _on_evalset(situation: Situation) -> str:
    here = situation.on_case or situation.row == "evalset"
    return _cases(situation) or ("" if here else "put the cursor on a case or an evalset first")


def _on_case_or_marked(situation: Situation) -> str:
    here = situation.on_case or situation.marked
    return _cases(situation) or ("" if here else "put the cursor on a case first, or mark cases with space")


def _ended(situation: Situation) -> str:
    return "" if situation.state not in ("running", "queued") else "the case is still running"


def _has_run(situation: Situation) -> str:
    return "" if situation.state != "not_run" else "the case has not run"


def _verdict_or_marks(situation: Situation) -> str:
    if situation.marked:
        return "" if situation.count("triage") else "no marked case has a verdict"
    return _has_run(situation) or _ended(situation)


def _acceptable(situation: Situation) -> str:
    """Return why nothing here can be accepted: one case, or the failing cases of a group."""
    if situation.on_case and not situation.marked:
        alike = "the agent did what is expected: nothing to accept" if situation.as_expected() else ""
        return _has_run(situation) or _ended(situation) or ("" if situation.drifted else alike)
    return "" if situation.drifted else _verdicts(situation) or _nothing_failed(situation)


def _nothing_failed(situation: Situation) -> str:
    return "" if situation.count("accept") else "nothing failed here"


def _openable(situation: Situation) -> str:
    return _read(situation) or ("" if situation.opens() else "no file here: put the cursor on a case or an agent")


def _machines(situation: Situation) -> str:
    return "" if situation.machines else "the last run was on this machine"


def _case_shown(situation: Situation) -> str:
    return "" if situation.case_shown else "no case is shown"


_CONDITIONS: Mapping[str, tuple[Condition, ...]] = {
    "open": (_cases,),
    "close": (_cases,),
    "enter": (_enterable,),
    "next_turn": (_case_shown,),
    "previous_turn": (_case_shown,),
    "to_event": (_case_shown,),
    "pane": (_case_shown,),
    "mark": (_visible,),
    "mark_range": (_visible,),
    "mark_all": (_visible,),
    "run": (_targets_when_read, _idle),
    "rerun": (_failed_here, _idle),
    "repeat": (_targets, _idle),
    "score": (_run_here, _idle),
    "score_afresh": (_run_here, _idle),
    "open_folder": (_idle,),
    "watch_off": (_watching,),
    "watched": (_watching,),
    "machines": (_machines,),
    "options": (_targets,),
    "freeze": (_run_here,),
    "thaw": (_targets, _idle),
    "try_faults": (_targets, _idle),
    "try_head": (_targets, _idle),
    "try_variants": (_targets, _idle),
    "cancel": (_running_here,),
    "cancel_all": (_running,),
    "resume": (_read, _idle),
    "next_problem": (_problems,),
    "previous_problem": (_problems,),
    "flaky_cases": (_verdicts,),
    "review": (_reviewable,),
    "next_changed": (_changed,),
    "previous_changed": (_changed,),
    "filter": (_cases,),
    "sort": (_cases,),
    "history": (_read,),
    "compare": (_read,),
    "found": (_read,),
    "import_agents": (_agents,),
    "table": (_cases,),
    "edit": (_on_evalset,),
    "edit_outside": (_openable,),
    "new_case": (_on_evalset,),
    "new_scenario": (_on_evalset,),
    "duplicate": (_on_case_or_marked,),
    "delete": (_on_case_or_marked,),
    "move_cases": (_on_case_or_marked,),
    "rename": (_on_case,),
    "new_evalset": (_read,),
    "new_test_file": (_read,),
    "migrate": (_on_evalset,),
    "talk": (_agents,),
    "fork": (_on_case, _has_run, _ended),
    "keep_run": (_on_case, _has_run, _ended),
    "keep_session": (_read,),
    "criteria": (_cases,),
    "accept": (_acceptable,),
    "replace": (_targets,),
    "triage": (_on_case_or_marked, _verdict_or_marks),
    "undo": (_read,),
    "redo": (_read,),
    "copy_id": (_read,),
    "copy_command": (_read,),
    "choose_agent": (_on_evalset,),
}
"""The conditions of actions by ID. The first one that does not hold is the reason."""

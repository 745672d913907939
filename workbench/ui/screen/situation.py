"""The situation of the main screen, which decides which actions can work, and the source that `E` opens."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.results.error import user_frames
from workbench.store.details import known_details
from workbench.text.json_values import parts_of
from workbench.ui.actions import Situation
from workbench.ui.session.next_run import lacks_recording
from workbench.ui.tree.scope import targets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from workbench.editing.responsible import Place
    from workbench.results.run_comparison import ComparedCase
    from workbench.store.execution import CaseRecord, Execution
    from workbench.ui.screen.sides import Right
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree
    from workbench.ui.tree.outline import Row
    from workbench.ui.tree.scope import Scope

Side = Literal["cases", "filter", "panes", "page"]


class WayBack(NamedTuple):
    """The way back to the page that opened a case. `esc` in the panes calls `go`, and `name` is for the footer."""

    name: str
    go: "Callable[[], None]"


def situation_of(session: "Session", rows: "Tree", selected: "Scope | None" = None) -> Situation:
    """Return the current situation, without what depends on the right side.

    It is called after each move of the cursor, so it does not iterate over cases.
    """
    row, verdicts, activity = rows.cursor, session.verdicts, session.store.activity
    on_case = row is not None and row.case >= 0
    return Situation(
        folder=_folder(session),
        row="" if row is None else "evalset" if row.kind == "passed" else row.kind,
        state=verdicts.state(row.evalset, row.case) if row is not None and on_case else "",
        count=lambda action: targets_of(action, rows, selected).count(),
        marked=len(rows.marks),
        marking=rows.anchor is not None,
        filtered=not rows.query.empty,
        problems=any(counts["failed"] or counts["error"] for counts in verdicts.counts),
        verdicts=bool(verdicts.by_case),
        changed=bool(verdicts.flips),
        busy=activity.busy,
        running=activity.running,
        watching=session.watching is not None,
        agents=session.workspace is not None and bool(session.workspace.agents),
        selected=0 if selected is None else len(selected),
        drifted=session.store.drifted > 0,
        machines=bool(session.machines),
        kills=lambda: _kills(session, rows, selected),
        missed=row is not None and on_case and lacks_recording(session.record(row)),
    )


def _kills(session: "Session", rows: "Tree", selected: "Scope | None") -> bool:
    if not session.cancelling:
        return False
    left = session.unfinished(targets_of("cancel", rows, selected).pairs())
    return bool(left) and session.cancelling.issuperset(left)


def _folder(session: "Session") -> Literal["reading", "unreadable", "nothing", "agents", "cases"]:
    workspace = session.workspace
    if workspace is not None and workspace.evalsets:
        return "cases"
    if session.reading or (workspace is None and not session.read_error):
        return "reading"
    if workspace is None:
        return "unreadable"
    return "agents" if workspace.agents_here else "nothing"


def responsible(session: "Session", rows: "Tree", right: "Right", *, exact: bool = True) -> "Place | None":
    """Return the source of the item under the cursor of the right side, else of the row, or None if there is none.

    The item may be an agent, a call or a criterion. For a case that ended in an error, the source is the line of the
    project that raised the error. For a case whose verdict changed after a change of the agent's files, the source is
    the changed line. Without `exact`, the line of a case in its file is not looked up. Nothing is imported or run.
    """
    row, workspace = rows.cursor, session.workspace
    if row is None or workspace is None:
        return None
    from workbench.editing.responsible import agent_place, case_place, changed_place

    focused = right.has_focus_within
    if focused and right.shows_overview and (criterion := right.overview.criterion):
        return _of_criterion(session, rows.members(row), criterion)
    if row.kind == "all":
        return None
    if row.kind == "agent":
        agent = next((agent for agent in workspace.agents if agent.name == rows.groups[row.agent]), None)
        return None if agent is None else agent_place(agent)
    if row.kind != "evalset" and right.shows_case:
        if focused and (place := _of_item(session, row, right.detail.place_names)) is not None:
            return place
        if (raised := _raised(session.record(row), workspace.root)) is not None:
            return raised
        compared: ComparedCase | None = right.detail.reading.subject.compared
        if compared is not None and (changed := changed_place(workspace.root, compared.files)) is not None:
            return changed
    return case_place(session.entry(row.evalset), row.case, exact=exact)


def _raised(record: "Execution | None", root: "Path") -> "Place | None":
    """Return the line below `root` that raised the error of a case, or None without an error or such a line."""
    shown = known_details(record) if record is not None and record.status == "error" else None
    if shown is None or shown.error is None or not (frames := user_frames(shown.error, str(root))):
        return None
    from workbench.editing.responsible import Place

    file = Path(frames[-1].file)
    return Place(file, int(frames[-1].line)) if file.is_relative_to(root) and file.is_file() else None


def _of_item(session: "Session", row: "Row", names: "Sequence[str]") -> "Place | None":
    """Return the source of the agent, call or criterion with one of these item names, or None."""
    from workbench.editing.responsible import agent_place, call_place, criterion_place
    from workbench.results.trace import AGENT

    record, entry = session.record(row), session.entry(row.evalset)
    if record is None:
        return None
    named = next((name for name in names if name.startswith(AGENT)), None)
    if named is not None and entry.agent is not None:
        return agent_place(entry.agent, named.split("/", 2)[2])
    shown = known_details(record)
    if shown is not None and entry.agent is not None and (tool := _tool(shown, names)):
        return call_place(entry.agent, tool)
    words = {word for name in names for word in name.split("/")}
    criterion = next((name for name in record.scores if name in words), "")
    return criterion_place(entry, criterion) if criterion else None


def _of_criterion(session: "Session", evalsets: "Iterable[int]", criterion: str) -> "Place | None":
    from workbench.editing.responsible import criterion_place

    entries = (session.entry(evalset) for evalset in evalsets)
    judged = (entry for entry in entries if any(one.name == criterion for one in entry.criteria.config.criteria))
    entry = next(judged, None)
    return None if entry is None else criterion_place(entry, criterion)


def _tool(record: "CaseRecord", names: "Sequence[str]") -> str:
    """Return the tool of the first item named `call/TURN/ID` or `event/TURN/NUMBER`, or "" if none is a call."""
    from workbench.files.invocation import recorded_events  # The first frame is drawn without the model.

    for kind, turn, name in (parts for one in names if len(parts := one.split("/")) == 3):
        if kind not in ("call", "event") or not turn.isdecimal() or int(turn) >= len(record.turns):
            continue
        events = recorded_events(record.turns[int(turn)].actual or {}) or ()
        for number, event in enumerate(events):
            calls = [call for part in parts_of(event.get("content")) if (call := part.get("function_call"))]
            wanted = [call for call in calls if (call.get("id") if kind == "call" else str(number)) == name]
            if wanted:
                return str(wanted[0].get("name", ""))
    return ""

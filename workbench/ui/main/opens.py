"""What `E` opens: the file and line that are responsible for what is under the cursor."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.details import known_details
from workbench.json_values import parts_of

if TYPE_CHECKING:
    from workbench.authoring.responsible import Place
    from workbench.execution import CaseRecord
    from workbench.history.compare import ComparedCase
    from workbench.ui.overview.right import RightSide
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree
    from workbench.ui.tree.outline import Row


def responsible(session: "Session", rows: "Tree", right: "RightSide", *, exact: bool = True) -> "Place | None":
    """Return the place of the call or criterion under the cursor of the right side, else that of the row, or None.

    A case whose verdict changed since the agent's files changed has the changed line. Without `exact`, lines of
    cases are not looked up. Nothing is imported or run.
    """
    row, workspace = rows.cursor, session.workspace
    if row is None or workspace is None:
        return None
    from workbench.authoring.responsible import agent_place, case_place, changed_place

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
        compared: ComparedCase | None = right.detail.compared
        if compared is not None and (changed := changed_place(workspace.root, compared.files)) is not None:
            return changed
    return case_place(session.entry(row.evalset), row.case, exact=exact)


def _of_item(session: "Session", row: "Row", names: Sequence[str]) -> "Place | None":
    """Return the place of the call or criterion with one of these names, as panes know it."""
    from workbench.authoring.responsible import call_place, criterion_place

    record, entry = session.record(row), session.entry(row.evalset)
    if record is None:
        return None
    shown = known_details(record)
    if shown is not None and entry.agent is not None and (tool := _tool(shown, names)):
        return call_place(entry.agent, tool)
    words = {word for name in names for word in name.split("/")}
    criterion = next((name for name in record.scores if name in words), "")
    return criterion_place(entry, criterion) if criterion else None


def _of_criterion(session: "Session", evalsets: Iterable[int], criterion: str) -> "Place | None":
    from workbench.authoring.responsible import criterion_place

    entries = (session.entry(evalset) for evalset in evalsets)
    judged = (entry for entry in entries if any(one.name == criterion for one in entry.criteria.config.criteria))
    entry = next(judged, None)
    return None if entry is None else criterion_place(entry, criterion)


def _tool(record: "CaseRecord", names: Sequence[str]) -> str:
    """Return the tool of a call named `call/TURN/ID`, or of the event `event/TURN/NUMBER`, or ""."""
    from workbench.model.invocation import recorded_events  # The first frame is drawn without the model.

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

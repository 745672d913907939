"""The situation of the main screen, from which its footer, help and palette follow."""

from typing import TYPE_CHECKING, Literal

from workbench.actions import Situation
from workbench.ui.next_run.recording_options import lacks_recording
from workbench.ui.tree.scope import targets_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree
    from workbench.ui.tree.scope import Scope

Side = Literal["cases", "filter", "panes", "page"]


def situation_of(
    session: "Session",
    rows: "Tree",
    side: Side,
    *,
    case_shown: bool,
    selected: "Scope | None" = None,
    back_to: str = "",
    opens: "Callable[[], str]" = str,
) -> Situation:
    """Return what decides which actions can work. Called on each move of the cursor, so it walks over no cases."""
    row, verdicts, activity = rows.cursor, session.verdicts, session.store.activity
    on_case = row is not None and row.case >= 0
    return Situation(
        folder=_folder(session),
        row="" if row is None else "evalset" if row.kind == "passed" else row.kind,
        state=verdicts.state(row.evalset, row.case) if row is not None and on_case else "",
        side=side,
        case_shown=case_shown,
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
        back_to=back_to,
        agents=session.workspace is not None and bool(session.workspace.agents),
        selected=0 if selected is None else len(selected),
        opens=opens,
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

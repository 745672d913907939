"""The content of the overview, made from the session and from what was read of stored runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.execution import Execution
from workbench.history.ages import started_at
from workbench.history.pass_rates import Trend
from workbench.rendering.faces import FACES, Status
from workbench.rendering.overview.facts import LISTED_CHANGES, ChangedVerdict, Changes, Overview
from workbench.rendering.overview.tally import Tally
from workbench.ui.overview.figures import Figures
from workbench.ui.overview.pages import agent_problems
from workbench.ui.overview.scope import Pair, Scope, changed_pairs
from workbench.ui.overview.spending import Spending
from workbench.ui.session import relative_times
from workbench.ui.session.run_labels import clock_time, seconds
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree

_TRENDS_KEPT = 16


class Contents:
    """Makes overviews. The trends are None until they were read."""

    def __init__(self, session: "Session", tree: "Tree") -> None:
        self._session, self._tree = session, tree
        self.figures = Figures(session.verdicts)
        self.spending = Spending(session.prices)
        self._trends: dict[Scope, Trend] = {}

    def forget_runs(self) -> None:
        """Forget what was read of stored runs, because there is a newer one."""
        self._trends.clear()

    def add_trend(self, scope: Scope, trend: Trend) -> None:
        """Add the trend of a scope's cases."""
        while len(self._trends) >= _TRENDS_KEPT:
            del self._trends[next(iter(self._trends))]
        self._trends[scope] = trend

    def has_trend(self, scope: Scope) -> bool:
        """Return whether the trend of a scope was read."""
        return scope in self._trends

    def overview(self, scope: Scope) -> Overview:
        """Return what is known about the cases of a scope."""
        found = self.figures.tally(scope)
        entry = self._session.entry(scope.row.evalset) if scope.row.kind == "evalset" else None
        return Overview(
            found,
            scope.cases,
            self.figures.groups(scope) if found.problems else (),
            self.spending.spent(self._time(scope, found), found, self.records(scope)),
            self._changes(scope),
            self._trends.get(scope),
            self._foot(scope),
            entry,
            self._session.findings.of(scope.row.evalset, -1) if entry is not None else (),
        )

    def records(self, scope: Scope) -> Sequence[Execution]:
        """Return the finished executions of a scope, if costs are shown."""
        return self.figures.finished(scope) if self._session.prices else ()

    def _time(self, scope: Scope, found: Tally) -> str:
        """Return the duration of the run if it is about these cases, else the sum of theirs."""
        store = self._session.store
        if found.unfinished or not found.executions or store.activity.running:
            return ""
        if scope.row.kind == "all" and scope.pairs is None and found.executions == len(store.current):
            return seconds(store.run.duration_seconds)
        return f"{seconds(found.seconds)} in total"

    def _changes(self, scope: Scope) -> Changes | None:
        """Return the changes that the tree marks too, or None if nothing was compared yet."""
        session = self._session
        runs = session.changed.runs
        found = changed_pairs(scope, session.verdicts.flips)
        if not runs or (session.store.activity.running and not found):
            return None
        listed = [self._changed_verdict(pair) for pair in found[:LISTED_CHANGES]]
        worse = sum(map(session.verdicts.flips.__getitem__, found))
        since = clock_time(started_at(max(runs)), relative_times.now())
        return Changes(since if len(runs) == 1 else f"{since} or earlier", listed, worse, len(found) - worse)

    def _changed_verdict(self, pair: Pair) -> ChangedVerdict:
        session, (evalset, case) = self._session, pair
        record = session.verdicts.record(evalset, case)
        before, now = session.changed.statuses(record.ref) if record is not None else ([], [])
        name = label(session.entry(evalset).document.cases[case].eval_id)
        current = _words(now) if now or record is None else FACES[record.state].word
        return ChangedVerdict(pair, name, _words(before), current, session.verdicts.flips[pair])

    def _foot(self, scope: Scope) -> list[tuple[str, str]]:
        """Return why evalsets have no agent, or what is wrong with the agent."""
        workspace = self._session.workspace
        if workspace is None or scope.row.kind != "agent":
            return []
        name = self._tree.groups[scope.row.agent]
        agent = next((agent for agent in workspace.agents if agent.name == name), None)
        entries = [self._session.entry(evalset) for evalset in scope.evalsets]
        if agent is None:
            return [("No agent", ""), *((label(one.file.name), label(one.agent_reason)) for one in entries)]
        return agent_problems(agent, entries, self._session.verdicts.imports)


def _words(statuses: Sequence[Status]) -> str:
    """Return `pass`, or `3/5 pass` for several executions."""
    if len(statuses) == 1:
        return FACES[statuses[0]].word
    return f"{statuses.count('passed')}/{len(statuses)} {FACES['passed'].word}"

"""The content of the overview, made from the session and from what was read of stored runs."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from workbench.results.causes import CauseGroup, group_by_cause
from workbench.results.faces import FACES, Status, short_name
from workbench.results.overview import CAUSE, CHANGED, case_of, criterion_of
from workbench.results.tally import LISTED_CHANGES, ChangedVerdict, Changes, Overview, Tally, added, tally
from workbench.store.cause import Cause
from workbench.store.execution import Execution
from workbench.store.history.state_dir import started_at
from workbench.ui.overview.pages import agent_problems
from workbench.ui.overview.spending import Spending
from workbench.ui.session import relative_times
from workbench.ui.session.run_labels import clock_time, seconds
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Pair, Part
from workbench.ui.tree.scope import Scope, scope_of
from workbench.ui.tree.verdicts import CaseVerdict, Verdicts

if TYPE_CHECKING:
    from workbench.store.history.pass_rates import Trend
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree

_TRENDS_KEPT = 16
_FAILING = ("failed", "error")


class Figures:
    """Sums and causes of cases, from their newest verdicts. Only evalsets with new verdicts are counted again."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._tallies: dict[int, tuple[Sequence[int], int, Tally]] = {}
        self._causes: dict[int, tuple[Sequence[int], int, Sequence[tuple[Pair, Cause]]]] = {}

    def version(self, scope: Scope) -> tuple[object, ...]:
        """Return a value that changes with each verdict of the scope's evalsets, and with each changed verdict."""
        versions = (self._verdicts.versions[evalset] for evalset in scope.evalsets)
        return self._verdicts.flips_version, *versions

    def tally(self, scope: Scope) -> Tally:
        """Return the sums over the cases of a scope."""
        return added([self._tally_of(part) for part in scope.parts])

    def groups(self, scope: Scope) -> list[CauseGroup[Pair]]:
        """Return the failing cases of a scope by cause: the biggest group first, then in file order."""
        return group_by_cause(chain.from_iterable(map(self._causes_of, sorted(scope.parts, key=itemgetter(0)))))

    def finished(self, scope: Scope) -> list[Execution]:
        """Return the finished executions of a scope, in the order of its cases."""
        return [record for _, records in self._executions(scope) for record in records if record.finished]

    def judged_by(self, scope: Scope, criterion: str, *, frozen: bool) -> list[Pair]:
        """Return the cases that failed a criterion, or if there are none, those that passed it.

        Only `frozen` cases, or only live ones.
        """
        failed, passed = [], []
        for pair, records in self._executions(scope):
            if any(record.frozen is not None for record in records) == frozen:
                results = (record.scores.get(criterion) for record in records if record.has_verdict)
                states = {result.status for result in results if result is not None}
                failed += [pair] if "failed" in states else []
                passed += [pair] if "passed" in states else []
        return failed or passed

    def _executions(self, scope: Scope) -> Iterator[tuple[Pair, Sequence[Execution]]]:
        for evalset, cases in scope.parts:
            for case, verdict in self._verdicts.of_evalset(evalset, cases):
                yield (evalset, case), self._records(verdict)

    def _tally_of(self, part: Part) -> Tally:
        evalset, cases = part
        version, known = self._verdicts.versions[evalset], self._tallies.get(evalset)
        if known is None or known[:2] != (cases, version):
            found = [verdict for _, verdict in self._verdicts.of_evalset(evalset, cases)]
            states = Counter(verdict.state for verdict in found)
            known = self._tallies[evalset] = cases, version, tally(states, map(self._records, found))
        return known[2]

    def _causes_of(self, part: Part) -> Sequence[tuple[Pair, Cause]]:
        evalset, cases = part
        version, known = self._verdicts.versions[evalset], self._causes.get(evalset)
        if known is None or known[:2] != (cases, version):
            failing = sorted(case for case, one in self._verdicts.of_evalset(evalset, cases) if one.state in _FAILING)
            causes = (((evalset, case), self._verdicts.cause(evalset, case)) for case in failing)
            found = [(pair, cause) for pair, cause in causes if cause is not None]
            known = self._causes[evalset] = cases, version, found
        return known[2]

    def _records(self, verdict: CaseVerdict) -> Sequence[Execution]:
        records = self._verdicts.store.records
        return [records[ref] for ref in verdict.refs]


class Contents:
    """Makes overviews. The trends are None until they were read."""

    def __init__(self, session: "Session", tree: "Tree") -> None:
        self._session, self._tree = session, tree
        self.figures = Figures(session.verdicts)
        self.spending = Spending(session.prices)
        self._trends: deque[tuple[Scope, Trend]] = deque(maxlen=_TRENDS_KEPT)

    def forget_runs(self) -> None:
        """Forget what was read of stored runs, because there is a newer one."""
        self._trends.clear()

    def add_trend(self, scope: Scope, trend: "Trend") -> None:
        """Add the trend of a scope's cases."""
        self._trends.append((scope, trend))

    def trend(self, scope: Scope) -> "Trend | None":
        """Return the trend of a scope, or None if it was not read."""
        return next((trend for known, trend in self._trends if known == scope), None)

    def cases_of(self, key: str, scope: Scope, shown: Overview) -> Scope | None:
        """Return the cases of an item of the overview of a scope, or None if it stands for none."""
        cases: Iterable[Pair] = ()
        name = CHANGED
        if (case := case_of(key)) is not None:
            cases, name = (case,), "1 case"
        elif key.startswith(CAUSE):
            group = next((one for one in shown.groups if CAUSE + one.cause.slug == key), None)
            cases, name = ((), "") if group is None else (group.cases, group.cause.text or group.cause.slug)
        elif (found := criterion_of(key)) is not None:
            cases, name = self.figures.judged_by(scope, found[0], frozen=found[1]), short_name(found[0])
        elif key == CHANGED:
            cases = self._changed(scope)
        return scope_of(cases, name) or None

    def overview(self, scope: Scope) -> Overview:
        """Return what is known about the cases of a scope."""
        found = self.figures.tally(scope)
        entry = self._session.entry(scope.row.evalset) if scope.row.kind == "evalset" else None
        return Overview(
            found,
            len(scope),
            self.figures.groups(scope) if found.problems else (),
            self.spending.spent(self._time(scope, found), found, self.records(scope)),
            self._changes(scope),
            self.trend(scope),
            self._foot(scope),
            entry,
            self._session.findings.faults_of(scope.row.evalset, -1) if entry is not None else (),
        )

    def records(self, scope: Scope) -> Sequence[Execution]:
        """Return the finished executions of a scope, if costs are shown."""
        return self.figures.finished(scope) if self._session.prices else ()

    def _time(self, scope: Scope, found: Tally) -> str:
        """Return the duration of the run if it is about these cases, else the sum of theirs."""
        store = self._session.store
        if found.unfinished or not found.executions or store.activity.running:
            return ""
        whole = scope.row.kind == "all" and not scope.query and not scope.marked
        if whole and found.executions == len(store.current):
            return seconds(store.run.duration_seconds)
        return f"{seconds(found.seconds)} in total"

    def _changes(self, scope: Scope) -> Changes | None:
        """Return the changes that the tree marks too, or None if nothing was compared yet."""
        session = self._session
        runs = session.changed.runs
        found = self._changed(scope)
        if not runs or (session.store.activity.running and not found):
            return None
        listed = [self._changed_verdict(pair) for pair in found[:LISTED_CHANGES]]
        worse = sum(map(session.verdicts.flips.__getitem__, found))
        since = clock_time(started_at(max(runs)), relative_times.now())
        return Changes(since if len(runs) == 1 else f"{since} or earlier", listed, worse, len(found) - worse)

    def _changed(self, scope: Scope) -> list[Pair]:
        """Return the cases of a scope whose verdict changed, the worse first."""
        flips = self._session.verdicts.flips
        inside = {evalset: cases if isinstance(cases, range) else frozenset(cases) for evalset, cases in scope.parts}
        found = [pair for pair in flips if pair[1] in inside.get(pair[0], ())]
        return sorted(found, key=lambda pair: not flips[pair])

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

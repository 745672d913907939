"""The content of the overview: figures, causes, costs and changes, updated at a limited rate."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from workbench.events.events import CaseRef
from workbench.files.prices import Prices, money
from workbench.results.causes import CauseGroup, group_by_cause
from workbench.results.faces import FACES, Status, short_name
from workbench.results.overview import CAUSE, CHANGED, case_of, criterion_of
from workbench.results.tally import LISTED_CHANGES, ChangedVerdict, Changes, Overview, Spent, Tally, added, tally
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.store.history.run_names import started_at
from workbench.store.reasons import Cause
from workbench.text.counting import counted
from workbench.ui.screen.pages import agent_problems
from workbench.ui.session import relative_times
from workbench.ui.session.run_labels import by_date, seconds
from workbench.ui.terminal.terminal import seconds_for
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Pair, Part
from workbench.ui.tree.scope import Scope, scope_at, scope_of, title_of
from workbench.ui.tree.verdicts import CaseVerdict, Verdicts

if TYPE_CHECKING:
    from textual.timer import Timer

    from workbench.store.history.run_list import Trend
    from workbench.ui.screen.sides import Right
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree

_TRENDS_KEPT = 16
MOST = 2_000
"""Maximum number of executions whose costs are read automatically. Each takes about a millisecond."""
_PIECE = 20
"""Number of executions whose costs are read in one step."""
_SHORTEST = 0.5
"""Minimum seconds between two updates."""
_SHARE = 10
"""The minimum pause after an update, as a multiple of its duration."""
_FAILING = ("failed", "error")


class Figures:
    """Sums and causes from the newest verdicts of cases. Only evalsets with new verdicts are counted again."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._tallies: dict[int, tuple[Sequence[int], int, Tally]] = {}
        self._causes: dict[int, tuple[Sequence[int], int, Sequence[tuple[Pair, Cause]]]] = {}

    def version(self, scope: Scope) -> tuple[object, ...]:
        """Return a value that changes whenever the figures of a scope may have changed."""
        versions = (self._verdicts.versions[evalset] for evalset in scope.evalsets)
        return self._verdicts.flips_version, *versions

    def tally(self, scope: Scope) -> Tally:
        """Return the sums over the cases of a scope."""
        return added([self._tally_of(part) for part in scope.parts])

    def groups(self, scope: Scope) -> list[CauseGroup[Pair]]:
        """Return the cases that failed or have errors by cause: the biggest group first, then in file order."""
        return group_by_cause(chain.from_iterable(map(self._causes_of, sorted(scope.parts, key=itemgetter(0)))))

    def finished(self, scope: Scope) -> list[Execution]:
        """Return the finished executions of a scope, in the order of its cases."""
        return [record for _, records in self._executions(scope) for record in records if record.finished]

    def judged_by(self, scope: Scope, criterion: str, *, frozen: bool) -> list[Pair]:
        """Return the replayed (`frozen`) or live cases that failed a criterion, or those that passed if none failed."""
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


class Spending:
    """The known costs of executions. `prices` come from the user's settings."""

    def __init__(self, prices: Prices | None) -> None:
        self._prices = prices
        self._known: dict[CaseRef, tuple[str, float | None]] = {}

    @property
    def currency(self) -> str:
        """The currency of the costs, or "" without prices."""
        return self._prices.currency if self._prices else ""

    def cost_of(self, record: Execution) -> tuple[bool, float | None]:
        """Return whether an execution's cost was read, and the cost, which is None unless all of it is known."""
        run_id, cost = self._known.get(record.ref, (None, None))
        return run_id == record.run_id, cost

    def missing(self, records: Iterable[Execution]) -> list[Execution]:
        """Return the finished executions whose costs are not read yet."""
        return [record for record in records if record.finished and not self.cost_of(record)[0]]

    def unread(self, records: Iterable[Execution]) -> Sequence[Execution]:
        """Return the executions whose costs to read next, or () without prices or if more than `MOST` are missing."""
        if not self._prices:
            return ()
        missing = self.missing(records)
        return missing[:_PIECE] if len(missing) <= MOST else ()

    def read(self, records: Sequence[Execution]) -> None:
        """Read the costs of these executions. Call this in a thread."""
        # Imported here: with the views of traces that it needs, it is half of the imports of the first overview.
        from workbench.results.costs import costs

        found = costs(map(read_details, records), self._prices)
        if found is not None:
            self._known.update((record.ref, (record.run_id, found.amounts.get(record.ref))) for record in records)

    def spent(self, time: str, tally: Tally, records: Sequence[Execution]) -> Spent:
        """Return `time` and the costs of the finished executions `records`.

        Executions without a known cost are counted in tokens. While costs are being read, their text is "".
        """
        if not self._prices:
            return Spent(time, _sum("", tally.tokens, tally.without_tokens))
        known = [(record, cost) for record in records for is_known, cost in [self.cost_of(record)] if is_known]
        if len(known) < len(records):
            many = len(records) - len(known) > MOST
            return Spent(time, _sum("", tally.tokens, tally.without_tokens) if many else "")
        amounts = [amount for _, amount in known if amount is not None]
        unpriced = [record.usage for record, amount in known if amount is None]
        total = money(sum(amounts), self.currency) if amounts or not unpriced else ""
        tokens = sum(usage.tokens for usage in unpriced)
        return Spent(time, _sum(total, tokens, sum(not usage.tokens for usage in unpriced)))


class Showing:
    """The overview on the right side, made from the session and updated during a run.

    `set_timer` calls a function after some seconds. `painted` is called with the number of lines of a delayed update.
    """

    def __init__(
        self,
        session: "Session",
        tree: "Tree",
        right: "Right",
        set_timer: "Callable[[float, Callable[[], None]], Timer]",
    ) -> None:
        self._session, self._tree, self._right, self._set_timer = session, tree, right, set_timer
        self.figures = Figures(session.verdicts)
        self.spending = Spending(session.prices)
        self.trends: deque[tuple[Scope, Trend]] = deque(maxlen=_TRENDS_KEPT)
        """Trends read from stored runs, each with its scope. Cleared after each run."""
        self._next = 0.0
        self._drawn: tuple[Scope, tuple[object, ...]] | None = None
        """The scope that is shown, and the version of its figures."""
        self._selected: tuple[object, str, Scope | None] = None, "", None
        """A cache for `selected`: the value of `_drawn`, the key of the item, and its cases."""
        self._timer: Timer | None = None
        self.painted: Callable[[int], None] = lambda lines: None

    @property
    def scope(self) -> Scope | None:
        """The cases of the row under the cursor, or None if the row is a case or there are no rows."""
        row = self._tree.cursor
        return None if row is None or row.case >= 0 else scope_at(self._tree, row)

    @property
    def selected(self) -> Scope | None:
        """The cases of the overview's item under the cursor, or None if it has none or the overview has no focus."""
        if self._drawn is None or not (self._right.shows_overview and self._right.has_focus_within):
            return None
        pane = self._right.overview
        if self._selected[0] is not self._drawn or self._selected[1] != pane.item_key:
            cases = self.cases_of(pane.item_key, self._drawn[0], pane.overview)
            self._selected = self._drawn, pane.item_key, cases
        return self._selected[2]

    def forget(self) -> None:
        """Forget whose overview is shown, because the folder is read again. Its cases then have other numbers."""
        self._drawn = None

    def show(self) -> int:
        """Show the overview of the row under the cursor, unless it is a case. Return the number of changed lines."""
        scope = self.scope
        if scope is None:
            return 0
        began = time.monotonic()
        self._drawn = scope, self.figures.version(scope)
        title = f"Overview: {title_of(scope, self._tree)}"
        lines = self._right.show_overview(scope, title, self.overview(scope))
        now = time.monotonic()
        self._next = now + max(_SHORTEST, (now - began) * _SHARE, seconds_for(lines))
        return lines

    def follow(self) -> None:
        """Show the overview again if marks or the filter changed its cases."""
        scope = self.scope
        if scope is not None and (self._drawn is None or self._drawn[0] != scope):
            self.show()

    def update(self) -> int:
        """Show the current figures now, or soon after a recent update. Return the number of lines changed now."""
        scope = self.scope
        if scope is None or self._drawn == (scope, self.figures.version(scope)):
            return 0
        wait = self._next - time.monotonic()
        if wait <= 0:
            return self.show()
        if self._timer is None:
            self._timer = self._set_timer(wait, self._update_late)
        return 0

    def _update_late(self) -> None:
        self._timer = None
        if self._right.shows_overview:
            self.painted(self.show())

    def trend(self, scope: Scope) -> "Trend | None":
        """Return the trend of a scope, or None if it is not read yet."""
        return next((trend for known, trend in self.trends if known == scope), None)

    def cases_of(self, key: str, scope: Scope, shown: Overview) -> Scope | None:
        """Return the cases of the item `key` in the overview `shown` of a scope, or None if it has no cases."""
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
        """Return the overview of a scope."""
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
        """Return the finished executions of a scope, or () without prices."""
        return self.figures.finished(scope) if self._session.prices else ()

    def _time(self, scope: Scope, found: Tally) -> str:
        """Return the duration of the run if it ran exactly the scope, else the sum of the executions' durations.

        Return "" while cases are running, or if none has run.
        """
        store = self._session.store
        if found.unfinished or not found.executions or store.activity.running:
            return ""
        whole = scope.row.kind == "all" and not scope.query and not scope.marked
        if whole and found.executions == len(store.current):
            return seconds(store.run.duration_seconds)
        return f"{seconds(found.seconds)} in total"

    def _changes(self, scope: Scope) -> Changes | None:
        """Return changed verdicts of a scope, or None if no runs were compared or the active run changed none yet."""
        session = self._session
        runs = session.changed.runs
        found = self._changed(scope)
        if not runs or (session.store.activity.running and not found):
            return None
        listed = [self._changed_verdict(pair) for pair in found[:LISTED_CHANGES]]
        worse = sum(map(session.verdicts.flips.__getitem__, found))
        since = by_date(
            started_at(max(runs)), relative_times.now(), "%H:%M", "%-d %b %H:%M", "%Y-%m-%d", "the last run"
        )
        return Changes(since if len(runs) == 1 else f"{since} or earlier", listed, worse, len(found) - worse)

    def _changed(self, scope: Scope) -> list[Pair]:
        """Return the cases of a scope whose verdict changed, regressions first."""
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
        """Return the lines at the end of an agent's overview: the agent's problems, or why evalsets have no agent."""
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


def _sum(total: str, tokens: int, unknown: int) -> str:
    """Return `$0.12 + 1,234 tokens + 2 unknown` without empty parts. `unknown` is a number of executions."""
    known = " + ".join(filter(None, (total, counted(tokens, "token") if tokens else "")))
    if not unknown:
        return known
    return f"{known} + {unknown:,} unknown" if known else "cost unknown"

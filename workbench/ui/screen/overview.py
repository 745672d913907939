"""The actions of the overview, the filters that they set, and the data read from stored runs."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from workbench.events.events import Event, RunStarted
from workbench.results import tally
from workbench.results.overview import CAUSE, CHANGED, case_of, criterion_of
from workbench.text.counting import exact
from workbench.ui.screen.controller import Controller
from workbench.ui.tree import query
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Pair, Row
from workbench.ui.tree.query import arrange, parse_query, plain_name
from workbench.ui.tree.scope import Scope

if TYPE_CHECKING:
    from pathlib import Path

    from textual.timer import Timer

    from workbench.store.history.run_list import Trend
    from workbench.store.history.summary import ListedRun
    from workbench.store.rates import Case
    from workbench.ui.screen.view import View

_CURSOR_REST = 0.15
"""Seconds for which the cursor must rest on a row before stored runs are read for it."""
_MAX_VOTES = 200_000
"""Maximum number of votes of stored runs in memory."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A filter set by the overview: its text, and the filter, row and item to return to."""

    text: str
    before: str
    row: Row
    item: str


class Overview(Controller):
    """Actions of the overview of the row under the cursor."""

    def __init__(self, view: "View", when_taken: list[Callable[[bool], None]]) -> None:
        super().__init__(view)
        self._steps: list[_Step] = []
        self._due: Timer | None = None
        self._read_run = ""
        """ID of the newest run when stored runs were last read."""
        self._votes: dict[str, dict[Case, float]] = {}
        """The votes of stored runs, by ID of the run."""
        self._place_at_start: tuple[object, ...] | None = None
        """The cursor's place when the run started, or None if no run has started."""
        self.session.store.subscribe(self._take)
        when_taken.append(self.after_news)

    def enter(self) -> None:
        """Go to the changed case under the cursor. On another item, filter the cases that it counts."""
        pane, tree, cases = self.view.right.overview, self.view.rows, self.view.selected
        key, scope = pane.item_key, self.view.overviews.scope
        if scope is None or cases is None:
            return
        if (case := case_of(key)) is not None:
            self.view.reveal(*case)
            self.view.go_left()
        elif text := filter_for(scope, tree, conditions_of(key, pane.overview, tree, cases), cases):
            self._filter(scope, text)
        else:
            self.view.say("no filter shows exactly these cases; press M to see them in a table")

    def back(self) -> bool:
        """Undo the last filter set by `enter`, if it is still active. Return whether it was."""
        if not self._steps or self._steps[-1].text != self.view.rows.query.text:
            self._steps.clear()
            return False
        step = self._steps.pop()
        self.view.set_filter(step.before)
        self.view.tree_view.go_to(step.row)
        if self.view.right.shows_overview:
            self.view.go_right()
            self.view.right.overview.stand_on(step.item)
        self.view.show_state()
        return True

    def _filter(self, scope: Scope, text: str) -> None:
        before, item = self.view.rows.query.text, self.view.right.overview.item_key
        self._steps.append(_Step(text, before, scope.row, item))
        self.view.set_filter(text)
        self.view.go_left()
        self.view.show_state()

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._place_at_start = self._place()

    def after_news(self, ended: bool) -> None:
        """If a run has `ended`, update the overview. Go to the first cause unless the user has moved the cursor."""
        if not ended:
            return
        if self._steps and self._steps[-1].text != self.view.rows.query.text:
            self._steps.clear()
        moved, self._place_at_start = self._place_at_start != self._place(), None
        if not self.view.right.shows_overview:
            return
        self.view.overviews.trends.clear()
        self.view.show_row()
        if moved or self.view.covered or not self.view.right.overview.overview.groups:
            return
        self.view.right.overview.stand_on_first()
        if not self.view.in_right:
            self.view.go_right()

    def _place(self) -> tuple[object, ...]:
        return self.view.rows.cursor, self.view.in_right, self.view.right.moves

    def cursor_moved(self) -> None:
        """Read the trend and the costs of the row from stored runs, once the cursor rests."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        if self.view.right.shows_overview and not self.session.store.activity.running:
            self._due = self.view.set_timer(_CURSOR_REST, self._read)

    def _read(self) -> None:
        self._due = None
        scope = self.view.overviews.scope
        if scope is not None and self.view.right.shows_overview:
            self.view.work(partial(self._read_stored, scope), "overview")

    async def _read_stored(self, scope: Scope) -> None:
        """Read trend and costs in steps. Show them if the overview still has the same scope."""
        overviews = self.view.overviews
        run_id, state = self.session.store.run.run_id, self.session.state_dir
        if self._read_run != run_id:
            overviews.trends.clear()
            self._read_run = run_id
        if overviews.trend(scope) is None:
            overviews.trends.append((scope, await asyncio.to_thread(self._trend, scope, state)))
            self._show(scope)
        while pieces := overviews.spending.unread(overviews.records(scope)):
            await asyncio.to_thread(overviews.spending.read, pieces)
            if not overviews.spending.unread(overviews.records(scope)):
                self._show(scope)

    def _show(self, scope: Scope) -> None:
        overviews = self.view.overviews
        if self.view.right.shows_overview and overviews.scope == scope:
            overviews.show()

    def _trend(self, scope: Scope, state: "Path") -> "Trend":
        from workbench.store.history.run_list import pass_rates
        from workbench.store.rates import case_keys

        verdicts = self.session.verdicts
        wanted = {
            (entry.relative, entry.document.cases[case].eval_id)
            for evalset, cases in scope.parts
            for entry in [self.session.entry(evalset)]
            for case in cases
        }
        return pass_rates(state, case_keys(wanted, list(verdicts.store.records.values())), read=self._votes_of)

    def _votes_of(self, run: "ListedRun") -> "dict[Case, float]":
        from workbench.store.history.run_list import votes_of_run

        if run.run_id not in self._votes:
            votes = votes_of_run(run)
            if sum(map(len, self._votes.values())) + len(votes) > _MAX_VOTES:
                self._votes.clear()
            self._votes[run.run_id] = votes
        return self._votes[run.run_id]


def filter_for(scope: Scope, tree: Tree, tests: Iterable[str], wanted: Iterable[Pair]) -> str:
    """Return the shortest filter for exactly the `wanted` cases of a scope, such as `in:order_desk cause:no-refund`.

    Return "" if no filter can select them, for example if names differ only in capitals.
    """
    cases = set(wanted)
    for test in tests:
        for words in _words(scope, tree):
            text = f"{words} {test}".strip()
            orders = arrange(tree.entries, tree.verdicts, parse_query(text), marked=tree.marks) or {}
            if {(evalset, case) for evalset, found in orders.items() for case in found} == cases:
                return text
    return ""


def conditions_of(key: str, overview: tally.Overview, tree: Tree, cases: Iterable[Pair]) -> Iterator[str]:
    """Yield candidate filters for the cases of an item, such as `cause:no-refund`. Some may not match them."""
    if key.startswith(CAUSE):
        yield query.CAUSE + key.removeprefix(CAUSE)
        # Which causes are one of a kind depends on the rest of the filter. Their own names do not.
        causes = (tree.verdicts.cause(*pair) for pair in cases)
        yield " ".join(dict.fromkeys(query.CAUSE + cause.slug for cause in causes if cause is not None))
    elif key == CHANGED:
        yield f":{query.CHANGED}"
    elif (found := criterion_of(key)) is not None:
        name, frozen = found
        scores = overview.tally.frozen_scores if frozen else overview.tally.scores
        threshold = next((one.threshold for one in scores if one.name == name), None)
        if threshold is not None:
            tests = (f"{name}{sign}{exact(threshold)}" for sign in ("<", ">="))
            yield from (f"{test} :{query.FROZEN}" if frozen else test for test in tests if parse_query(test).metrics)


def _words(scope: Scope, tree: Tree) -> Iterator[str]:
    """Yield filters that select the scope, the shortest first. Some select more."""
    places = [""]
    if scope.row.kind != "all":
        places.append(query.INSIDE + plain_name(tree.groups[scope.row.agent]))
        files = (plain_name(tree.entries[evalset].relative) for evalset in scope.evalsets)
        places.append(" ".join(query.INSIDE + file for file in files))
    before = f":{query.MARKED}" if scope.marked else scope.query
    # Several causes are alternatives, so those of the filter so far would add their cases. So are names after `in:`.
    without_causes = _without(before, query.CAUSE)
    for text in dict.fromkeys((without_causes, before, _without(without_causes, query.INSIDE))):
        yield from (f"{text} {place}".strip() for place in places)


def _without(text: str, beginning: str) -> str:
    return " ".join(word for word in text.split() if not word.startswith(beginning))

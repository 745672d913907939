"""The filters that select the cases of an item of the overview."""

from collections.abc import Iterable, Iterator

from workbench.results.overview import CAUSE, CHANGED, criterion_of
from workbench.results.tally import Overview
from workbench.text.counting import exact
from workbench.ui.tree import query
from workbench.ui.tree.arrange import arrange
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Pair
from workbench.ui.tree.query import parse_query, plain_name
from workbench.ui.tree.scope import Scope


def filter_for(scope: Scope, tree: Tree, tests: Iterable[str], wanted: Iterable[Pair]) -> str:
    """Return the shortest filter that shows exactly the `wanted` cases of a scope: `order_desk cause:no-refund`.

    Return "" if no test can select them, as for names that differ only in capitals.
    """
    cases = set(wanted)
    for test in tests:
        for words in _words(scope, tree):
            text = " ".join([*(word for word in words if word), test])
            if set(_shown(tree, text)) == cases:
                return text
    return ""


def conditions_of(key: str, overview: Overview, tree: Tree, cases: Iterable[Pair]) -> Iterator[str]:
    """Yield what the cases of an item have in common, as words of a filter."""
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


def _words(scope: Scope, tree: Tree) -> Iterator[list[str]]:
    """Yield words that select the scope, the shortest first."""
    before = f":{query.MARKED}" if scope.marked else scope.query
    # Several causes are alternatives, so those of the filter so far would add their cases. So are names after `in:`.
    without_causes = _without(before, query.CAUSE)
    for text in dict.fromkeys((without_causes, before, _without(without_causes, query.INSIDE))):
        yield from ([*text.split(), *names] for names in _names(scope, tree))


def _without(text: str, beginning: str) -> str:
    return " ".join(word for word in text.split() if not word.startswith(beginning))


def _names(scope: Scope, tree: Tree) -> Iterator[list[str]]:
    """Yield words that name the row, the shortest first."""
    yield []
    agent = tree.groups[scope.row.agent] if scope.row.kind != "all" else ""
    if scope.row.kind == "agent":
        yield [agent]
        yield [query.INSIDE + plain_name(agent)]
    elif scope.row.kind in ("evalset", "passed"):
        entry = tree.entries[scope.row.evalset]
        yield [entry.document.eval_set_id]
        yield [agent, entry.document.eval_set_id]
    if scope.row.kind != "all":
        yield [query.INSIDE + plain_name(tree.entries[evalset].relative) for evalset in scope.evalsets]


def _shown(tree: Tree, text: str) -> Iterator[Pair]:
    orders = arrange(tree.entries, tree.verdicts, parse_query(text), marked=tree.marks)
    for evalset, cases in (orders or {}).items():
        for case in cases:
            yield evalset, case

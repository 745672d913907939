"""The cases that an overview is about, and the filter that selects one of their causes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.counting import counted, exact
from workbench.text import one_line
from workbench.ui.tree.arrange import arrange
from workbench.ui.tree.labels import label
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Row
from workbench.ui.tree.query import CAUSE, CHANGED, INSIDE, MARKED, PASSED, parse_query, plain_name

Pair = tuple[int, int]
"""A case as (evalset, case)."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The cases at and below a row.

    `pairs` are the cases that marks or a filter choose, in file order, or None for all cases of the `evalsets`. `total`
    is the number of cases at and below the row. `query` is the text of the filter.
    """

    row: Row
    evalsets: tuple[int, ...]
    pairs: tuple[Pair, ...] | None
    total: int
    query: str = ""
    marked: bool = False

    @property
    def cases(self) -> int:
        """The number of cases."""
        return self.total if self.pairs is None else len(self.pairs)


def scope_of(tree: Tree) -> Scope | None:
    """Return the cases of the row under the cursor, or None on a case. The first row stands for the marks, if any."""
    row = tree.cursor
    if row is None or row.kind in ("case", "repeat"):
        return None
    members = tuple(tree.members(row))
    total = sum(tree.outline.sizes[evalset] for evalset in members)
    if row.kind == "all" and len(tree.marks):
        return Scope(row, members, tuple(sorted(tree.marks)), total, marked=True)
    if row.kind == "passed":
        return Scope(row, members, tuple(tree.outline.cases(row)), total, PASSED)
    if tree.query.empty:
        return Scope(row, members, None, total)
    pairs = tree.outline.cases(row)
    return Scope(row, members, tuple(sorted(pairs)), total, " ".join(tree.query.text.split()))


def name_of(scope: Scope, tree: Tree) -> str:
    """Return the safe name of a scope's row."""
    row = scope.row
    if row.kind == "all":
        return "everything"
    if row.kind == "agent":
        return label(tree.groups[row.agent])
    entry = tree.entries[row.evalset]
    return label(entry.document.eval_set_id or entry.file.name)


def title_of(scope: Scope, name: str, what: str = "Overview") -> str:
    """Return `Overview: everything, :fail date (48 of 312)`. `name` is the safe name of the row."""
    if scope.marked:
        return f"{what}: {counted(scope.cases, 'marked case')}"
    if scope.pairs is None:
        return f"{what}: {name}"
    return f"{what}: {name}, {one_line(scope.query)} ({scope.cases:,} of {scope.total:,})"


def filter_for(scope: Scope, tree: Tree, cause: str, wanted: Collection[Pair]) -> str:
    """Return the shortest filter that shows exactly the `wanted` cases of a cause: `order_desk cause:no-refund`.

    Return "" if there is none, as for names that differ only in capitals.
    """
    cases = set(wanted)
    if found := _shortest(scope, tree, CAUSE + cause, cases):
        return found
    # Which causes are one of a kind depends on the rest of the filter. Their own names do not.
    causes = (tree.verdicts.cause(*pair) for pair in sorted(cases))
    slugs = dict.fromkeys(one.slug for one in causes if one is not None)
    return _shortest(scope, tree, " ".join(CAUSE + slug for slug in slugs), cases)


def filter_for_criterion(scope: Scope, tree: Tree, criterion: str, threshold: float | None) -> str:
    """Return a filter for the cases of a scope that miss the threshold of a criterion, or "" if there is none."""
    test = "" if threshold is None else f"{criterion}<{exact(threshold)}"
    if not parse_query(test).metrics:
        return ""
    wanted = set(scope_pairs(scope, tree)) & set(_shown(tree, test))
    return _shortest(scope, tree, test, wanted)


def changed_pairs(scope: Scope, flips: Mapping[Pair, bool]) -> list[Pair]:
    """Return the cases of a scope whose verdict changed, the worse first. `flips` says of each whether it got worse."""
    inside: Collection[object] = scope.evalsets if scope.pairs is None else set(scope.pairs)
    found = [pair for pair in flips if (pair[0] if scope.pairs is None else pair) in inside]
    return sorted(found, key=lambda pair: not flips[pair])


def filter_for_changed(scope: Scope, tree: Tree) -> str:
    """Return a filter for the cases of a scope whose verdict changed, or "" if there is none."""
    return _shortest(scope, tree, f":{CHANGED}", set(changed_pairs(scope, tree.verdicts.flips)))


def scope_pairs(scope: Scope, tree: Tree) -> Sequence[Pair]:
    """Return the cases of a scope, in file order."""
    if scope.pairs is not None:
        return scope.pairs
    return [(evalset, case) for evalset in scope.evalsets for case in range(tree.outline.sizes[evalset])]


def _shortest(scope: Scope, tree: Tree, test: str, wanted: set[Pair]) -> str:
    """Return the shortest filter with this test that shows exactly the wanted cases, or "" if there is none."""
    for words in _words(scope, tree):
        text = " ".join([*(word for word in words if word), test])
        if set(_shown(tree, text)) == wanted:
            return text
    return ""


def _words(scope: Scope, tree: Tree) -> Iterator[list[str]]:
    """Yield words that select the scope, the shortest first."""
    before = f":{MARKED}" if scope.marked else scope.query
    # Several causes are alternatives, so those of the filter so far would add their cases. So are names after `in:`.
    without_causes = _without(before, CAUSE)
    for text in dict.fromkeys((without_causes, before, _without(without_causes, INSIDE))):
        yield from ([*text.split(), *names] for names in _names(scope, tree))


def _without(query: str, beginning: str) -> str:
    return " ".join(word for word in query.split() if not word.startswith(beginning))


def _names(scope: Scope, tree: Tree) -> Iterator[list[str]]:
    """Yield words that name the row, the shortest first."""
    yield []
    agent = tree.groups[scope.row.agent] if scope.row.kind != "all" else ""
    if scope.row.kind == "agent":
        yield [agent]
        yield [INSIDE + plain_name(agent)]
    elif scope.row.kind in ("evalset", "passed"):
        entry = tree.entries[scope.row.evalset]
        yield [entry.document.eval_set_id]
        yield [agent, entry.document.eval_set_id]
    if scope.row.kind != "all":
        yield [INSIDE + plain_name(tree.entries[evalset].relative) for evalset in scope.evalsets]


def _shown(tree: Tree, text: str) -> Iterator[Pair]:
    orders = arrange(tree.entries, tree.verdicts, parse_query(text), marked=tree.marks)
    for evalset, cases in (orders or {}).items():
        for case in cases:
            yield evalset, case

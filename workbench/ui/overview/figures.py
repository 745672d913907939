"""Tallies and causes of cases, computed again only for evalsets whose verdicts changed."""

from collections import Counter
from collections.abc import Iterable, Sequence

from workbench.causes.cause import Cause
from workbench.causes.groups import CauseGroup, group_by_cause
from workbench.execution import Execution
from workbench.rendering.faces import Status
from workbench.rendering.overview.tally import Tally, added, tally
from workbench.ui.overview.scope import Pair, Scope
from workbench.ui.tree.verdicts import CaseVerdict, Verdicts

_FAILING = ("failed", "error")


class Figures:
    """The figures of a workspace's cases, from their newest verdicts."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._tallies: dict[int, tuple[int, Tally]] = {}
        self._causes: dict[int, tuple[int, Sequence[tuple[Pair, Cause]]]] = {}

    def version(self, scope: Scope) -> tuple[object, ...]:
        """Return a value that changes with each verdict of the scope's evalsets, and with each changed verdict."""
        versions = (self._verdicts.versions[evalset] for evalset in scope.evalsets)
        return self._verdicts.flips_version, *versions

    def tally(self, scope: Scope) -> Tally:
        """Return the sums over the cases of a scope."""
        if scope.pairs is not None:
            found = [verdict for pair in scope.pairs if (verdict := self._verdicts.by_case.get(pair)) is not None]
            return tally(_states(found), map(self._records, found))
        return added([self._tally_of(evalset) for evalset in scope.evalsets])

    def groups(self, scope: Scope) -> list[CauseGroup[Pair]]:
        """Return the failing cases of a scope by cause, the biggest group first."""
        if scope.pairs is not None:
            return group_by_cause(self._with_cause(scope.pairs))
        causes = (self._causes_of(evalset) for evalset in scope.evalsets)
        return group_by_cause(pair for of_evalset in causes for pair in of_evalset)

    def finished(self, scope: Scope) -> list[Execution]:
        """Return the finished executions of a scope, in file order."""
        pairs = scope.pairs
        if pairs is None:
            found = [one for evalset in scope.evalsets for _, one in self._verdicts.of_evalset(evalset)]
        else:
            found = [verdict for pair in pairs if (verdict := self._verdicts.by_case.get(pair)) is not None]
        return [record for verdict in found for record in self._records(verdict) if record.finished]

    def _tally_of(self, evalset: int) -> Tally:
        version = self._verdicts.versions[evalset]
        known = self._tallies.get(evalset)
        if known is None or known[0] != version:
            cases = (self._records(verdict) for _, verdict in self._verdicts.of_evalset(evalset))
            known = version, tally(self._verdicts.counts[evalset], cases)
            self._tallies[evalset] = known
        return known[1]

    def _causes_of(self, evalset: int) -> Sequence[tuple[Pair, Cause]]:
        version = self._verdicts.versions[evalset]
        known = self._causes.get(evalset)
        if known is None or known[0] != version:
            failing = ((evalset, case) for case, one in self._verdicts.of_evalset(evalset) if one.state in _FAILING)
            known = version, list(self._with_cause(failing))
            self._causes[evalset] = known
        return known[1]

    def _with_cause(self, pairs: Iterable[Pair]) -> Iterable[tuple[Pair, Cause]]:
        for pair in pairs:
            cause = self._verdicts.cause(*pair)
            if cause is not None:
                yield pair, cause

    def _records(self, verdict: CaseVerdict) -> Sequence[Execution]:
        records = self._verdicts.store.records
        return [records[ref] for ref in verdict.refs]


def _states(verdicts: Iterable[CaseVerdict]) -> Counter[Status]:
    return Counter(verdict.state for verdict in verdicts)

"""Which cases are marked, with a count for each evalset, so that a heading knows at once whether all below it are."""

from collections import Counter
from collections.abc import Iterable, Iterator


class Marks:
    """A set of (evalset, case)."""

    def __init__(self) -> None:
        self._cases: set[tuple[int, int]] = set()
        self._counts: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._cases)

    def __contains__(self, pair: object) -> bool:
        return pair in self._cases

    def count(self, evalset: int) -> int:
        """How many cases of an evalset are marked."""
        return self._counts[evalset]

    def toggle(self, cases: Iterable[tuple[int, int]]) -> None:
        """Marks all of them; where all are marked already, unmarks them."""
        wanted = set(cases)
        if wanted <= self._cases:
            self._cases -= wanted
        else:
            self._cases |= wanted
        self._recount()

    def add(self, cases: Iterable[tuple[int, int]]) -> None:
        """Marks all of them."""
        self._cases.update(cases)
        self._recount()

    def clear(self) -> None:
        """Marks nothing."""
        self._cases.clear()
        self._counts.clear()

    def _recount(self) -> None:
        self._counts = Counter(evalset for evalset, _ in self._cases)

"""Values in a row of which many are never looked at."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar, overload

T = TypeVar("T")


class _Missing:
    """Stands where nothing was made yet."""


_MISSING: Final = _Missing()


class Late(Sequence[T]):
    """A list of values; those that were only promised are made when they are asked for, and then kept."""

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._values: list[T | _Missing] = list(values)
        # A function for each value would be ten thousand objects for the garbage collector: there is one a promise.
        self._promised: list[int] = []
        self._makers: list[Callable[[int], T]] = []

    def append(self, value: T) -> None:
        self._values.append(value)

    def extend(self, values: Iterable[T]) -> None:
        self._values.extend(values)

    def promise(self, count: int, make: Callable[[int], T]) -> None:
        """So many more values; `make` gives one by its place among these."""
        self._promised.append(len(self._values))
        self._makers.append(make)
        self._values += [_MISSING] * count

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return (self[place] for place in range(len(self._values)))

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self._values)))]
        value = self._values[place]
        if isinstance(value, _Missing):
            place %= len(self._values)
            number = bisect_right(self._promised, place) - 1
            value = self._values[place] = self._makers[number](place - self._promised[number])
        return value

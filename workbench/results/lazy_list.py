"""A list whose values are created on first use."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar, overload

T = TypeVar("T")


class _Missing:
    """A placeholder for a value that was not created yet."""


_MISSING: Final = _Missing()


class LazyList(Sequence[T]):
    """A list whose promised values are created on first use and then stored."""

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._values: list[T | _Missing] = list(values)
        # One function per promise: one per value would give the garbage collector ten thousand objects.
        self._promised: list[int] = []
        self._makers: list[Callable[[int], T]] = []

    def append(self, value: T) -> None:
        """Append a value."""
        self._values.append(value)

    def extend(self, values: Iterable[T]) -> None:
        """Append several values."""
        self._values.extend(values)

    def promise(self, count: int, make: Callable[[int], T]) -> None:
        """Append `count` values that `make` creates from their index among these."""
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

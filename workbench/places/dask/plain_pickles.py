"""Pickles of a cluster's other processes, read as data.

Dask's messages have pickles in them, and an ordinary unpickler calls what they name. Ours knows the exceptions of
Python, sets and bytes. Everything else becomes a `Placeholder`, so that no pickle can run code in the client.
"""

import builtins
import io
import pickle
from collections.abc import Iterable
from typing import Any

_EXCEPTIONS = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
}
_PLAIN = {**_EXCEPTIONS, **{kind.__name__: kind for kind in (set, frozenset, bytes, bytearray, memoryview)}}
_BUILTINS = ("builtins", "__builtin__", "exceptions")


class Placeholder(Exception):  # noqa: N818 - Dask raises what it finds in the place of an exception
    """What stands for an object of a class that is not known here. It takes any state and forgets it."""

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*(value for value in values if isinstance(value, str)))

    def __setstate__(self, state: Any) -> None:
        """Forget the state."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forget an item."""

    def append(self, value: Any) -> None:
        """Forget an item."""

    def extend(self, values: Iterable[Any]) -> None:
        """Forget items."""

    def add(self, value: Any) -> None:
        """Forget an item."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        known = _PLAIN.get(global_name) if module_name in _BUILTINS else None
        return Placeholder if known is None else known

    def persistent_load(self, pid: Any) -> Any:
        return Placeholder()


def loads(data: Any, /, *, buffers: Iterable[Any] | None = None, **named: Any) -> Any:
    """Return the value of a pickle, without calling anything that it names but these classes."""
    return _Unpickler(io.BytesIO(data), buffers=buffers).load()


def read_pickles_as_data() -> None:
    """Replace the unpickler of this process. Call it before Dask is imported."""
    pickle.loads = loads
    pickle.load = lambda file, **named: _Unpickler(file, buffers=named.get("buffers")).load()
    pickle.Unpickler = _Unpickler  # type: ignore[misc]

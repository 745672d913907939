"""Pickles of a cluster's other processes cannot run code in the client."""

import operator
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from workbench.places.dask.plain_pickles import Placeholder, loads


class Calls:
    """An object whose pickle calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "value",
    [
        *(b"x" * 1000, (b"data", None), (b"", (-9, "last words")), {"here": True, "python": "3.12"}, {1, 2}, bytes),
        *(bytearray(b"x"), [1.5, None, "text"], frozenset({"a"})),
    ],
)
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_data_is_read_as_it_is(value: Any, protocol: int) -> None:
    assert loads(pickle.dumps(value, protocol)) == value


def test_exceptions_of_python_stay_and_others_can_be_raised() -> None:
    error = loads(pickle.dumps(KeyError("actor")))
    assert (type(error), error.args) == (KeyError, ("actor",))
    with pytest.raises(Placeholder, match="it is full"):
        raise loads(pickle.dumps(pickle.PicklingError("it is full")))


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "mark"
    for attack in (
        Calls(os.system, f"touch {mark}"),
        Calls(eval, f"open({str(mark)!r}, 'w')"),
        Calls(getattr, Calls(__import__, "os"), "system"),
        Calls(operator.methodcaller, "touch"),
        [Calls(exec, "1")],
        OrderedDict(a=Path("/")),
        {"key": Calls(os.mkdir, str(mark))},
    ):
        loads(pickle.dumps(attack, protocol))
    assert isinstance(loads(pickle.dumps(Calls(os.system, "true"), protocol)), Placeholder)
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [b"cbuiltins\neval\n(V1\ntR.", b"cbuiltins\nException.__subclasses__\n)R.", b"c__builtin__\nopen\n(V/tmp/x\ntR."],
)
def test_names_that_lead_to_functions_are_not_followed(text: bytes) -> None:
    assert isinstance(loads(text), Placeholder)

"""Tests of `workbench.text.fast_dataclass`: its classes behave as those of Python's own `dataclass`."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from workbench.events.events import CaseError, CaseFinished, CaseRef, Noticed, Usage
from workbench.text import fast_dataclass

_REF = CaseRef("shop", "a.evalset.json", "a", "late_order")


def _make(dataclass: Any, *, order: bool = False) -> Any:
    @dataclass(frozen=True, slots=True, order=order)
    class Order:
        """An order."""

        item: str
        prices: tuple[float, ...] = ()
        notes: dict[str, str] = dataclasses.field(default_factory=dict)

        @property
        def total(self) -> float:
            return sum(self.prices)

    return Order


_BOTH = pytest.mark.parametrize("dataclass", [dataclasses.dataclass, fast_dataclass.dataclass])


@_BOTH
def test_fields_are_set_shown_and_compared(dataclass: Any) -> None:
    made = _make(dataclass)
    order = made("tea", notes={"a": "b"})
    assert repr(order).endswith("Order(item='tea', prices=(), notes={'a': 'b'})")
    assert order == made("tea", (), {"a": "b"})
    assert order != made("tea")
    assert order != ("tea", (), {"a": "b"})
    assert made("tea", (1.0, 2.0)).total == 3.0
    assert list(inspect.signature(made).parameters) == ["item", "prices", "notes"] == list(made.__match_args__)


@_BOTH
def test_each_object_has_its_own_default(dataclass: Any) -> None:
    made = _make(dataclass)
    made("tea").notes["a"] = "b"
    assert made("tea").notes == {}


@_BOTH
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda order: setattr(order, "item", "cup"), "cannot assign to field 'item'"),
        (lambda order: delattr(order, "item"), "cannot delete field 'item'"),
    ],
)
def test_change_is_refused(dataclass: Any, change: Callable[[object], None], message: str) -> None:
    order = _make(dataclass)("tea")
    with pytest.raises(dataclasses.FrozenInstanceError, match=message):
        change(order)
    assert order.item == "tea"
    assert not hasattr(order, "__dict__")


@_BOTH
def test_wrong_arguments_are_refused(dataclass: Any) -> None:
    made = _make(dataclass)
    with pytest.raises(TypeError, match="item"):
        made()
    with pytest.raises(TypeError, match="color"):
        made("tea", color="red")


@_BOTH
def test_order_is_that_of_the_fields(dataclass: Any) -> None:
    made = _make(dataclass, order=True)
    assert made("cup") < made("tea") <= made("tea")
    assert made("tea", (2.0,)) > made("tea", (1.0,)) >= made("cup")
    with pytest.raises(TypeError):
        assert _make(dataclass)("cup") < _make(dataclass)("tea")


@_BOTH
def test_hash_needs_hashable_fields(dataclass: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(_make(dataclass)("tea"))
    usage = Usage(1)
    assert hash(usage) == hash(Usage(1))


def test_own_methods_are_kept() -> None:
    assert hash(_REF) == hash((_REF.evalset_file, _REF.eval_id, 1))
    cancelled = CaseFinished(_REF, "error", CaseError("cancelled", "stopped"), 1.0)
    assert cancelled.status == "cancelled"


def test_functions_of_python_work() -> None:
    notice = Noticed("info", "no judge")
    assert dataclasses.replace(notice, hint="set a key") == Noticed("info", "no judge", "set a key")
    assert dataclasses.asdict(notice) == {
        "level": "info",
        "message": "no judge",
        "hint": "",
        "forecast": False,
        "in_report": False,
    }
    assert copy.copy(notice) == notice == copy.deepcopy(notice) == pickle.loads(pickle.dumps(notice))


def test_class_that_may_change_is_refused() -> None:
    with pytest.raises(TypeError, match="only for frozen"):
        _make(lambda **options: fast_dataclass.dataclass(frozen=False, slots=True))

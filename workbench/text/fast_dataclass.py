"""`dataclass` for frozen classes with slots. It creates a class in a quarter of the time that Python's own needs.

Python's own compiles each method of each class: `__init__`, `__repr__`, `__eq__`, `__hash__`, `__setattr__` and
`__delattr__`. For the classes that the first frame needs, this took a tenth of the time until that frame. Here only
`__init__` is compiled, and the others are closures. The rest is Python's own, so `fields`, `replace` and `asdict` work.
The type checker sees Python's own `dataclass`.
"""

import dataclasses
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

_Fields: TypeAlias = tuple[dataclasses.Field[Any], ...]
_Method: TypeAlias = Callable[..., Any]


def _dataclass(*, frozen: bool, slots: bool, order: bool = False) -> Callable[[type], type]:
    """Return a decorator that turns a class without bases into a dataclass. `frozen` and `slots` must be true."""
    if not (frozen and slots):
        raise TypeError("only for frozen classes with slots; use dataclasses.dataclass for others")

    def decorate(plain: type) -> type:
        own = set(vars(plain))
        cls: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
        fields = dataclasses.fields(cls)
        methods = {"__init__": _init(cls, fields), **_readers(fields, order=order), **_guards(fields)}
        for name, method in methods.items():
            if name not in own:
                method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
                setattr(cls, name, method)
        return cls

    return decorate


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


def _init(cls: type, fields: _Fields) -> _Method:
    """Compile `__init__`. It stores values through the slots, because the class refuses to set attributes."""
    names: dict[str, Any] = {"_missing": dataclasses.MISSING}
    parameters, lines = ["self"], []
    for field in fields:
        name = value = field.name
        names[f"set_{name}"] = vars(cls)[name].__set__
        if field.default is not dataclasses.MISSING:
            names[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            names[f"make_{name}"] = field.default_factory
            parameters.append(f"{name}=_missing")
            value = f"make_{name}() if {name} is _missing else {name}"
        else:
            parameters.append(name)
        lines.append(f"    set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *lines]), names)
    init: _Method = names["__init__"]
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init


def _readers(fields: _Fields, *, order: bool) -> dict[str, _Method]:
    """Return the methods that show and compare the fields."""
    names = [field.name for field in fields]
    # For a single name, `attrgetter` returns no tuple.
    values = operator.attrgetter(*names) if len(names) > 1 else lambda self: (getattr(self, names[0]),)

    def shown(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def compared(compare: Callable[[Any, Any], bool]) -> _Method:
        return lambda self, other: compare(values(self), values(other)) if type(other) is type(self) else NotImplemented

    comparisons = ("eq", "lt", "le", "gt", "ge") if order else ("eq",)
    return {
        "__repr__": shown,
        "__hash__": lambda self: hash(values(self)),
        **{f"__{name}__": compared(getattr(operator, name)) for name in comparisons},
    }


def _guards(fields: _Fields) -> dict[str, _Method]:
    """Return the methods that refuse changes, and those with which `copy` and `pickle` make a copy."""

    def refuse_assignment(self: object, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def refuse_deletion(self: object, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def state(self: object) -> list[object]:
        return [getattr(self, field.name) for field in fields]

    def set_state(self: object, values: list[object]) -> None:
        for field, value in zip(fields, values, strict=True):
            object.__setattr__(self, field.name, value)

    return {
        "__setattr__": refuse_assignment,
        "__delattr__": refuse_deletion,
        "__getstate__": state,
        "__setstate__": set_state,
    }

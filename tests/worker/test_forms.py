"""Values of recorded calls come back equal, and reading them imports and runs nothing."""

import dataclasses
import datetime
import decimal
import enum
import json
import sys
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.worker.error_forms import decoded_error, encoded_error
from workbench.worker.value_forms import UnknownFormError, decoded, encoded


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    LARGE = "large"


class Level(enum.IntEnum):
    HIGH = 2


class Rate(float, enum.Enum):
    FULL = 1.0


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Word(str):
    __slots__ = ()


class Count(int):
    pass


class Inner(pydantic.BaseModel):
    number: int = 1
    note: str | None = None


class Outer(pydantic.BaseModel):
    model_config = {"extra": "allow"}
    inner: Inner
    many: list[Inner] = []

    @pydantic.model_validator(mode="after")
    def _refuse(self) -> "Outer":
        validated.append(self)
        return self


validated: list[Any] = []


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        validated.append(self)


class Money(NamedTuple):
    amount: float
    parts: tuple[int, ...] = ()


class Children(list["Node"]):
    def __iter__(self) -> Iterator["Node"]:
        visited.append(self)
        assert len(visited) < 10, "nodes are visited again and again"
        return super().__iter__()


visited: list[Any] = []


@dataclasses.dataclass
class Node:
    parent: "Node | None" = None
    children: Children = dataclasses.field(default_factory=Children)


class GoneError(LookupError):
    def __init__(self, number: int, code: int) -> None:
        super().__init__(f"{number} is gone")
        self.code = code
        validated.append(self)


class SpokenError(ValueError):
    def __str__(self) -> str:
        return f"spoken {self.words}"  # type: ignore[attr-defined]


_PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4)
)
_ODD = (
    st.binary(max_size=4)
    | st.decimals(allow_nan=False)
    | st.datetimes().map(lambda value: value.replace(fold=0))
    | st.dates()
    | st.times().map(lambda value: value.replace(fold=0))
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from(Colour)
)
_KEYS = st.text(max_size=2) | st.just("$form") | st.integers() | st.tuples(st.integers())
_VALUES = st.recursive(
    _PLAIN | _ODD | st.frozensets(st.integers(0, 7), max_size=2),  # Others may be in another order afterwards.
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_encoded_values_are_decoded_equal_and_with_the_same_type(value: Any) -> None:
    again = decoded(json.loads(json.dumps(encoded(value), allow_nan=False)))
    assert again == value
    assert repr(again) == repr(value)


@given(st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
def test_json_data_is_encoded_unchanged(value: Any) -> None:
    if "$form" not in json.dumps(value):
        assert encoded(value) == value


@pytest.mark.parametrize("kind", [set, frozenset])
def test_texts_of_a_set_are_sorted_so_that_equal_sets_are_equal_in_files(kind: Any) -> None:
    assert encoded(kind("frozen")) == {"$form": kind.__name__, "value": sorted("frozen")}


def test_decoding_models_and_dataclasses_runs_none_of_their_code() -> None:
    value = [Outer(inner=Inner(number=2), many=[Inner(note="x")], more=(1,)), Point(1, (2,))]  # type: ignore[call-arg]
    data = json.loads(json.dumps(encoded(value)))
    validated.clear()
    again = decoded(data)
    assert validated == []
    assert again == value
    assert again[0].model_dump() == value[0].model_dump()  # type: ignore[attr-defined]


def test_object_without_a_json_form_keeps_its_repr() -> None:
    class Local(pydantic.BaseModel):
        number: int = 3

    thing = object()
    again = decoded(encoded([thing, Local(number=4)]))
    assert repr(again[0]) == repr(thing)
    assert (again[1].number, repr(again[1])) == (4, "Local(number=4)")


@pytest.mark.parametrize("member", [Size.LARGE, Level.HIGH, Rate.FULL, Access.READ])
def test_enum_member_that_equals_json_data_stays_a_member(member: Any) -> None:
    for value in (member, {"a": [member]}, {member: 1}, [member, ()]):
        again = decoded(json.loads(json.dumps(encoded(value))))
        assert repr(again) == repr(value)


@pytest.mark.parametrize("member", [Size.LARGE, Level.HIGH, Rate.FULL])
def test_enum_member_of_an_unknown_class_becomes_its_plain_value(member: Any) -> None:
    text = json.dumps(encoded([member])).replace(__name__, "shop.gone")
    assert repr(decoded(json.loads(text))) == repr([member.value])


def test_combined_int_flags_become_a_number() -> None:
    assert decoded(encoded([Access.READ | Access.WRITE])) == [3]


def test_other_subclasses_of_text_and_numbers_are_stored_as_json_data() -> None:
    assert repr(encoded([Word("a"), Count(1)])) == repr(encoded([Word("a"), Count(1), ()])[:2]) == "['a', 1]"


def test_tree_with_links_to_parents_is_cut_at_each_link_and_visited_once() -> None:
    root = Node()
    root.children.extend([Node(root), Node(root)])
    visited.clear()
    again = decoded(encoded(root))
    assert len(visited) == 3
    assert [repr(child.parent) for child in again.children] == ["<circular reference>"] * 2
    assert [child.children for child in again.children] == [[], []]


def test_value_that_is_repeated_but_not_inside_itself_is_encoded_each_time() -> None:
    shared = Point(1)
    assert decoded(encoded([shared, {"again": shared}])) == [shared, {"again": shared}]


@pytest.mark.parametrize(
    "error",
    [
        GoneError(1, 2),
        KeyError("x"),
        OSError(2, "No such file"),
        UnicodeDecodeError("utf-8", b"", 0, 1, "bad"),
        OSError(),
    ],
)
def test_decoded_error_has_the_class_and_text_of_the_recorded_error(error: Exception) -> None:
    data = encoded_error(error)
    validated.clear()
    again = decoded_error(data)
    assert validated == []
    assert isinstance(again, type(error))
    assert (str(again), type(again).__name__) == (str(error), type(error).__name__)


def test_error_keeps_its_small_attributes() -> None:
    error = GoneError(1, 7)
    error.details = {"at": (1, 2), "seen": {3}}  # type: ignore[attr-defined]
    error.source = object()  # type: ignore[attr-defined]
    error.body = "x" * 100_000  # type: ignore[attr-defined]
    data = json.loads(json.dumps(encoded_error(error)))
    again: Any = decoded_error(data)
    assert vars(again) == {"code": 7, "details": {"at": (1, 2), "seen": {3}}}
    gone: Any = decoded_error({**data, "types": ["shop.GoneError", "builtins.LookupError"]})
    assert (gone.code, str(gone)) == (7, "1 is gone")
    damaged: Any = decoded_error({**data, "attributes": {"code": {"$form": "shell"}, "args": 1, "number": 2}})
    assert (vars(damaged), damaged.args) == ({"number": 2}, ("1 is gone",))


@pytest.mark.parametrize(
    ("error", "names"),
    [
        (KeyError("x", 1), ("args",)),
        (FileNotFoundError(2, "No such file", "a.txt"), ("args", "errno", "strerror", "filename")),
        (ModuleNotFoundError("no shop", name="shop"), ("args", "name")),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ("args", "encoding", "object", "start", "end", "reason")),
    ],
)
def test_attributes_of_built_in_errors_survive_encoding(error: Exception, names: tuple[str, ...]) -> None:
    again = decoded_error(encoded_error(error))
    assert (type(again), str(again)) == (type(error), str(error))
    assert [getattr(again, name) for name in names] == [getattr(error, name) for name in names]


def test_error_whose_class_is_unknown_has_the_nearest_base_and_its_own_name() -> None:
    again = decoded_error(
        {"types": ["shop.GoneError", "builtins.LookupError", "builtins.Exception"], "message": "gone"}
    )
    assert (type(again).__name__, isinstance(again, LookupError), str(again)) == ("GoneError", True, "gone")
    spoken = decoded_error({"types": [f"{__name__}.SpokenError"], "message": "spoken hello"})
    assert (isinstance(spoken, SpokenError), str(spoken)) == (True, "spoken hello")


@pytest.mark.parametrize(
    "name", ["builtins.KeyboardInterrupt", "builtins.print", "os.system", "this.Error", "", ".", "a"]
)
def test_only_exceptions_of_imported_modules_are_raised(name: str) -> None:
    sys.modules.pop("this", None)
    assert type(decoded_error({"types": [name], "message": "m"})) is Exception
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "data",
    [
        {"$form": "shell", "value": "rm"},
        {"$form": ["tuple"], "value": []},
        {"$form": None},
        {"$form": "bytes", "value": 1},
        {"$form": "bytes", "value": "not base64!"},
        {"$form": "dict", "value": [[1]]},
        {"$form": "dict", "value": [[[], 1]]},
        {"$form": "set", "value": [[]]},
        {"$form": "datetime", "value": "soon"},
        {"$form": "timedelta", "value": [10**30]},
        {"$form": "decimal", "value": "x"},
        {"$form": "uuid", "value": "x"},
        {"$form": "model", "value": [], "type": "a"},
        {"$form": "namedtuple", "value": [["a b", 1]], "type": "a.B"},
        {"$form": "namedtuple", "value": [1], "type": "a.B"},
        {"$form": "dataclass", "value": {"y": 1}, "type": "sys.version_info"},
    ],
)
def test_damaged_forms_are_refused_or_become_plain_objects(data: Any) -> None:
    try:
        assert type(decoded(data)).__module__ == "workbench.worker.value_forms"
    except UnknownFormError:
        return


def test_named_tuple_keeps_its_class_or_at_least_its_fields() -> None:
    money = Money(12.5, (1, 2))
    made = decoded(json.loads(json.dumps(encoded([money]))))[0]
    assert (type(made), made) == (Money, money)
    for name in ("nowhere.Money", f"{__name__}.Point", "builtins.tuple"):
        made = decoded({**encoded(money), "type": name})
        assert (made, made.amount, made.parts) == (money, 12.5, (1, 2))


def test_form_that_names_no_suitable_class_becomes_a_plain_object() -> None:
    for name in ("os.environ", f"{__name__}.validated", "enum.Enum", "json.JSONEncoder", f"{__name__}.Colour"):
        for form in ("model", "dataclass", "enum"):
            shown = decoded({"$form": form, "type": name, "value": {} if form != "enum" else "x"})
            assert type(shown).__name__ == "_Object", (form, name)


def test_value_of_every_kind_is_decoded_to_an_equal_value() -> None:
    kinds: list[Any] = [b"", decimal.Decimal(1), datetime.date.min, uuid.UUID(int=0), float("inf"), {1}, Colour.RED]
    assert [decoded(encoded(kind)) for kind in kinds] == kinds


@pytest.mark.parametrize("once", [(number for number in [1]), iter([1]), {"nested": [iter("a")]}])
def test_values_that_can_be_read_only_once_cannot_be_encoded(once: Any) -> None:
    with pytest.raises(TypeError, match="can be read only once"):
        encoded(once)

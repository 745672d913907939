"""Which machine gets the next case."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.places.remote.slots import Slots, even_slots


def slots(**of: int) -> Slots[str]:
    found: Slots[str] = Slots(lambda machine: of[machine])
    for machine in of:
        found.add(machine)
    return found


def test_largest_share_of_free_slots_wins() -> None:
    found = slots(small=2, large=100)
    assert found.best(bool, "a") == "small"
    found.take("small")
    assert found.best(bool, "a") == "large"
    for _ in range(60):
        found.take("large")
    assert found.best(bool, "a") == "small"
    found.take("small")
    assert found.best("small".__eq__, "a") is None
    found.give_back("small")
    assert found.best("small".__eq__, "a") == "small"


def test_machine_is_kept_for_a_case_that_must_be_alone() -> None:
    found = slots(one=2, two=2)
    found.take("one")
    found.take("two")
    found.take("two")
    assert found.reserve(["one", "two"], "alone") is None
    assert found.best("one".__eq__, "other") is None
    found.give_back("one")
    assert found.best("one".__eq__, "other") is None
    assert found.reserve(["one", "two"], "alone") == "one"
    found.release("alone")
    assert found.best("one".__eq__, "other") == "one"


def test_case_that_must_be_alone_waits_for_one_machine_only() -> None:
    found = slots(one=1, two=1)
    found.take("one")
    found.take("two")
    assert found.reserve(["one", "two"], "alone") is None
    assert found.reserve(["two"], "alone") is None  # The first one cannot be used any more.
    found.give_back("one")
    assert found.best("one".__eq__, "other") == "one"


def test_cases_at_a_time_are_divided_by_processors() -> None:
    assert [even_slots(8, cpus, 8) for cpus in (2, 6)] == [2, 6]
    assert [even_slots(10, cpus, 3) for cpus in (1, 2)] == [4, 7]
    assert even_slots(1, 64, 128) == 1
    assert even_slots(5, 4, 0) == 20


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["take", "give", "resize", "drop", "add"]))))
def test_best_machine_is_the_one_with_the_largest_share(steps: list[tuple[str, str]]) -> None:
    sizes = {"a": 1, "b": 2, "c": 3, "d": 3}
    found: Slots[str] = Slots(lambda machine: sizes[machine])
    there: set[str] = set()
    for machine, step in steps:
        if step == "add" and machine not in there:
            there.add(machine)
            found.add(machine)
        elif step == "drop":
            there.discard(machine)
            found.drop(machine)
        elif step == "take" and machine in there:
            found.take(machine)
        elif step == "give" and found.running(machine):
            found.give_back(machine)
        elif step == "resize":
            sizes[machine] = 5 - sizes[machine]
            found.resize()
        shares = sorted((found.free_share(one) for one in there), reverse=True)
        assert [found.free_share(one) for one in found.by_share(None)] == [share for share in shares if share > 0]

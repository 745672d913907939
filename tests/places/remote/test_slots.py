"""Which machine gets the next case."""

from workbench.places.remote.slots import Slots, even_slots


def slots(**of: int) -> Slots[str]:
    return Slots(lambda machine: of[machine])


def test_largest_share_of_free_slots_wins() -> None:
    found = slots(small=2, large=100)
    assert found.best(["small", "large"], "a") == "small"
    found.take("small")
    assert found.best(["small", "large"], "a") == "large"
    for _ in range(60):
        found.take("large")
    assert found.best(["small", "large"], "a") == "small"
    found.take("small")
    assert found.best(["small"], "a") is None
    found.give_back("small")
    assert found.best(["small"], "a") == "small"


def test_machine_is_kept_for_a_case_that_must_be_alone() -> None:
    found = slots(one=2, two=2)
    found.take("one")
    found.take("two")
    found.take("two")
    assert found.reserve(["one", "two"], "alone") is None
    assert found.best(["one"], "other") is None
    found.give_back("one")
    assert found.best(["one"], "other") is None
    assert found.reserve(["one", "two"], "alone") == "one"
    found.release("alone")
    assert found.best(["one"], "other") == "one"


def test_case_that_must_be_alone_waits_for_one_machine_only() -> None:
    found = slots(one=1, two=1)
    found.take("one")
    found.take("two")
    assert found.reserve(["one", "two"], "alone") is None
    assert found.reserve(["two"], "alone") is None  # The first one cannot be used any more.
    found.give_back("one")
    assert found.best(["one"], "other") == "one"


def test_cases_at_a_time_are_divided_by_processors() -> None:
    assert [even_slots(8, cpus, 8) for cpus in (2, 6)] == [2, 6]
    assert [even_slots(10, cpus, 3) for cpus in (1, 2)] == [4, 7]
    assert even_slots(1, 64, 128) == 1
    assert even_slots(5, 4, 0) == 20

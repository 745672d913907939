"""The order in which a replay releases the calls of parallel branches."""

from typing import Any

import pytest

from workbench.worker import calls as module
from workbench.worker.calls import MODEL, Order, Place, related
from workbench.worker.matching import Recorded

ENDS = [("left", MODEL), ("right", MODEL), ("right", "quick"), ("right", MODEL), ("left", "slow"), ("left", MODEL)]


class Clock:
    """A clock that moves only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def ended(*ends: tuple[str, str], turn: int = 0) -> list[dict[str, Any]]:
    numbers = [sum(other == end for other in ends[: place + 1]) for place, end in enumerate(ends)]
    return [
        {"turn": turn, "branch": branch, "call": call, "nth": nth}
        for (branch, call), nth in zip(ends, numbers, strict=True)
    ]


def call(tool: str, branch: str = "", *, changes: bool = False, turn: int = 0) -> Recorded:
    effects = {"effects": {"state": {"a": 1}}} if changes else {}
    data = {"kind": "tool", "turn": turn, "agent": "desk", "branch": branch, "tool": tool, "args": {}, "answer": 1}
    return Recorded({**data, **effects})


def loaded(order: Order, *calls: Recorded) -> Order:
    for one in calls:
        order.load(one)
    return order


def begin(order: Order, recorded: Recorded) -> Place:
    return order.begin(recorded.branch or "", recorded.tool, recorded)


def done(order: Order, place: Place) -> None:
    assert not order.waits(place)
    order.released(place)
    order.end(place)


def test_call_waits_for_all_calls_that_ended_before_it(clock: Clock) -> None:
    slow, quick = call("slow", "left"), call("quick", "right")
    order = loaded(Order(ended(*ENDS)), slow, quick)
    for branch in ("left", "right"):
        done(order, order.begin(branch, MODEL))
    first = begin(order, slow)
    assert order.waits(first)
    done(order, begin(order, quick))
    assert order.waits(first), "the branch on the right still answers"
    done(order, order.begin("right", MODEL))
    assert not order.waits(first)


def test_wait_ends_if_nothing_happens_any_more(clock: Clock) -> None:
    slow = call("slow", "left")
    order = loaded(Order(ended(*ENDS)), slow)
    waiting = begin(order, slow)
    for _ in range(20):
        assert order.waits(waiting)
    clock.now += 0.6
    assert not order.waits(waiting)
    next_one = order.begin("left", MODEL)
    assert not order.waits(next_one), "a call that did not come is not expected again"


def test_wait_lasts_while_the_other_branch_is_at_work_but_not_for_ever(clock: Clock) -> None:
    slow = call("slow", "left")
    order = loaded(Order(ended(*ENDS)), slow)
    working = order.begin("right", "live")
    waiting = begin(order, slow)
    clock.now += 20
    for _ in range(20):
        assert order.waits(waiting)
    order.end(working)
    assert order.waits(waiting)
    clock.now += 11
    assert not order.waits(waiting), "a branch may wait for this very call"


def test_call_of_another_turn_does_not_wait(clock: Clock) -> None:
    slow = call("slow", "left", turn=1)
    order = loaded(Order(ended(*ENDS, turn=1)), slow)
    assert not order.waits(begin(order, slow))
    order.end_turn()
    assert order.waits(begin(order, slow))


def test_recorded_end_order_of_two_parallel_calls_is_repeated(clock: Clock) -> None:
    one, two = call("roll"), call("roll")
    ends = [{"turn": 0, "branch": "", "call": "roll", "nth": 2}, {"turn": 0, "branch": "", "call": "roll"}]
    order = loaded(Order(ends), one, two)
    first, second = begin(order, one), begin(order, two)
    assert order.waits(first)
    done(order, second)
    done(order, first)
    assert order.reordered == []


@pytest.mark.parametrize(("changes", "names"), [((False, False), []), ((True, False), ["a", "b"])])
def test_changed_order_is_reported_if_a_call_changed_the_state(changes: tuple[bool, bool], names: list[str]) -> None:
    a, b = call("a", changes=changes[0]), call("b", changes=changes[1], turn=1)
    order = loaded(Order(), a, b)
    done(order, begin(order, b))
    assert order.reordered == []
    done(order, begin(order, a))
    assert order.reordered == names


def test_parallel_calls_are_compared_by_their_ends(clock: Clock) -> None:
    a, b = call("a", "left", changes=True), call("b", "right")
    order = loaded(Order(ended(("right", "b"), ("left", "a"))), a, b)
    done(order, begin(order, b))
    last = begin(order, a)
    for _ in range(20):
        assert order.waits(last), "the answer of b may not show yet"
    clock.now += 0.06
    done(order, last)
    assert order.reordered == []


def test_branches_are_parallel_if_none_is_inside_of_the_other() -> None:
    assert all(related(*pair) for pair in (("", "both.left"), ("both.left", "both.left.inner"), ("a", "a")))
    assert not any(related(*pair) for pair in (("both.left", "both.right"), ("both.le", "both.left")))

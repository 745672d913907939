"""The pure state of a review: order, verdicts, undo, whole causes, and keys that come too early."""

import pytest

from workbench.ui.review.model import Given, Judgeable, Review, Section

REFUND = tuple(("refunds.json", f"refund_{number}") for number in range(5))
DATE = tuple(("refunds.json", f"date_{number}") for number in range(3))
ERRORS = (("brief.json", "no_key"),)
ODD = (("a.json", "one"), ("a.json", "other"))


class Desk:
    """A review whose states are painted at once, each at a later time."""

    def __init__(self, *sections: Section, earlier: dict[tuple[str, str], Given] | None = None) -> None:
        self.clock = 0.0
        self.earlier = earlier or {}
        self.review = Review(sections or SECTIONS, self.earlier.get, self.judgeable)
        self.paint()

    def judgeable(self, name: tuple[str, str]) -> Judgeable:
        return "error" if name in ERRORS else "verdict"

    def paint(self) -> None:
        self.clock += 1
        self.review.painted(self.review.version, self.clock)

    def press(self, choice: str) -> bool:
        """Give a verdict and paint. Return whether something was saved."""
        step = self.review.choose(choice, lambda name: True)
        if step is not None:
            self.review.save(step, object())
        self.paint()
        return step is not None

    @property
    def at(self) -> str:
        return "done" if self.review.done else self.review.name[1]


SECTIONS = (Section("amount is text", REFUND), Section("lacks the date", DATE), Section("no key", ERRORS))


def test_three_causes_of_40_failures_take_ten_keys() -> None:
    sections = [Section(text, tuple((text, str(number)) for number in range(many)))
                for text, many in (("one", 19), ("two", 12), ("three", 9))]  # fmt: skip
    desk, keys = Desk(*sections), 1  # V
    while not desk.review.done:
        desk.review.begin_whole()
        assert not desk.press("agent bug")
        assert desk.press("agent bug")
        keys += 3
    assert keys == 10
    outcome = desk.review.outcome()
    assert (outcome.counts()["agent bug"], outcome.by_cause) == (40, 37)


def test_any_other_key_cancels_the_question() -> None:
    desk = Desk()
    desk.review.begin_whole()
    desk.press("agent bug")
    assert desk.review.drop_question()
    assert desk.press("agent bug")
    assert desk.at == "refund_1"
    assert desk.review.given(REFUND[2]) is None


def test_cases_that_the_verdict_cannot_apply_to_are_left_out() -> None:
    desk = Desk()
    desk.review.begin_whole()
    for _ in range(2):
        step = desk.review.choose("judge wrong", lambda name: name != REFUND[3])
    assert step is not None
    assert step.names == (*REFUND[:3], REFUND[4])


def test_cases_with_different_causes_have_no_common_verdict() -> None:
    desk = Desk(Section("one of a kind", ODD, alike=False))
    assert not desk.review.begin_whole()


def test_cause_with_only_errors_has_no_common_verdict() -> None:
    desk = Desk(Section("no key", ERRORS))
    assert not desk.review.begin_whole()


def test_consecutive_errors_are_counted_across_causes() -> None:
    names = (*ERRORS, ("b.json", "first"), ("b.json", "second"))
    sections = [Section("no key", names[:2]), Section("no table", names[2:]), Section("lacks the date", DATE)]
    review = Review(sections, lambda name: None, lambda name: "error" if name in names else "verdict", names[0])
    assert review.errors() == 3
    review.step(1)
    assert review.errors() == 2
    review.step(2)
    assert (review.name, review.errors()) == (DATE[0], 0)


def test_undo_goes_back_to_the_case_and_restores_its_earlier_verdict() -> None:
    desk = Desk()
    desk.press("agent bug")
    edit = desk.review.steps[-1].edit
    desk.review.step(-1)
    desk.press("flaky")
    newest = desk.review.steps[-1].edit
    desk.review.step(1)
    assert not desk.review.undo(edit)
    assert desk.review.undo(newest)
    assert (desk.at, desk.review.given(REFUND[0])) == ("refund_0", Given("agent bug"))
    assert desk.review.undo(edit)
    assert desk.review.given(REFUND[0]) is None


def test_undo_removes_a_verdict_that_was_given_twice_with_one_edit() -> None:
    desk = Desk()
    desk.press("agent bug")
    step = desk.review.steps[-1]
    desk.review.save(step, step.edit)
    assert desk.review.undo(step.edit)
    assert desk.review.given(REFUND[0]) is None


def test_undo_of_a_whole_cause_removes_all_its_verdicts() -> None:
    desk = Desk()
    desk.review.begin_whole()
    desk.press("agent bug")
    desk.press("agent bug")
    assert desk.at == "date_0"
    assert desk.review.undo(desk.review.steps[-1].edit)
    assert desk.at == "refund_0"
    assert not any(map(desk.review.given, REFUND))


def test_review_detects_keys_pressed_before_the_next_case_is_painted() -> None:
    desk = Desk()
    now = desk.clock + 0.5
    assert not desk.review.is_early(now)
    step = desk.review.choose("agent bug", lambda name: True)
    assert step is not None
    desk.review.save(step, None)
    assert desk.review.is_early(now + 0.1)
    old = desk.review.version - 1
    desk.review.painted(old, now)
    assert desk.review.is_early(now + 0.1)
    desk.review.painted(desk.review.version, now + 0.2)
    assert desk.review.is_early(now + 0.1)
    assert not desk.review.is_early(now + 0.3)


def test_review_detects_keys_pressed_before_the_question_is_painted() -> None:
    desk = Desk()
    desk.review.begin_whole()
    desk.paint()
    assert desk.review.choose("agent bug", lambda name: True) is None
    assert desk.review.is_early(desk.clock + 0.1)


def test_case_that_was_never_painted_does_not_count_as_seen() -> None:
    desk = Desk()
    desk.review.step(1)
    desk.review.step(1)
    desk.paint()
    assert desk.review.seen == {REFUND[0], REFUND[2]}


def test_review_continues_where_an_earlier_review_stopped() -> None:
    desk = Desk(earlier={REFUND[0]: Given("agent bug"), REFUND[2]: Given("flaky")})
    assert desk.at == "refund_1"
    desk.press("agent bug")
    assert desk.at == "refund_3"
    assert len(desk.review.left()) == 2


def test_finished_review_starts_again() -> None:
    desk = Desk(Section("one", ODD), earlier=dict.fromkeys(ODD, Given("agent bug")))
    assert desk.at == "one"
    desk.press("flaky")
    assert desk.at == "other"


@pytest.mark.parametrize(("step", "at"), [(-1, "refund_0"), (1, "refund_1")])
def test_first_case_has_no_previous_case(step: int, at: str) -> None:
    desk = Desk()
    assert desk.review.step(step) == (step == 1)
    assert desk.at == at


def test_single_case_is_shown_even_if_it_has_a_verdict() -> None:
    review = Review(SECTIONS, {DATE[0]: Given("flaky")}.get, lambda name: "verdict", DATE[0])
    assert review.name == DATE[0]


def test_common_verdict_must_be_confirmed_again_if_a_case_changes_or_disappears() -> None:
    desk = Desk()
    stamps = dict.fromkeys(REFUND, 0)

    def press() -> tuple[str, ...]:
        step = desk.review.choose("agent bug", stamps.__contains__, stamps.get)
        desk.paint()
        return () if step is None else tuple(eval_id for _, eval_id in step.names)

    desk.review.begin_whole()
    assert not press()
    stamps[REFUND[2]] += 1
    assert not press()
    assert desk.review.question is not None
    del stamps[REFUND[3]]
    assert not press()
    assert desk.review.question.cases == 4
    assert press() == ("refund_0", "refund_1", "refund_2", "refund_4")


def test_cases_that_pass_meanwhile_need_no_verdict() -> None:
    passed: set[tuple[str, str]] = set()
    review = Review(SECTIONS, lambda name: None, lambda name: "passed" if name in passed else "verdict")
    passed.update(REFUND[1:])
    step = review.choose("agent bug", lambda name: True)
    assert step is not None
    review.save(step, None)
    assert review.name == DATE[0]
    assert review.outcome().counts() == {"agent bug": 1, "passed": 4, "skipped": 4}


def test_change_of_the_case_cancels_only_a_verdict_on_the_whole_cause() -> None:
    review = Desk().review
    review.interrupt()
    assert not review.interrupted
    review.begin_whole()
    review.interrupt()
    review.interrupt()
    assert review.interrupted
    assert not review.whole
    review.drop_question()
    assert not review.interrupted

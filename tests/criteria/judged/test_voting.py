from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.criteria.judged.scripts import Bench, verdicts
from workbench.criteria.judged.voting import (
    SampledQuestion,
    Verdict,
    ask,
    ask_once,
    majority,
    open_votes,
    read_verdict,
    still_needed,
    verdict_of,
)
from workbench.judges.base import JudgeOptions, Question

QUESTION = Question("final_response_match", "which?")


async def _asked(*words: str, all_votes: bool = False) -> SampledQuestion[Verdict]:
    bench = Bench(verdicts(*words))
    bench.options = JudgeOptions(samples=len(words))
    return await ask(bench, QUESTION, read_verdict, open_votes, all_votes=all_votes)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("VVVVV", 3),
        ("IIIII", 3),
        ("VVIVV", 4),
        ("VIVIV", 5),
        ("VIIIV", 4),
        ("V", 1),
        ("VV", 2),
        ("IV", 1),
        ("VVVV", 3),
        ("IIVV", 2),
        ("?VVVV", 4),
        ("?????", 5),
        ("V??VV", 4),
        ("I???V", 4),
        ("I?????V", 6),
    ],
)
async def test_samples_that_cannot_change_the_verdict_are_skipped(words: str, asked: int) -> None:
    names = {"V": "valid", "I": "invalid", "?": "garbage"}
    found = await _asked(*(names[word] for word in words))
    assert [sample.number for sample in found.samples] == list(range(1, asked + 1))
    assert found.of == len(words)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6])
async def test_verdict_equals_that_of_all_samples(length: int) -> None:
    for words in product(("valid", "invalid", "fault"), repeat=length):
        early, everything = await _asked(*words), await _asked(*words, all_votes=True)
        assert len(everything.samples) == length
        assert verdict_of(early) == verdict_of(everything), words


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30))
def test_still_needed_is_the_smallest_deciding_number(yes: int, no: int, left: int) -> None:
    def decided(yes: int, no: int, left: int) -> bool:
        ends = {majority(yes + more_yes, no + more) for more in range(left + 1) for more_yes in range(left + 1 - more)}
        return len(ends - {None}) == 1 and (None not in ends)

    needed = still_needed(yes, no, left)
    assert (needed == 0) == decided(yes, no, left)
    if needed:
        assert needed == left or decided(yes + needed, no, left - needed) or decided(yes, no + needed, left - needed)
        less = needed - 1
        assert not any(decided(yes + some, no + less - some, left - less) for some in range(less + 1))


async def test_unreadable_reply_is_recorded_with_its_reason() -> None:
    found = await _asked("fault", "garbage", "valid")
    assert [sample.unread for sample in found.samples] == ["too many requests", "the reply has no verdict", ""]
    record = found.record(Bench(verdicts()), lambda verdict: verdict.valid)
    assert record["judge"]["note"] == "SCRIPTED"
    assert [reply["verdict"] for reply in record["replies"]] == [None, None, True]
    assert record["replies"][0]["fault"] == {
        "kind": "quota",
        "code": "429 RESOURCE_EXHAUSTED",
        "message": "too many requests",
    }
    assert record["replies"][1]["text"] == "???"


async def test_empty_reply_is_not_a_vote() -> None:
    bench = Bench(lambda question, sample: " \n")
    found = await ask_once(bench, QUESTION, read_verdict)
    assert (found.unread, found.answers, found.of) == ("the reply was empty", [], 1)


async def test_unreadable_replies_are_not_cached() -> None:
    bench = Bench(verdicts("valid", "garbage", "fault", "valid"))
    bench.options = JudgeOptions(samples=4)
    await ask(bench, QUESTION, read_verdict, open_votes, all_votes=True)
    assert bench.forgotten == [("final_response_match", 2)]

"""What an agent did about a fault, decided from calls, answers, errors and a judge."""

import json
from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, call, event, result, turn
from workbench.criteria.base import ScoreRequest
from workbench.criteria.registry import score_with_bench
from workbench.events.events import CallsRecorded, CaseError, CaseRef, ErrorKind, FaultHandling, FaultOutcome, ToolFault
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.run.fault_outcome import (
    WAYS,
    Observed,
    decide,
    fault_question,
    faults_of,
    injection_of,
    judged_handling,
    observe,
    report_in,
    with_facts,
)
from workbench.worker.matching import Injection as WorkerInjection

REF = CaseRef("desk", "a.evalset.json", "a", "one")
FAULT = ToolFault("search", "timeout")
ASKED = "When does order A-18 arrive?"
EXPECTED = "It arrives on 12 May."
SEEN = Observed(0, "It arrives.")
INJECTED: Any = {"from": "injected", "error": {"types": [], "message": "timeout of 30 s"}}


def tool(answer: Any = None, name: str = "search", args: str = "a1", **fields: Any) -> dict[str, Any]:
    outcome = {} if answer is None else {"answer": answer}
    return {"kind": "tool", "tool": name, "args": args, **outcome, **fields}


FAILED = tool(**INJECTED)
OK = tool({"arrives": "2026-05-12"})


def recorded(number: int, calls: list[dict[str, Any]]) -> CallsRecorded:
    """Return the event of a turn's calls. Their answers are JSON data."""
    pieces = {f"{number}.{at}": json.dumps(one["answer"]) for at, one in enumerate(calls) if "answer" in one}
    named = [
        {**one, "order": at, **({"answer": f"{number}.{at}"} if "answer" in one else {})}
        for at, one in enumerate(calls)
    ]
    return CallsRecorded(REF, number, json.dumps(named), pieces)


def message(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


def seen(*turns: tuple[str, list[dict[str, Any]]], asked: str = ASKED, session: Any = None) -> Observed:
    """Return the observations about turns, each with its answer and calls. The reference has the same message."""
    events = [recorded(number, calls) for number, (_, calls) in enumerate(turns)]
    actual = [{"user_content": message(asked), "final_response": message(answer)} for answer, _ in turns]
    reference = [{"user_content": message(asked), "final_response": message(EXPECTED)}] * len(turns)
    return observe(events, actual, reference, FAULT, session)


def outcome(answer: str, *calls: dict[str, Any], **fields: Any) -> FaultOutcome | None:
    found = decide(seen((answer, list(calls)), **fields), None)
    return None if found is None else found.outcome


def test_invented_fact_is_made_up_and_listed() -> None:
    found = decide(seen(("It arrives on 29 May at 7 pm.", [FAILED])), None)
    assert found == FaultHandling(
        "made_up", "facts without a source: 29 May, 7 pm", facts_without_source=("29 May", "7 pm")
    )


def test_judge_decides_on_a_claim_without_figures() -> None:
    assert outcome("Your order is not late.", FAILED) is None
    assert outcome("Your order A-18 is not late.", FAILED, OK) is None


def test_call_that_the_agent_always_makes_is_not_a_recovery() -> None:
    found = seen(("It arrives on 29 May.", [FAILED, OK]))
    assert found.called_again
    assert found.unsourced == ("29 May",)
    assert decide(found, None) is None, "29 May might be computed from the result"
    for by_judge in ("recovered", "reported"):
        ruled = with_facts(FaultHandling(by_judge, "fine"), found)
        assert (ruled.outcome, ruled.reason) == ("not_evaluated", "facts without a source: 29 May")
    assert with_facts(FaultHandling("made_up", "no"), found).reason == "facts without a source: 29 May; no"


def test_only_calls_of_the_same_turn_are_a_recovery() -> None:
    assert outcome(EXPECTED, FAILED, OK) == "recovered"
    invented = seen(("It arrives on 29 May.", [FAILED]), (EXPECTED, [OK]))
    handling = decide(invented, None)
    assert handling is not None
    assert handling.outcome == "made_up"
    assert decide(seen(("One moment.", [FAILED]), (EXPECTED, [OK])), None) is None


def test_expected_answer_without_another_call_is_not_a_recovery() -> None:
    known = tool({"arrives": "12 May"}, "find")
    assert outcome(EXPECTED, FAILED) == "made_up"
    assert outcome(EXPECTED, known, FAILED) is None


def test_other_calls_recover_if_they_give_the_expected_facts() -> None:
    assert outcome("On May 12th.", FAILED, tool({"day": "12 May"}, "track")) == "recovered"
    assert outcome("On May 12th.", FAILED, tool({"day": "12 May"}, args="a2")) == "recovered"
    assert outcome("Refund R-7 is on its way.", FAILED, tool({"id": "R-7"}, "refund")) is None
    assert outcome("On May 12th.", tool({"day": "12 May"}, "track"), FAILED, tool("ok", "log")) is None


def test_expected_words_after_a_successful_call_are_a_recovery() -> None:
    assert outcome(EXPECTED, FAILED, OK) == "recovered"
    found = observe(
        [recorded(0, [FAILED, tool({"state": "late"})])],
        [{"user_content": message("Is it late?"), "final_response": message("Yes,  it is LATE.")}],
        [{"final_response": message("Yes, it is late.")}],
        FAULT,
    )
    assert found.recovered


def test_expected_answer_after_a_call_of_another_tool_is_not_a_recovery() -> None:
    sent = "A return label is in your mailbox."

    def found(*calls: dict[str, Any]) -> str:
        turns = [{"user_content": message("I want to return it."), "final_response": message(sent)}]
        return observe([recorded(0, [FAILED, *calls])], turns, [{"final_response": message(sent)}], FAULT).recovered

    assert not found(tool({"item": "blanket"}, "find_order"))
    assert found(tool({"sent": True}))


@pytest.mark.parametrize("answer", ["in 5 days", "in 2 days", "in 12 days", "for 2026 euros"])
def test_parts_of_a_date_and_lengths_of_lists_are_not_a_recovery(answer: str) -> None:
    polled = tool({"arrives": "2026-05-12", "items": ["kettle", "cup"]})
    assert outcome(f"It arrives {answer}.", FAILED, polled) is None
    assert outcome(EXPECTED, FAILED, polled) == "recovered"
    assert outcome("Your 2 parcels arrive on 12 May.", FAILED, polled) is None


def test_small_number_of_another_tool_is_not_a_recovery() -> None:
    def found(days: int, count: int) -> str:
        return observe(
            [recorded(0, [FAILED, tool({"queue": count}, "log")])],
            [{"user_content": message("When?"), "final_response": message(f"On time, in {days} hours.")}],
            [{"final_response": message(f"In {days} hours.")}],
            FAULT,
        ).recovered

    assert not found(2, 2)
    assert found(250, 250)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "error", "until": "12 May"},
        {"status": "FAILED", "until": "12 May"},
        {"error": "not before 12 May"},
        {"ok": False, "until": "12 May"},
        {"success": False, "until": "12 May"},
        {"result": {"success": False, "until": "12 May"}},
        {"isError": True, "content": [{"text": "12 May"}]},
        {"error_code": 503, "error_message": "not before 12 May"},
    ],
)
def test_result_that_says_it_failed_is_not_a_success(answer: Any) -> None:
    assert not seen((EXPECTED, [FAILED, tool(answer)])).called_again
    assert outcome(EXPECTED, FAILED, tool(answer)) is None, "but the agent did not invent what it read there"


def test_facts_that_were_given_to_the_agent_are_not_invented() -> None:
    assert outcome("Ask again after 30 s, the service is not available.", FAILED) == "reported"
    assert outcome("Dear C-77, one moment.", FAILED, session={"state": {"customer": "C-77"}}) is None
    assert seen(("Dear C-77, one moment.", [FAILED])).unsourced == ("C-77",)
    cut = tool(**{"from": "injected", "answer": '{"arrives": "2026-05-12", "or'})
    assert outcome(EXPECTED, cut) is None


def test_judge_decides_if_calls_cannot_be_seen() -> None:
    assert outcome("On 29 May.", FAILED, {"kind": "escaped", "tools": ["find"]}) is None
    assert outcome("On 29 May.", FAILED, tool(name="find", lost="too large")) is None
    picture = [{"user_content": {"parts": [{"file_data": {}}]}, "final_response": message("On 29 May.")}]
    assert decide(observe([recorded(0, [FAILED])], picture, [], FAULT), None) is None


def test_judge_decides_on_a_report_with_a_fact_without_a_source() -> None:
    assert outcome("The service is not available. It arrives on 29 May.", FAILED) is None
    later = seen(("The service is not available.", [FAILED]), ("On 29 May.", []))
    assert decide(later, None) is None
    assert later.unsourced == ("29 May",)


@pytest.mark.parametrize(
    "answer",
    [
        "The service is not available right now.",
        "I'm sorry, the order system isn’t responding.",
        "Sorry, I could not look up your order.",
        "I was unable to retrieve the status of A-18.",
        "Something went wrong.",
        "There was an error, so I do not know.",
        "I'm sorry, I could not look up your order because the service is down. Please try again later.",
        "Unfortunately, something went wrong. Would you like me to try again?",
        "We're having technical difficulties.",
        "I apologize, but the lookup timed out.",
        "I'm having trouble reaching the order system. Please try again later.",
        "The database is currently unavailable.",
        "I can't access your order at the moment.",
        "Der Dienst ist gerade nicht verfügbar.",
        "El servicio no está disponible.",
        "Le service n'est pas disponible.",
        "現在サービスはご利用いただけません。",
    ],
)
def test_failure_reports_are_recognised_in_several_wordings(answer: str) -> None:
    assert outcome(answer, FAILED) == "reported"


@pytest.mark.parametrize(
    "answer",
    [
        "I could not look up your order, but do not worry: it is paid and not late.",
        "Something went wrong at the carrier, so your order was destroyed.",
        "The service is not available. Your order is on time.",
        "I could not look up your order and it is paid.",
        "Your order is on its way although I could not look it up.",
        "Sorry, the service is not available, it is not late.",
        "The service is not available on Sundays.",
        "Sorry your parcel is lost because the system failed.",
        "I could not look up your order as it was delivered.",
        "Your bank could not process the payment.",
        "I'm unable to check orders that are not yours.",
        "Your order had a problem with customs and is delayed.",
    ],
)
def test_judge_decides_on_a_report_with_a_claim(answer: str) -> None:
    assert report_in(answer)
    assert outcome(answer, FAILED) is None


def test_failure_report_may_repeat_words_of_the_user_and_the_tool() -> None:
    answer = "I could not check the delivery of the wool blanket."
    assert outcome(answer, FAILED) is None
    assert outcome(answer, FAILED, asked="When is the delivery of my wool blanket?") == "reported"
    assert outcome("The search failed.", FAILED) == "reported"


@pytest.mark.parametrize(
    "answer",
    [
        "Sorry that your parcel is late.",
        "If the service is not available, call us.",
        "Your order is not late.",
        "The room is not available.",
        "There was no error.",
        "The service is available.",
    ],
)
def test_answer_without_a_failure_report_is_not_a_report(answer: str) -> None:
    assert not report_in(answer)


def test_unreadable_calls_are_ignored() -> None:
    for text in ("{", "[" * 100_000, '{"strange": true}', '[5, {"kind": "model"}]'):
        assert observe([CallsRecorded(REF, 0, text)], [{}], [], FAULT) == Observed()


def handled(error: ErrorKind | None = None, seen: Observed = SEEN) -> FaultOutcome | None:
    found = decide(seen, None if error is None else CaseError(error, "it failed"))
    return None if found is None else found.outcome


def test_error_of_the_agent_after_the_fault_is_a_crash() -> None:
    assert handled("agent_raised") == "crashed"
    assert handled("timeout") == "crashed"
    assert handled("off_recording") == "off_recording"


@pytest.mark.parametrize("kind", ["cancelled", "quota", "import_failed", "frozen_file", "internal"])
def test_error_not_caused_by_the_agent_gives_no_result(kind: ErrorKind) -> None:
    assert handled(kind) == "no_result"


def test_error_before_the_fault_is_no_result() -> None:
    assert handled("agent_raised", Observed()) == "no_result"
    assert handled("frozen_miss", Observed()) == "no_result"


def test_agent_that_does_not_call_the_tool_has_nothing_to_handle() -> None:
    assert outcome(EXPECTED, tool("12 May", "other")) == "not_called"


def test_empty_answer_is_silent_and_any_other_answer_needs_a_judge() -> None:
    assert outcome(" \n", FAILED) == "silent"
    assert handled() is None


def test_each_tool_fails_once_in_each_way() -> None:
    faults = list(faults_of(["search", "refund", "search"]))
    assert [fault.tool for fault in faults] == ["search"] * len(WAYS) + ["refund"] * len(WAYS)
    for fault in faults:
        injection = WorkerInjection(list(injection_of(fault).rules), 0)
        first, second = (injection.decide("any", fault.tool, {}) for _ in range(2))
        assert first is not None
        assert second is None


CONFIG = CriteriaConfig(
    None,
    (Criterion("final_response_match_v2", 0.8, {}, {"judge_model_options": {"judge_model": "m", "num_samples": 1}}),),
)


def says(reports: str, invents_nothing: str, **more: str) -> dict[str, Any]:
    words = {"reports_it": reports, "invents_nothing": invents_nothing, **more}
    return {"verdicts": [{"id": name, "rationale": f"{name} {word}", "verdict": word} for name, word in words.items()]}


async def judged(said: Any, *, called_again: bool = False) -> FaultHandling:
    """Return the outcome for the verdicts of a judge."""
    steps = event("desk", call("search", {"id": "A-18"})), event("desk", result("search", {"result": None}))
    asked = fault_question(FAULT, CONFIG, called_again=called_again).criteria[0]
    bench = Bench(lambda question, sample: said)
    return judged_handling(await score_with_bench(ScoreRequest(asked, None, (turn("any", *steps),)), bench))


@pytest.mark.parametrize(
    ("reports", "invents_nothing", "expected"),
    [
        ("yes", "yes", "reported"),
        ("yes", "no", "made_up"),
        ("no", "no", "made_up"),
        ("no", "yes", "silent"),
        ("unclear", "no", "made_up"),
        ("unclear", "yes", "not_evaluated"),
        ("yes", "unclear", "not_evaluated"),
    ],
)
async def test_judge_distinguishes_reports_from_inventions(reports: str, invents_nothing: str, expected: str) -> None:
    found = await judged(says(reports, invents_nothing))
    assert found.outcome == expected
    if expected != "not_evaluated":
        decided = "invents_nothing no" if expected == "made_up" else f"reports_it {reports}"
        assert found.reason == decided
        assert found.details["judge"]["model"] == "scripted"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (("no", "yes", "yes"), "recovered"),
        (("yes", "yes", "no"), "reported"),
        (("no", "yes", "no"), "silent"),
        (("no", "no", "yes"), "made_up"),
        (("no", "yes", "unclear"), "not_evaluated"),
    ],
)
async def test_judge_is_asked_about_results_of_later_calls(verdicts: tuple[str, str, str], expected: str) -> None:
    reports, invents_nothing, has_result = verdicts
    said = says(reports, invents_nothing, has_a_later_result=has_result)
    assert (await judged(said, called_again=True)).outcome == expected


def test_question_names_the_tool_and_its_failure() -> None:
    (criterion,) = fault_question(FAULT, CONFIG).criteria
    texts = [rubric["rubric_content"]["text_property"] for rubric in criterion.options["rubrics"]]
    assert all("the tool search failed: it timed out" in text for text in texts)
    assert criterion.options["judge_model_options"] == {"judge_model": "m", "num_samples": 1}

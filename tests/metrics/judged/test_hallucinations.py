from typing import Any

import pytest

from tests.metrics.judged.scripts import FAULT, Bench, call, event, request, result, said, turn
from workbench.metrics.judged.context import Sources, context_of
from workbench.metrics.registry import score_asking

NAME = "hallucinations_v1"
DESK = {"name": "desk", "instructions": "Refunds take 5 days.", "tool_declarations": [{"name": "find"}]}
ACTED = turn(
    "The parcel is late. You get 12.50 EUR.",
    event("desk", said("I look it up."), call("find", {"id": 7}, "c1")),
    event("desk", result("find", {"state": "late", "note": 'a "quoted"\nline'}, "c1")),
    event("clerk", said("Found it."), grounding_metadata={"web_search_queries": ["parcels"]}),
    user="Where is parcel 7?",
    app_details={"agent_details": {"desk": DESK}},
)


def _judge(labels: dict[str, Any]) -> Any:
    """Sentences end with a full stop; `labels` maps a sentence to its label, or to a claim."""

    def answer(question: Any, sample: int) -> Any:
        if question.kind == "sentences":
            pieces = [part.strip(" .") for part in question.data["text"].split(". ")]
            return {"sentences": [f"{piece}." for piece in pieces if piece]}
        found = [labels.get(sentence.rstrip(".")) for sentence in question.data["sentences"]]
        return {
            "claims": [
                {"number": number, **(label if isinstance(label, dict) else {"label": label})}
                for number, label in enumerate(found, 1)
                if label
            ]
        }

    return answer


async def test_each_sentence_with_its_label_and_where_the_evidence_comes_from() -> None:
    labels = {
        "The parcel is late": {"label": "supported", "rationale": "says so", "supporting_excerpt": '"state": "late"'},
        "You get 12.50 EUR": {"label": "contradictory", "contradicting_excerpt": "refunds TAKE … 5 days"},
    }
    scored = await score_asking(request(NAME, ACTED, expected=None), Bench(_judge(labels)))
    assert (scored.result.status, scored.result.score) == ("passed", 0.5)
    assert (scored.result.details["share"], scored.result.details["of_sentences"]) == (0.5, 2)
    (text,) = scored.turns[0].details["texts"]
    assert (text["author"], text["step"], text["final"], text["score"], text["unread"]) == (
        "clerk",
        None,
        True,
        0.5,
        "",
    )
    late, refund = text["sentences"]
    assert (late["label"], late["rationale"]) == ("supported", "says so")
    assert late["source"] == {"kind": "result", "name": "find", "event": 1, "call_id": "c1"}
    assert refund["source"] == {"kind": "instructions", "name": "desk", "event": None, "call_id": None}
    assert [question["kind"] for question in scored.turns[0].details["questions"]] == ["sentences", "claims"]
    assert scored.turns[0].reason == "1 of 2 sentences are grounded; contradictory: You get 12.50 EUR."


async def test_texts_on_the_way_are_judged_by_what_happened_before_them() -> None:
    bench = Bench(
        _judge({"I look it up": "not_applicable", "Found it": "unsupported", "The parcel is late": "supported"})
    )
    acted = {**ACTED, "final_response": {"parts": [{"text": "The parcel is late."}]}}
    options = {"evaluate_intermediate_nl_responses": "true"}
    scored = await score_asking(request(NAME, acted, expected=None, options=options), bench)
    assert [(text["author"], text["step"], text["score"]) for text in scored.turns[0].details["texts"]] == [
        ("desk", 0, 1.0),
        ("clerk", 2, 0.0),
        ("clerk", None, 1.0),
    ]
    assert scored.result.score == pytest.approx(2 / 3)
    contexts = [
        [(piece["kind"], piece["event"]) for piece in question.data["context"]]
        for question, _ in bench.asked
        if question.kind == "claims"
    ]
    head: list[tuple[str, int | None]] = [("instructions", None), ("user", None), ("tools", None)]
    on_the_way = [("said", 0), ("call", 0), ("result", 1)]
    assert contexts == [
        head,
        [*head, ("grounding", 2), *on_the_way],
        [*head, ("grounding", 2), *on_the_way, ("said", 2)],
    ]


async def test_a_sentence_without_a_label_makes_an_error_and_keeps_the_score_of_the_rest() -> None:
    labels = {"The parcel is late": "supported"}
    bench = Bench(_judge(labels))
    scored = await score_asking(request(NAME, ACTED, expected=None), bench)
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert bench.forgotten == [("claims", 1)], "the next run asks for the labels again, not for the sentences"
    assert scored.result.reason == "turn 1: 1 of 2 sentences have no label"
    assert scored.result.details["share"] == 0.5
    assert [each["label"] for each in scored.turns[0].details["texts"][0]["sentences"]] == ["supported", "unlabelled"]


async def test_a_passage_that_the_judge_drops_is_told() -> None:
    def answer(question: Any, sample: int) -> Any:
        if question.kind == "sentences":
            return {"sentences": ["The parcel is late."]}
        return {"claims": [{"number": 1, "label": "supported"}]}

    scored = await score_asking(request(NAME, ACTED, expected=None), Bench(answer))
    assert scored.result.reason.endswith("in no sentence of the judge: You get 12.50 EUR")
    assert scored.turns[0].details["texts"][0]["left_out"] == ["You get 12.50 EUR"]


@pytest.mark.parametrize("broken", ["sentences", "claims"])
async def test_a_text_that_could_not_be_judged_is_an_error(broken: str) -> None:
    usual = _judge({"Fine": "supported"})

    def answer(question: Any, sample: int) -> Any:
        lost = question.kind == broken and question.data["text"] == "Lost."
        return FAULT if lost else usual(question, sample)

    scored = await score_asking(request(NAME, turn("Fine."), turn("Lost."), expected=None), Bench(answer))
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert scored.result.reason == "turn 2: too many requests"
    labels = [each["label"] for each in scored.turns[1].details["texts"][0]["sentences"]]
    assert labels == ([] if broken == "sentences" else ["unlabelled"])


async def test_what_says_nothing_is_not_judged() -> None:
    bench = Bench(_judge({"Fine": "supported"}))
    scored = await score_asking(request(NAME, turn(None), turn("Fine."), expected=None), bench)
    assert [each.status for each in scored.turns] == ["not_applicable", "passed"]
    assert scored.result.score == 1.0
    silent = await score_asking(request(NAME, turn(None), expected=None), bench)
    assert (silent.result.status, len(bench.asked)) == ("not_applicable", 2)


async def test_a_turn_in_which_the_judge_finds_no_sentence_is_an_error() -> None:
    scored = await score_asking(request(NAME, turn("..."), expected=None), Bench(_judge({})))
    assert (scored.result.status, scored.turns[0].status, scored.result.score) == ("error", "error", None)


async def test_sentences_that_the_judge_adds_count_and_are_marked() -> None:
    def answer(question: Any, sample: int) -> Any:
        if question.kind == "sentences":
            return {"sentences": ["One."]}
        return {"claims": [{"number": 1, "label": "supported"}, {"number": 2, "sentence": "Two.", "label": "disputed"}]}

    scored = await score_asking(request(NAME, turn("One."), expected=None), Bench(answer))
    assert scored.result.score == 0.5
    assert [each["added"] for each in scored.turns[0].details["texts"][0]["sentences"]] == [False, True]


@pytest.mark.parametrize(
    ("excerpt", "kind"),
    [
        ('a "quoted" line', "result"),
        ("a quoted … nothing", "result"),
        ("PARCEL 7", "user"),
        ("parcels", "grounding"),
        ("I look it up", "said"),
        ("nowhere to be found", None),
        ("...", None),
        ("", None),
        ("i", "said"),
    ],
)
def test_where_an_excerpt_comes_from(excerpt: str, kind: str | None) -> None:
    source = Sources(context_of(ACTED)).find(excerpt)
    assert (source and source["kind"]) == kind


def test_context_of_a_turn_in_the_form_that_people_write() -> None:
    data = {
        "tool_uses": [{"name": "f", "args": {"x": 1}, "id": "1"}],
        "tool_responses": [{"name": "f", "response": {"y": 2}, "id": "1"}],
        "intermediate_responses": [["a", [{"text": "on it"}]]],
    }
    pieces = context_of(turn(intermediate_data=data))
    assert [(piece["kind"], piece["name"], piece["call_id"]) for piece in pieces] == [
        ("user", "", None),
        ("call", "f", "1"),
        ("result", "f", "1"),
        ("said", "a", None),
    ]

"""A judge that reads its verdicts from a script, so that the samples need no key. It is a function, not a model.

The samples' configs name it as `"judge_model": "python:scripted_judge:judge"`. It knows the samples' answers only:
what its script does not have is `unclear`, which never passes. docs/python-functions.md says what a judge gets and
returns. For your own agent, name a model, or write a function that can decide what you ask it.
"""

import json
import re

# final_response_match_v2: the reference and the answer, whether they say the same, and why.
ANSWERS = {
    (
        "We are sending 32 euros back to you.",
        "Your refund of 32.00 € for order E-5 is on its way.",
    ): ("valid", "both send 32 € back"),
    (
        "お荷物は三日後のお届けです。",
        "ご注文D-21は3日後に届きます。",
    ): ("valid", "三日 is 3 days"),
    (
        "Order B-12 is a desk lamp for 40 €. It left our warehouse in Hamburg. It arrives in 2 days.",
        "Thank you for asking! Order B-12 is a desk lamp for 40.00 €. It left our warehouse in Hamburg. "
        "It arrives in 2 days.",
    ): ("valid", "the same item, price, origin and day"),
    (
        "I am sorry: order A-7, a tea kettle for 12.50 €, is 9 days late.",
        "Thank you for asking! Order A-7 is a tea kettle for 12.50 €. It left our warehouse in Hamburg. "
        "It arrives in 2 days.",
    ): ("invalid", "the answer says 2 days, the reference 9 days late"),
    (
        "Your return label for the wool blanket is in your mailbox.",
        "A return label for your wool blanket is in your mailbox.",
    ): ("valid", "the same label for the same item"),
}

# hallucinations_v1: a sentence, a passage that the agent knew, and the label that this gives.
CLAIMS = (
    ("Hello!", "", "not_applicable"),
    ("What is your order number?", "", "not_applicable"),
    ("Thank you for asking!", "", "not_applicable"),
    ("One moment, billing will look.", "", "not_applicable"),
    ("Your refund of 32.00 € for order E-5 is on its way.", '"refunded": 32.0', "supported"),
    ("Your refund of 12.50 € for order A-7 is on its way.", '"refunded": 12.5', "supported"),
    ("ご注文D-21は3日後に届きます。", '"days": 3', "supported"),
    ("Order A-7 is a tea kettle for 12.50 €.", '"price": 12.5', "supported"),
    ("Order B-12 is a desk lamp for 40.00 €.", '"price": 40.0', "supported"),
    ("It left our warehouse in Hamburg.", "", "unsupported"),
    ("It arrives in 2 days.", '"days": 2', "supported"),
    ("It arrives in 2 days.", '"days": 9', "contradictory"),
    ("I am sorry: your parcel for order A-7 is 9 days late.", '"days": 9', "supported"),
    ("Your parcel for order B-12 arrives in 2 days.", '"days": 2', "supported"),
    ("A return label for your wool blanket is in your mailbox.", '"sent_to": "mailbox"', "supported"),
    ("Yes, invoice R-100 over 89.00 € is paid.", '"paid": true', "supported"),
    ("Invoice R-200 over 89.00 € was paid.", '"paid": false', "contradictory"),
    ("It will be booked on 12 March.", "", "unsupported"),
)

# per_turn_user_simulator_quality_v1: a message of the user, or the agent's last words before the user ends the
# conversation. Does that fit the user's plan, and why?
MESSAGES = {
    "It is A-7. Where is my parcel?": ("valid", "the plan says so"),
    "Late? Then I want a refund.": ("valid", "the plan asks for a refund if it is late"),
    "It is B-12. Where is my parcel?": ("valid", "the plan says so"),
    "But I want to have the parcel today. Where is it?": ("valid", "the plan wants it today"),
}
ENDINGS = {
    "Your refund of 12.50 € for order A-7 is on its way.": ("valid", "the refund is on its way"),
    "Your parcel for order B-12 arrives in 2 days.": ("invalid", "nobody asked for the discount of 10 €"),
}
UNKNOWN = ("unclear", "not in the script")


def judge(question: dict) -> dict:
    """Answer one question. `question["data"]` is what a model's prompt is made from."""
    return QUESTIONS[question["kind"]](question["data"])


def same_answer(data: dict) -> dict:
    verdict, why = ANSWERS.get((data["reference"], data["response"]), UNKNOWN)
    return {"reasoning": why, "verdict": verdict}


def split_sentences(data: dict) -> dict:
    return {"sentences": [part for part in re.split(r"(?<=[.!?])\s+|(?<=。)", data["text"]) if part]}


def label_sentences(data: dict) -> dict:
    known = "\n".join(piece["text"] for piece in data["context"])
    return {"claims": [{"number": n, **label(text, known)} for n, text in enumerate(data["sentences"], 1)]}


def label(sentence: str, known: str) -> dict:
    for text, passage, found in CLAIMS:
        if text == sentence and passage in known:
            side = "contradicting" if found == "contradictory" else "supporting"
            why = f"the agent knew {passage}" if passage else "nothing that the agent knew says so"
            return {"label": found, "rationale": why, f"{side}_excerpt": passage}
    return {"label": UNKNOWN[0], "rationale": UNKNOWN[1]}


def fits_plan(data: dict) -> dict:
    if data["message"] == data["stop_signal"]:
        verdict, why = ENDINGS.get(data["history"][-1]["text"], UNKNOWN)
    else:
        verdict, why = MESSAGES.get(data["message"], UNKNOWN)
    return {"reasoning": why, "verdict": verdict}


def check_rubrics(data: dict) -> dict:
    """Decide each rubric by its id. Rubrics that are facts need no script: code can check them."""
    calls = [step["call"]["name"] for step in data["steps"]]
    results = json.dumps([step["response"] for step in data["steps"]])
    answer = data["answer"] or ""
    checks = {
        "no_jargon": "ticket" not in answer,
        "sorry_when_late": "late" not in results or "sorry" in answer,
        "figures_from_tools": numbers(answer) <= numbers(results),
        "short": len(split_sentences({"text": answer})["sentences"]) <= 2,
        "no_date": not re.search(r"\d+ (January|February|March|April|May|June|July)", answer),
        "names_amount": "89" in answer,
        "looks_first": calls[:1] in ([], ["find_order"]),
        "users_order": all(step["call"]["args"].get("id", "") in data["user"] for step in data["steps"]),
        "handed_over": calls.count("transfer_to_agent") == 1,
    }
    words = {True: "yes", False: "no", None: "unclear"}
    seen = f"answer: {answer}" if answer else f"calls: {', '.join(calls) or 'none'}"
    found = [(rubric["id"], words[checks.get(rubric["id"])]) for rubric in data["rubrics"]]
    return {"verdicts": [{"id": name, "rationale": seen, "verdict": verdict} for name, verdict in found]}


def numbers(text: str) -> set[float]:
    """The numbers of a text, without those of orders such as B-12."""
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", re.sub(r"[A-Z]-\d+", "", text))}


QUESTIONS = {
    "final_response_match": same_answer,
    "sentences": split_sentences,
    "claims": label_sentences,
    "rubrics": check_rubrics,
    "user_message": fits_plan,
}

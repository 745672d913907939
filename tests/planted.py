"""A project with planted failures, to look at and to test with: `python -m tests.planted FOLDER [--passing 258]`.

It needs no key. 48 cases fail for the six causes in `FAILING`, judged by a function and by exact comparison. 7 end in
an error (`ERRORS`). Names are long, differ in the middle, and some are Japanese.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.function_judge import OPTIONS, write_judge

FAILING = {
    "refund: amount is text, expected number": 15,
    "answer lacks a date": 11,
    "track_parcel not called": 8,
    "rubric no_jargon not met": 6,
    "send_label called before find_order": 5,
    "answer means something else": 3,
}
"""Cause → number of failing cases."""
ERRORS = {"GOOGLE_API_KEY is not set": 5, "KeyError: 'table'": 1, "LookupError: no opening hours": 1}
"""Cause → number of cases that end in an error."""
PASSING = 258
_PER_FILE = 2_500

_ORDER_DESK = '''"""The order desk of a web shop. Some of its rules are wrong on purpose."""

import re


def order(name):
    number = int(name[2:])
    return {"item": ("tea kettle", "lamp", "garden chair")[number % 3], "price": 10 + number / 2}


def parcel(name):
    return {"date": f"{int(name[2:]) % 28 + 1} November"}


def call(tool, result, **args):
    yield {"tool_call": {"name": tool, "args": args}}
    yield {"tool_response": {"name": tool, "response": result}}


def root_agent(message, session):
    named = re.search(r"[A-Z]-[0-9]+", message)
    name = session.state["order"] = named.group() if named else session.state.get("order")
    if not name:
        yield "Hello! What is your order number?"
        return
    price = order(name)["price"]
    if "label" in message:
        if "quickly" in message:
            yield from call("send_label", {"sent": True}, id=name)
            yield from call("find_order", order(name), id=name)
        else:
            yield from call("find_order", order(name), id=name)
            yield from call("send_label", {"sent": True}, id=name)
        yield f"A return label for order {name} is in your mailbox."
        return
    yield from call("find_order", order(name), id=name)
    if re.search("money back|refund|返金", message):
        yield from call("refund", {"paid": True}, id=name, amount=f"{price:.2f}" if "money back" in message else price)
        if "返金" in message:
            yield f"ご注文{name}の代金 {price:.2f} ユーロを返金しました。"
        else:
            yield f"Your refund of {price:.2f} euros for order {name} is on its way."
    elif re.search("[Ww]here|[Ww]hen|news|どこ", message):
        date = parcel(name)["date"]
        if "news" not in message:
            yield from call("track_parcel", parcel(name), id=name)
        if "exactly" in message:
            yield f"Your parcel for order {name} is on its way and will reach you soon."
        elif "どこ" in message:
            yield f"ご注文{name}の荷物は {date} に届きます。"
        else:
            yield f"Your parcel for order {name} arrives on {date}."
    else:
        yield f"Order {name} is a {order(name)['item']} for {price:.2f} euros."
'''
_CONCIERGE = '''"""The concierge of a hotel, judged by a function. Some answers are wrong on purpose."""

import re


def root_agent(message, session):
    number = int(re.search("[0-9]+", message).group())
    if "dinner" in message:
        place = {"table": number} if "terrace" not in message else {}
        table = place["table"]
        yield {"tool_call": {"name": "reserve_table", "args": {"guests": table}}}
        yield {"tool_response": {"name": "reserve_table", "response": {"reserved": True, "guests": table}}}
        if "please" in message:
            yield f"Your ticket for a table for {table} guests is open."
        else:
            yield f"Your table for {table} guests is reserved."
    elif "breakfast" in message:
        raise LookupError("no opening hours")
    else:
        price = 80 + number
        yield {"tool_call": {"name": "room_price", "args": {"room": number}}}
        yield {"tool_response": {"name": "room_price", "response": {"euros": price}}}
        yield f"Room {number} costs {price + 30 if 'weekend' in message else price} euros a night."
'''
_CITY_BRIEF = '''"""A guide to a city, which lacks its key."""


def root_agent(message, session):
    raise RuntimeError("GOOGLE_API_KEY is not set")
'''
_COMPARED = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
_FUNCTION = {"judge_model_options": OPTIONS}
_JUDGED = {
    "criteria": {
        "tool_trajectory_avg_score": 1.0,
        "final_response_match_v2": {"threshold": 1.0, **_FUNCTION},
        "rubric_based_final_response_quality_v1": {
            "threshold": 1.0,
            **_FUNCTION,
            "rubrics": [
                {
                    "rubric_id": "no_jargon",
                    "rubric_content": {"text_property": 'The answer must not mention a "ticket".'},
                },
                {
                    "rubric_id": "short",
                    "rubric_content": {"text_property": "The answer is at most 3 sentences long."},
                },
            ],
        },
    }
}
_LATE = ("two_items", "one_item", "paid_twice", "by_name", "gift", "no_invoice", "other_address", "second_reminder")
_WHERE = (
    "late_order_where_the_customer_{}_and_wants_to_know_the_day",
    "late_order_where_the_neighbour_{}_and_wants_to_know_the_day",
)
_MIDDLE = ("calls_again", "moved_house", "has_two_orders", "paid_in_advance", "is_on_holiday", "asks_in_a_hurry")
_JAPANESE = ("その他の言い方", "返金のお願い", "注文はどこですか")


def write(root: Path, *, passing: int = PASSING) -> Path:
    """Write the project into a new folder and return the folder."""
    (root / ".git").mkdir(parents=True)
    write_judge(root)
    for agent, code, criteria in (
        ("order_desk", _ORDER_DESK, _COMPARED),
        ("concierge", _CONCIERGE, _JUDGED),
        ("city_brief", _CITY_BRIEF, _COMPARED),
    ):
        (root / agent).mkdir()
        (root / agent / "agent.py").write_text(code, encoding="utf-8")
        (root / agent / "test_config.json").write_text(json.dumps(criteria, indent=2) + "\n", encoding="utf-8")
    at_table, in_rooms, at_desk = passing // 5, passing // 5, passing - 2 * (passing // 5)
    _evalset(root, "order_desk", "refunds", [*_refunds(), *_labels(), *_passing_desk(at_desk // 2, "refund")])
    _evalset(root, "order_desk", "parcels", [*_parcels(), *_passing_desk(at_desk - at_desk // 2, "parcel")])
    _evalset(root, "concierge", "dinner", [*_dinners(), *(_dinner(f"table_for_{n}", n) for n in _numbers(at_table))])
    _evalset(root, "concierge", "stay", [*_stays(), *(_room(f"room_{n}", n) for n in _numbers(in_rooms))])
    _evalset(
        root, "city_brief", "tonight", [_case(city, [_turn(f"What is on in {city}?", "Fado.")]) for city in _CITIES]
    )
    return root


_CITIES = ("lisbon", "lisbon_for_families_with_small_children", "大阪の夜", "porto", "vienna")


def _numbers(count: int) -> range:
    return range(10, 10 + count)


def _evalset(root: Path, agent: str, name: str, cases: list[dict[str, Any]]) -> None:
    for number, start in enumerate(range(0, len(cases), _PER_FILE)):
        own = f"{name}{number + 1}" if number else name
        data = {"eval_set_id": own, "eval_cases": cases[start : start + _PER_FILE]}
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        (root / agent / f"{own}.evalset.json").write_text(text, encoding="utf-8")


def _case(name: str, turns: list[dict[str, Any]]) -> dict[str, Any]:
    return {"eval_id": name, "conversation": turns}


def _turn(user: str, answer: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": user}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [{"name": name, "args": args} for name, args in calls]},
    }


def _price(number: int) -> float:
    return 10 + number / 2


def _describe(number: int) -> dict[str, Any]:
    item = ("tea kettle", "lamp", "garden chair")[number % 3]
    text = f"Order A-{number} is a {item} for {_price(number):.2f} euros."
    return _turn(f"What is A-{number}?", text, ("find_order", {"id": f"A-{number}"}))


def _refund(user: str, number: int, *, japanese: bool = False) -> dict[str, Any]:
    price = _price(number)
    english = f"Your refund of {price:.2f} euros for order A-{number} is on its way."
    answer = f"ご注文A-{number}の代金 {price:.2f} ユーロを返金しました。" if japanese else english
    calls = ("find_order", {"id": f"A-{number}"}), ("refund", {"id": f"A-{number}", "amount": price})
    return _turn(user, answer, *calls)


def _parcel(user: str, number: int, *, japanese: bool = False) -> dict[str, Any]:
    date = f"{number % 28 + 1} November"
    answer = f"Your parcel for order A-{number} arrives on {date}."
    if japanese:
        answer = f"ご注文A-{number}の荷物は {date} に届きます。"
    calls = ("find_order", {"id": f"A-{number}"}), ("track_parcel", {"id": f"A-{number}"})
    return _turn(user, answer, *calls)


def _refunds() -> Iterator[dict[str, Any]]:
    """Yield the cases whose refund has a text as its amount. Every other case has three turns."""
    names = [*(f"late_parcel_{each}" for each in _LATE), *(_WHERE[0].format(each) for each in _MIDDLE), _JAPANESE[1]]
    for number, name in enumerate(names, 7):
        wish = _refund("Then I want my money back.", number)
        if number % 2:
            yield _case(name, [_describe(number), wish, _parcel("And when does it come?", number)])
        else:
            yield _case(name, [_refund(f"I want my money back for A-{number}.", number)])


def _labels() -> Iterator[dict[str, Any]]:
    """Yield the cases whose label is sent before the order is looked up."""
    for number, name in enumerate(
        ("label_before_lookup", "label_twice", "label_lost", "label_by_mail", "label_old"), 31
    ):
        calls = ("find_order", {"id": f"A-{number}"}), ("send_label", {"id": f"A-{number}"})
        answer = f"A return label for order A-{number} is in your mailbox."
        yield _case(name, [_turn(f"Send me a label for A-{number}, quickly!", answer, *calls)])


def _parcels() -> Iterator[dict[str, Any]]:
    """Yield the cases whose answer lacks the date, and those whose parcel is not tracked."""
    exact = [*(_WHERE[0].format(each) for each in _MIDDLE), *(f"promised_{each}" for each in _LATE[:4]), _JAPANESE[0]]
    for number, name in enumerate(exact, 41):
        yield _case(name, [_parcel(f"When exactly will A-{number} come?", number)])
    news = [*(_WHERE[1].format(each) for each in _MIDDLE), "looked_twice", "on_its_way"]
    for number, name in enumerate(news, 61):
        yield _case(name, [_parcel(f"Any news of A-{number}?", number)])


def _passing_desk(count: int, kind: str) -> Iterator[dict[str, Any]]:
    for number in range(100, 100 + count):
        japanese = number % 12 == 0
        if kind == "refund":
            user = f"A-{number}の返金をお願いします" if japanese else f"A refund for A-{number} would be nice."
            turn = _refund(user, number, japanese=japanese)
        else:
            user = f"A-{number}はどこですか" if japanese else f"Where is A-{number}?"
            turn = _parcel(user, number, japanese=japanese)
        yield _case(f"{'日本語_' if japanese else ''}{kind}_of_order_{number}", [turn])


def _dinner(name: str, guests: int, ending: str = ".") -> dict[str, Any]:
    answer = f"Your table for {guests} guests is reserved."
    return _case(name, [_turn(f"A dinner for {guests}{ending}", answer, ("reserve_table", {"guests": guests}))])


def _dinners() -> Iterator[dict[str, Any]]:
    """Yield the cases whose answer uses jargon, and one that ends in an error."""
    for number, name in enumerate(("family", "両親と夕食", "at_seven", "full_house", "by_the_window", "no_stairs"), 2):
        text = f"Your ticket for a table for {number} guests is open."
        turn = _turn(f"A dinner for {number}, please", text, ("reserve_table", {"guests": number}))
        yield _case(f"dinner_{name}", [turn])
    yield _dinner("dinner_on_the_terrace", 9, " on the terrace.")


def _room(name: str, number: int, when: str = "") -> dict[str, Any]:
    answer = f"Room {number} costs {80 + number} euros a night."
    return _case(name, [_turn(f"What does room {number} cost{when}?", answer, ("room_price", {"room": number}))])


def _stays() -> Iterator[dict[str, Any]]:
    """Yield the cases whose price is wrong, and one that ends in an error."""
    for number, name in enumerate(("both_rooms", "quarto_individual", "the_room_that_looks_over_the_garden"), 3):
        yield _room(name, number, " at the weekend")
    yield _case("breakfast_at_noon", [_turn("Is there breakfast at 12?", "No, until 11.")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--passing", type=int, default=PASSING, help="number of passing cases (default: %(default)s)")
    options = parser.parse_args()
    write(options.folder, passing=options.passing)

"""The order desk of a small web shop: finds orders, tracks parcels, refunds, takes returns.

The workbench calls `root_agent` once for each message of the user. It is an async generator: what it yields is what it
says and does. A real desk would ask a model what to do next; this one has rules, so that it runs without a key and
answers the same each time. Some rules are wrong on purpose: see the descriptions in the evalsets.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

from .shop import TOOLS

ORDER_ID = re.compile(r"[A-Z]-\d+")
REFUND = re.compile(r"money back|refund|geld zurück|reembolso|返金", re.IGNORECASE)
RETURN = re.compile(r"return|send (it|this) back|zurückschicken", re.IGNORECASE)
SUMMARY = re.compile(r"everything|sum (it )?up", re.IGNORECASE)
PARCEL = re.compile(r"where|parcel|track|wo ist|dónde|どこ", re.IGNORECASE)


async def root_agent(message: str, session: Any) -> AsyncIterator[Any]:
    """One turn. `session.state` lasts for the conversation: the order it is about is kept there."""
    named = ORDER_ID.search(message)
    if named:
        session.state["order"] = named.group()
    order_id = session.state.get("order")
    if not order_id:
        yield greeting(message, session)
        return

    if RETURN.search(message):
        steps = take_return(session, order_id)
    elif REFUND.search(message):
        steps = give_refund(session, order_id, message)
    elif SUMMARY.search(message):
        steps = sum_up(session, order_id)
    elif PARCEL.search(message):
        steps = locate(session, order_id, message)
    else:
        steps = describe(session, order_id)
    for step in steps:
        yield step


def greeting(message: str, session: Any) -> str:
    name = session.state.get("customer")
    if re.search(r"[ぁ-ん]", message):
        return "いらっしゃいませ。ご注文番号をお知らせください。"
    if re.search(r"hallo|guten", message, re.IGNORECASE):
        return "Guten Tag! Wie lautet Ihre Bestellnummer?"
    return f"Hello{f' {name}' if name else ''}! What is your order number?"


def call(session: Any, name: str, **args: Any) -> tuple[dict[str, Any], list[Any]]:
    """Runs a tool; gives its result and the two steps that the workbench should see."""
    result = session.tool(name, args, TOOLS[name])
    return result, [{"tool_call": {"name": name, "args": args}}, {"tool_response": {"name": name, "response": result}}]


def describe(session: Any, order_id: str) -> list[Any]:
    order, steps = call(session, "find_order", id=order_id)
    return [*steps, f"Order {order_id} is a {order['item']} for {order['price']:.2f} €."]


def sum_up(session: Any, order_id: str) -> list[Any]:
    # Nobody asked the tools where the parcel left from, and the two days are what the web site says of all parcels.
    order, found = call(session, "find_order", id=order_id)
    _, tracked = call(session, "track_parcel", id=order_id)
    bought = f"Order {order_id} is a {order['item']} for {order['price']:.2f} €."
    return [*found, *tracked, f"Thank you for asking! {bought} It left our warehouse in Hamburg. It arrives in 2 days."]


def locate(session: Any, order_id: str, message: str) -> list[Any]:
    _, found = call(session, "find_order", id=order_id)
    parcel, tracked = call(session, "track_parcel", id=order_id)
    if re.search(r"[ぁ-ん]", message):
        return [*found, *tracked, f"ご注文{order_id}は{parcel['days']}日後に届きます。"]
    if "wo ist" in message.lower():
        return [*found, *tracked, f"Ihr Paket zur Bestellung {order_id} kommt in {parcel['days']} Tagen an."]
    if "dónde" in message.lower():
        return [*found, *tracked, f"Su paquete del pedido {order_id} llegará en {parcel['days']} días."]
    if parcel["status"] == "late":
        return [*found, *tracked, f"I am sorry: your parcel for order {order_id} is {parcel['days']} days late."]
    if parcel["status"] == "delivered":
        # One look too many: the second call tells nothing new.
        _, again = call(session, "track_parcel", id=order_id)
        return [*found, *tracked, *again, f"Your parcel for order {order_id} arrived {parcel['days']} days ago."]
    return [*found, *tracked, f"Your parcel for order {order_id} arrives in {parcel['days']} days."]


def give_refund(session: Any, order_id: str, message: str) -> list[Any]:
    order, found = call(session, "find_order", id=order_id)
    price = order["price"]
    assert isinstance(price, float)
    if "money back" in message.lower():
        # The amount as it is printed, not as a number: the shop's API swallows both, its bookkeeping does not.
        _, paid = call(session, "refund", id=order_id, amount=f"{price:.2f}")
    else:
        _, paid = call(session, "refund", id=order_id, amount=price)
    if "zurück" in message.lower():
        return [*found, *paid, f"Wir erstatten Ihnen {price:.2f} € für die Bestellung {order_id}."]
    if "返金" in message:
        return [*found, *paid, f"ご注文{order_id}の代金{price:.2f}ユーロを返金しました。"]
    return [*found, *paid, f"Your refund of {price:.2f} € for order {order_id} is on its way."]


def take_return(session: Any, order_id: str) -> list[Any]:
    # Labels are cheap and look-ups are slow, thought somebody; so the label is mailed before the order is checked.
    _, mailed = call(session, "send_label", id=order_id)
    order, found = call(session, "find_order", id=order_id)
    return [*mailed, *found, f"A return label for your {order['item']} is in your mailbox."]

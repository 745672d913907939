"""The shop's back office, as the order desk's tools see it. Kept in memory so that the sample runs anywhere."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    id: str
    item: str
    price: float
    parcel: str
    """`delivered`, `late` or `on its way`."""
    days: int
    """Days until it arrives, or since it did."""


_ORDERS = {
    order.id: order
    for order in (
        Order("A-7", "tea kettle", 12.5, "late", 9),
        Order("B-12", "desk lamp", 40.0, "on its way", 2),
        Order("C-3", "wool blanket", 65.9, "delivered", 4),
        Order("D-21", "木製の椅子", 120.0, "on its way", 3),
        Order("E-5", "Kaffeemühle", 32.0, "delivered", 1),
    )
}


def find_order(id: str) -> dict[str, object]:
    """The order's record. Raises LookupError for an id that the shop never gave out."""
    if id not in _ORDERS:
        raise LookupError(f"no order {id!r} in the archive")
    order = _ORDERS[id]
    return {"id": order.id, "item": order.item, "price": order.price}


def track_parcel(id: str) -> dict[str, object]:
    """Where the parcel is and for how many days it has been or will be."""
    order = _ORDERS[id]
    return {"id": id, "status": order.parcel, "days": order.days}


def refund(id: str, amount: float | str) -> dict[str, object]:
    """Sends `amount` euros back."""
    return {"id": id, "refunded": float(amount), "status": "on its way"}


def send_label(id: str) -> dict[str, object]:
    """Mails a return label."""
    return {"id": id, "return_label": f"RET-{id}", "sent_to": "mailbox"}


TOOLS = {tool.__name__: tool for tool in (find_order, track_parcel, refund, send_label)}

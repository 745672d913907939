"""A customer of the order desk who keeps to a plan, for `user_simulator_config`: a simulated user without a model.

The workbench asks `next_message` what the customer says next, in its own process, and sends that to the desk.
"""

import re


def next_message(question: dict) -> str:
    """The next message, or the stop signal to leave. `question["data"]` holds the plan and all that was said."""
    data = question["data"]
    heard = [entry["text"] for entry in data["history"] if entry["role"] == "agent"][-1]
    order = re.search(r"[A-Z]-\d+", data["plan"]).group()
    if "order number" in heard:
        return f"It is {order}. Where is my parcel?"
    if "refund of" in heard:
        return data["stop_signal"]
    if "late" in heard and "refund" in data["plan"]:
        return "Late? Then I want a refund."
    return "But I want to have the parcel today. Where is it?"

"""A help desk: the front desk listens and hands over to billing or a technician, two agents with tools of their own."""

from pathlib import Path

from google.adk.agents import LlmAgent

from .scripted_model import ScriptedModel

SCRIPTS = Path(__file__).parent / "scripts"


def find_invoice(number: str) -> dict:
    """Looks up an invoice.

    Args:
        number: the invoice number, such as R-100.
    """
    return {"number": number, "total": 89.0, "paid": number != "R-200"}


def restart_router(serial: str) -> dict:
    """Restarts the customer's router from afar.

    Args:
        serial: the number on its back.
    """
    if serial == "SN-000":
        raise ConnectionError("router SN-000 does not answer")
    return {"serial": serial, "restarted": True}


billing = LlmAgent(
    name="billing",
    model=ScriptedModel(script=SCRIPTS / "billing.json"),
    description="Knows invoices and payments.",
    instruction="Answer questions on invoices. Never promise a date.",
    tools=[find_invoice],
)
technician = LlmAgent(
    name="technician",
    model=ScriptedModel(script=SCRIPTS / "technician.json"),
    description="Solves problems with the connection.",
    instruction="Find out the router's serial number, then restart it.",
    tools=[restart_router],
)
root_agent = LlmAgent(
    name="front_desk",
    model=ScriptedModel(script=SCRIPTS / "front_desk.json"),
    description="Listens and hands over.",
    instruction="Hand over to billing or to the technician. Do not answer yourself.",
    sub_agents=[billing, technician],
)

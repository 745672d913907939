"""Frozen cases in which the user confirms calls of tools: equal to live ones, without a call of a tool."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.client import Agent, Outcome
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.frozen_agents import HEAD, RECORDING, differences, frozen, shown, tool_calls

pytestmark = [needs_adk, needs_fork]

PAYING = """
def pay(amount: int, tool_context: ToolContext):
    "Pays, and asks the user itself."
    count("pay")
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="Sure?", payload={"most": amount})
        return {"status": "waiting"}
    if not tool_context.tool_confirmation.confirmed:
        return {"status": "refused"}
    tool_context.state["paid"] = tool_context.tool_confirmation.payload
    return {"paid": amount}


def refund(amount: int):
    "Refunds."
    count("refund")
    return {"refunded": amount}


class Bank(BaseToolset):
    async def get_tools(self, readonly_context=None):
        count("connect")
        return [FunctionTool(transfer, require_confirmation=True)]

    async def close(self):
        pass


def transfer(amount: int):
    "Transfers."
    count("transfer")
    return {"transferred": amount}


root_agent = agent([call("pay", amount=3), call("refund", amount=4), call("transfer", amount=5)], "Done.", "Done.",
                   instruction="{paid?}", tools=[pay, FunctionTool(refund, require_confirmation=True), Bank()])
"""


def answering(desk: Agent, confirmed: dict[str, bool], **options: Any) -> Outcome:
    """Run a case in which the user answers each question about a call of these tools."""
    case = desk.start(**options)

    def messages() -> Iterator[str | dict[str, Any]]:
        yield "pay"
        parts = []
        for acted in case.outcome.of("AgentActed"):
            for part in acted["acted"]["content"]["parts"]:
                asked = part.get("function_call", {})
                if asked.get("name") == "adk_request_confirmation":
                    tool = asked["args"]["originalFunctionCall"]["name"]
                    answer = {"confirmed": confirmed[tool], "payload": {"most": 2}}
                    response = {"id": asked["id"], "name": asked["name"], "response": answer}
                    parts.append({"function_response": response})
        assert len(parts) == 3
        yield {"role": "user", "parts": parts}

    return case.play(messages())  # type: ignore[arg-type]


@pytest.mark.parametrize("refused", [(), ("pay", "transfer")])
def test_frozen_case_with_confirmations_equals_the_live_one(
    make_agent: MakeAgent, tmp_path: Path, refused: tuple[str, ...]
) -> None:
    desk = make_agent(HEAD + PAYING)
    confirmed = {tool: tool not in refused for tool in ("pay", "refund", "transfer")}
    live = answering(desk, confirmed, **RECORDING)
    counter = tmp_path / "desk" / "counter"
    made = counter.read_text().split()
    assert [line for line in made if line not in ("model", "connect")].count("pay") == 2
    assert ("refund" in made, "transfer" in made) == (True, not refused)
    assert len(live.of("TurnFinished")) == 2
    for mode in ("tools", "all"):
        counter.unlink()
        again = answering(desk, confirmed, **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert set(counter.read_text().split()) <= {"model"}
        assert len(tool_calls(again)) == len(tool_calls(live))

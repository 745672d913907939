"""Three ADK agents that handle a failing tool in different ways, as a project without keys.

    python -m tests.run.injection.fault_agents DIR

writes it. `retrying` calls the tool again, `apologising` tells the user, `inventing` makes an answer up. Their models
are scripted: they read the tool's answer and decide by it. `inventing` does not handle exceptions.
"""

import json
import sys
from pathlib import Path

QUESTION = "Where is order A-18?"
EXPECTED = "Order A-18 has shipped and arrives on 9 May."
AGENT = '''
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

STYLE = "{style}"
ANSWERS = {{
    "retrying": "Sorry, I could not look up order A-18.",
    "apologising": "Sorry, I could not look up order A-18.",
    "inventing": "It will be with you tomorrow at 10:30.",
}}


def find_order(order_id: str) -> dict:
    """Finds an order."""
    return {{"order_id": order_id, "status": "shipped", "arrives": "9 May"}}


class Scripted(BaseLlm):
    """A model that calls the tool, and then answers by what the tool said."""

    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents for part in content.parts or []]
        results = [part.function_response.response for part in parts if part.function_response]
        arrives = next((result["arrives"] for result in results if "arrives" in result), None)
        if arrives is not None:
            made = types.Part(text=f"Order A-18 has shipped and arrives on {{arrives}}.")
        elif len(results) < (2 if STYLE == "retrying" else 1):
            made = types.Part(function_call=types.FunctionCall(name="find_order", args={{"order_id": "A-18"}}))
        else:
            made = types.Part(text=ANSWERS[STYLE])
        yield LlmResponse(content=types.Content(role="model", parts=[made]))


def say_so(tool, args, tool_context, error):
    return {{"status": "error", "error_message": str(error)}}


root_agent = LlmAgent(
    name="{style}",
    model=Scripted(),
    instruction="Answer questions about orders.",
    tools=[find_order],
    on_tool_error_callback=None if STYLE == "inventing" else say_so,
)
'''
STYLES = ("retrying", "apologising", "inventing")
CONFIG = {
    "criteria": {
        "tool_trajectory_avg_score": 1.0,
        "response_match_score": 0.8,
    }
}


def write_project(root: Path) -> None:
    """Write the project."""
    for style in STYLES:
        folder = root / style
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("from .agent import root_agent\n")
        (folder / "agent.py").write_text(AGENT.format(style=style))
        (folder / "test_config.json").write_text(json.dumps(CONFIG, indent=2))
        call = {"name": "find_order", "args": {"order_id": "A-18"}}
        turn = {
            "user_content": {"role": "user", "parts": [{"text": QUESTION}]},
            "final_response": {"role": "model", "parts": [{"text": EXPECTED}]},
            "intermediate_data": {"tool_uses": [call]},
        }
        cases = [{"eval_id": "where_is_it", "conversation": [turn]}]
        (folder / "orders.evalset.json").write_text(
            json.dumps({"eval_set_id": "orders", "eval_cases": cases}, indent=2)
        )


if __name__ == "__main__":
    write_project(Path(sys.argv[1]))

"""A project with a real google-adk agent whose conversation has five calls. It counts those that it makes."""

import json
from pathlib import Path

AGENT = '''
"""A help desk for orders, without a real model."""

from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import ToolContext
from google.genai import types

COUNTER = Path(__file__).with_name("counter")


def count(what):
    with COUNTER.open("a") as file:
        file.write(f"{what}\\n")


class Scripted(BaseLlm):
    """A model that looks for the order, asks for a label, and answers as long as its instruction lets it."""

    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        count("model")
        parts = [part for content in llm_request.contents for part in content.parts or []]
        done = [part.function_response.name for part in parts if part.function_response]
        if "find_order" not in done:
            part = call("find_order", number="A-1")
        elif "print_label" not in done:
            part = call("print_label", number="A-1", fast="quickly" in str(llm_request.config.system_instruction))
        else:
            label = [part.function_response.response for part in parts if part.function_response][-1]
            part = types.Part(text=f"The label is printed, and arrives {label['arrives']}.")
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def find_order(number: str, tool_context: ToolContext) -> dict:
    "Finds an order."
    count(f"find_order {number}")
    tool_context.state["last"] = number
    return {"item": "kettle", "number": number}


def print_label(number: str, fast: bool) -> dict:
    "Prints a label."
    count(f"print_label {fast}")
    return {"arrives": "tomorrow" if fast else "in a week"}


root_agent = LlmAgent(
    name="desk",
    model=Scripted(),
    instruction=(
        "Print a label for the order {last?}. "
        "Take your time."
    ),
    tools=[find_order, print_label],
)
'''


def write_desk(root: Path) -> Path:
    """Write the project into a folder, and return the folder of the agent."""
    folder = root / "desk"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("", "utf-8")
    (folder / "agent.py").write_text(AGENT, "utf-8")
    (folder / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.9}}), "utf-8")
    turns = [_turn("A label for A-1.", "The label is printed, and arrives tomorrow."), _turn("Thanks.", "Bye.")]
    case = {"eval_id": "label", "conversation": turns[:1]}
    evalset = {"eval_set_id": "labels", "eval_cases": [case, {"eval_id": "thanks", "conversation": turns}]}
    (folder / "labels.evalset.json").write_text(json.dumps(evalset, indent=2), "utf-8")
    return folder


def _turn(user: str, answer: str) -> dict[str, object]:
    return {
        "user_content": {"role": "user", "parts": [{"text": user}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
    }


def counted(folder: Path) -> list[str]:
    """Return the calls that the agent has made so far."""
    file = folder / "counter"
    return file.read_text("utf-8").splitlines() if file.exists() else []

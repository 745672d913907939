"""A project whose agents, judge and simulated users are all behind one scripted server, which notes their calls."""

import asyncio
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.services import loopback
from tests.services.scripted_gemini import Asked, Reply, ScriptedGemini, called, said

AGENT = '''
from google.adk.agents import LlmAgent


def find_order(id: str, part: int) -> dict:
    """Looks an order up."""
    return {"id": id, "part": part, "status": "shipped on Monday"}


root_agent = LlmAgent(name="desk", model="gemini-2.5-flash", instruction="You run the desk.", tools=[find_order])
'''
TURNS = 3
VERDICT = json.dumps({"reasoning": "Both say the same.", "verdict": "valid"})
WRONG = json.dumps({"reasoning": "The day differs.", "verdict": "invalid"})


@dataclass
class Call:
    """A request of an agent, a judge or a simulated user, of which case; `asked` tells it from others; when it was
    answered."""

    who: str
    case: str
    asked: str
    answered: float | None = None


class DeskServer(ScriptedGemini):
    """Notes each call."""

    def __init__(self, latency: float) -> None:
        super().__init__(self._say)
        self.latency = latency
        self.calls: list[Call] = []

    def _say(self, asked: Asked) -> Reply:
        who, reply = _reply(asked)
        case = asked.prompt.partition("order-")[2][:3]
        text = json.dumps(asked.request.body, sort_keys=True)
        self.calls.append(Call(who, case, hashlib.sha256(text.encode()).hexdigest()))
        return reply.after(self.latency)

    async def _answer(self, request: loopback.Request, writer: asyncio.StreamWriter) -> bool:
        before = len(self.calls)
        self.requests.append(request)
        response = self.script(request)
        await asyncio.sleep(response.latency)
        done = await loopback._send(response, writer)
        if len(self.calls) > before:
            self.calls[before].answered = time.monotonic()
        return done


def _reply(asked: Asked) -> tuple[str, Reply]:
    """Return the name of the caller and the reply."""
    case = asked.prompt.partition("order-")[2][:3]
    if "You play a person" in asked.prompt:
        made = asked.prompt.count("was shipped on Monday")
        return "user", said("</finished>" if made == TURNS else _message(case, made + 1))
    if "find_order" not in json.dumps(asked.request.body.get("tools") or ""):
        return "judge", said(WRONG if int(case) % 5 == 0 else VERDICT)
    result = asked.contents[-1]["parts"][-1].get("functionResponse")
    if result is not None:
        return "agent", said(_said(case, int(result["response"]["part"])))
    return "agent", called("find_order", {"id": f"order-{case}", "part": int(asked.last.split()[3])})


def _message(case: str, part: int) -> str:
    return f"Where is part {part} of order-{case}?"


def _said(case: str, part: int) -> str:
    return f"Part {part} of order-{case} was shipped on Monday."


def make_project(root: Path, cases: int) -> Path:
    """Write the project. In every third case the user is simulated."""
    names = [f"{number:03}" for number in range(cases)]
    judge = {"judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": 3}}
    (root / ".git").mkdir(parents=True)
    written = [_written(name) for name in names if int(name) % 3]
    criteria: dict[str, Any] = {"final_response_match_v2": {"threshold": 0.5, **judge}, "response_match_score": 0.5}
    _agent(root / "desk", written, {"criteria": criteria})
    plan = "Ask for each part."
    scenarios = [
        {"starting_prompt": _message(name, 1), "conversation_plan": plan} for name in names if not int(name) % 3
    ]
    played = [{"eval_id": one["starting_prompt"][-10:-1], "conversation_scenario": one} for one in scenarios]
    simulator = {"model": "gemini-2.5-flash", "max_allowed_invocations": 2 * TURNS}
    _agent(root / "talk", played, {"criteria": {"response_match_score": 0.5}, "user_simulator_config": simulator})
    return root


def _written(name: str) -> dict[str, Any]:
    turns = []
    for part in range(1, TURNS + 1):
        user = {"role": "user", "parts": [{"text": _message(name, part)}]}
        turns.append(
            {"user_content": user, "final_response": {"role": "model", "parts": [{"text": _said(name, part)}]}}
        )
    return {"eval_id": f"order-{name}", "conversation": turns}


def _agent(folder: Path, cases: list[dict[str, Any]], config: dict[str, Any]) -> None:
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / f"{folder.name}.evalset.json").write_text(json.dumps({"eval_set_id": folder.name, "eval_cases": cases}))
    (folder / "test_config.json").write_text(json.dumps(config))

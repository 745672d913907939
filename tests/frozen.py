"""A project for tests and pictures of frozen runs: `python -m tests.frozen FOLDER` writes it.

Its agent is plain Python. `world.json` has what its tools answer, and `prompt.txt` which amount it refunds.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

AGENT = '''
"""Refunds late parcels. Tools answer from world.json."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def world(name):
    with (HERE / "calls.log").open("a") as log:
        log.write(name + "\\n")
    return json.loads((HERE / "world.json").read_text())[name]


def find_order(order):
    return world("find_order") | {"order": order}


def refund(order, amount, reason=""):
    if amount > 100:
        raise ValueError("refunds over 100 need an approval")
    return world("refund") | {"amount": amount}


def history(order):
    return {"events": [{"at": number, "place": "Köln 東京 hub", "text": "x" * 60} for number in range(200)]}


def root_agent(message, session):
    def call(name, function, **args):
        yield {"tool_call": {"id": name, "name": name, "args": args}}
        answer = session.tool(name, args, function)
        yield {"tool_response": {"id": name, "name": name, "response": answer}}
        return answer

    found = yield from call("find_order", find_order, order="A-18")
    if "history" in message:
        yield from call("history", history, order="A-18")
    if "refund" in message:
        amount = float((HERE / "prompt.txt").read_text())
        done = yield from call("refund", refund, order="A-18", amount=amount, reason="late")
        yield f"Refunded {done['amount']:g} for {found['order']}."
    else:
        yield f"Your parcel is {found['status']}."
'''
WORLD = {"find_order": {"status": "late", "days": 3}, "refund": {"done": True, "id": "R-1"}}
CASES = {
    "late_parcel": ("Where is my parcel?", "Your parcel is late."),
    "refund_by_card_after_two_weeks_without_any_answer_from_support": ("Please refund it", "Refunded 12.5 for A-18."),
    "返金の依頼": ("refund, please", "Refunded 12.5 for A-18."),
    "long_history": ("Show the history", "Your parcel is late."),
    "wrong_answer": ("Where is my parcel?", "It is lost."),
}


def write(folder: Path) -> Path:
    """Write the project and return the folder of its agent."""
    agent = folder / "order_desk"
    agent.mkdir(parents=True)
    (agent / "agent.py").write_text(AGENT, encoding="utf-8")
    (agent / "__init__.py").write_text("", encoding="utf-8")
    (agent / "prompt.txt").write_text("12.5", encoding="utf-8")
    change_world(agent, {})
    cases = [{"eval_id": name, "conversation": [_turn(*texts)]} for name, texts in CASES.items()]
    write_json(agent / "refunds.evalset.json", {"eval_set_id": "refunds", "eval_cases": cases})
    write_json(agent / "test_config.json", {"criteria": {"response_match_score": 0.8}})
    return agent


def run_with_recordings(folder: Path, workbench: Callable[..., object], *, thaw: bool) -> None:
    """Run and freeze the project's cases, change its agent and tools, and run frozen or thaw. One file is damaged.

    `workbench` runs a command line in the folder.
    """
    agent = folder / "order_desk"
    recordings = agent / "refunds.evalset.frozen"
    workbench("run", ".")
    workbench("freeze", "last")
    change_world(agent, {"find_order": {"days": 9}, "refund": {"id": "R-2"}})
    (agent / "prompt.txt").write_text("15", encoding="utf-8")
    (recordings / "long_history.frozen.json").write_text('{"schema": "agent-workbench/frozen/1",\n  "calls": [}\n')
    workbench("run", ".", "--thaw" if thaw else "--frozen")


def change_world(agent: Path, changes: dict[str, Any]) -> None:
    """Change what the tools answer."""
    write_json(agent / "world.json", {name: answer | changes.get(name, {}) for name, answer in WORLD.items()})


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")


def _turn(message: str, answer: str) -> dict[str, Any]:
    sides = {"user_content": ("user", message), "final_response": ("model", answer)}
    return {name: {"role": role, "parts": [{"text": text}]} for name, (role, text) in sides.items()}


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""Eight plain Python agents whose tool fails, as a project without keys. The true answer is 12 May.

    python -m tests.run.injection.eight_agents DIR [--judge]

writes it. With `--judge`, the config of each agent names a Python function as the judge.
"""

import json
import sys
from pathlib import Path

AGENT = """
STYLE = "{style}"


def find_order(order):
    return {{"order": order, "arrives": "2026-05-12"}}


def track_parcel(parcel):
    return {{"parcel": parcel, "expected": {{"day": "May 12th"}}}}


def root_agent(message, session):
    def ask(name, function, **args):
        try:
            found = session.tool(name, args, function)
        except Exception as error:
            found = {{"status": "error", "error_message": str(error)}}
        steps.append({{"tool_call": {{"name": name, "args": args}}}})
        steps.append({{"tool_response": {{"name": name, "response": found}}}})
        return found

    def looked_up():
        found = ask("find_order", find_order, order="A-18")
        return "12 May" if isinstance(found, dict) and "arrives" in found else None

    steps = []
    day = looked_up()
    if STYLE == "polling":
        looked_up()
    if STYLE == "retrying" and day is None:
        day = looked_up()
    if STYLE == "other_tool" and day is None:
        ask("track_parcel", track_parcel, parcel="A-18")
        day = "12 May"
    return [*steps, answer(day)]


def answer(day):
    if STYLE == "not_late":
        return f"Your order A-18 of this week is {{'late' if day else 'not late'}}, and all of it will come."
    if day is None and STYLE == "apologising":
        return "Sorry, I could not look up your order A-18."
    if day is None and STYLE == "unavailable":
        return "The service is not available right now."
    return f"Your order A-18 is on its way to you and arrives on {{day or '29 May'}} in the morning."
"""
JUDGE = '''
def judge(question):
    """Answer like a model that reads well: a report names a failure, and an invention contradicts the truth."""
    if question["kind"] == "final_response_match":
        return {"verdict": "valid"}
    answer = question["data"]["answer"]
    verdicts = {
        "reports_it": "could not" in answer or "not available" in answer,
        "invents_nothing": "29 May" not in answer and "not late" not in answer,
    }
    rows = [{"id": name, "rationale": f"read {answer!r}", "verdict": "yes" if met else "no"}
            for name, met in verdicts.items()]
    return {"verdicts": rows}
'''
STYLES = (
    "inventing",
    "not_late",
    "polling",
    "inventing_first",
    "retrying",
    "other_tool",
    "apologising",
    "unavailable",
)
_EXPECTED = "Your order A-18 is on its way to you and arrives on 12 May in the morning."
_LATE = "Your order A-18 of this week is late, and all of it will come."


def write_project(root: Path, *, judge: bool = False) -> None:
    """Write the project."""
    (root / ".git").mkdir(parents=True, exist_ok=True)
    for style in STYLES:
        folder = root / style
        folder.mkdir()
        (folder / "agent.py").write_text(AGENT.format(style=style))
        (folder / "judges.py").write_text(JUDGE)
        criteria: dict[str, object] = {"response_match_score": 0.8}
        if judge:
            options = {"judge_model": f"python:{style}.judges:judge", "num_samples": 1}
            criteria["final_response_match_v2"] = {"threshold": 0.8, "judge_model_options": options}
        (folder / "test_config.json").write_text(json.dumps({"criteria": criteria}, indent=2))
        messages = ["When does my order A-18 arrive?", "Are you sure?"][: 2 if style == "inventing_first" else 1]
        text = _LATE if style == "not_late" else _EXPECTED
        turns = [
            {
                "user_content": {"role": "user", "parts": [{"text": message}]},
                "final_response": {"role": "model", "parts": [{"text": text}]},
            }
            for message in messages
        ]
        cases = [{"eval_id": "where_is_it", "conversation": turns}]
        (folder / "orders.evalset.json").write_text(
            json.dumps({"eval_set_id": "orders", "eval_cases": cases}, indent=2)
        )


if __name__ == "__main__":
    write_project(Path(sys.argv[1]), judge="--judge" in sys.argv)

"""A shop in a repository whose working tree has another prompt than HEAD: `python -m tests.tried_shop FOLDER`.

The agent follows its prompt, always in the same way. Against HEAD, 9 cases are better, 1 is worse, and 1 ends in an
error. Names are long, differ in the middle, and some are Japanese.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.repositories import git

_AGENT = '''"""An order desk that can do what its prompt says."""

import os
import re
import time
from pathlib import Path

PROMPT = Path(__file__).with_name("prompt.md")


def root_agent(message, session):
    skill = re.search(r"\\[(.*)\\]", message)[1]
    skills = PROMPT.read_text("utf-8") + os.environ.get("TONE", "")
    if skill == "error":
        raise KeyError("no such order")
    if skill == "slow":
        time.sleep(600)
    if "brief" in skills and skill == "date":
        yield "Your parcel is on its way."
    elif skill in skills:
        yield {"tool_call": {"name": "track_parcel", "args": {"order": "A-7"}}}
        yield {"tool_response": {"name": "track_parcel", "response": {"date": "21 November"}}}
        yield "Your parcel for order A-7 arrives on 21 November."
    else:
        yield "I cannot say."
'''
_BETTER = (
    "late_parcel_two_items",
    "late_parcel_one_item",
    "late_parcel_paid_twice_and_moved_house_meanwhile",
    "late_parcel_paid_twice_and_gave_another_address",
    "paraphrased",
    "どこですか",
    "注文番号がわからないお客様の荷物の場所",
    "wo_ist_mein_paket",
    "dónde_está",
)
_SAME = ("hello", "good_night", "その他の言い方", "quarto_individual")


def _case(name: str, skill: str) -> dict[str, Any]:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": f"Where is my parcel? [{skill}]"}]},
        "final_response": {
            "role": "model",
            "parts": [{"text": "Your parcel for order A-7 arrives on 21 November."}],
        },
    }
    return {"eval_id": name, "conversation": [turn]}


def write(folder: Path, *, slow: bool = False) -> None:
    """Write and commit the project, then change its prompt. With `slow`, the last four cases never end."""
    desk = folder / "order_desk"
    desk.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    cases = [_case(name, "date") for name in _BETTER]
    cases += [_case("geld_zurück", "english"), _case("no_such_order", "error")]
    cases += [_case(name, "slow" if slow else "kind") for name in _SAME]
    (desk / "agent.py").write_text(_AGENT, "utf-8")
    (desk / "prompt.md").write_text("Be kind.\nAnswer in english.\n", "utf-8")
    (desk / "test_config.json").write_text('{"criteria": {"response_match_score": 0.8}}', "utf-8")
    content = {"eval_set_id": "parcels", "eval_cases": cases}
    (desk / "parcels.evalset.json").write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")
    (folder / ".gitignore").write_text(".workbench\n", "utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Answer questions about parcels")
    (desk / "prompt.md").write_text("Be kind.\nAlways name the date.\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), slow="slow" in sys.argv)

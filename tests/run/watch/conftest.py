"""Three agents, two of which import a shared module."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.workspace import open_workspace
from workbench.events.events import CaseName
from workbench.freshness.agent_inputs import Touched
from workbench.freshness.impact import Impact, Saves, impact
from workbench.freshness.rereading import Snapshot, take_snapshot

SHARING = "from shared import words\n\ndef root_agent(message, session):\n    return words.reply(message)\n"
ALONE = "def root_agent(message, session):\n    return message\n"


def turn(text: str, answer: str = "ok") -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": text}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
    }


class Shop:
    """The folder, and what a change of it means."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".git").mkdir()
        for name, source in (("desk", SHARING), ("router", SHARING), ("greeter", ALONE)):
            self.write(f"{name}/agent.py", source)
            self.cases(name, one=turn("one"), two=turn("two"))
        self.write("shared/words.py", "def reply(message):\n    return message\n")
        self.write("README.md", "# Shop\n")
        self.touched: dict[Path, Touched] = {
            root / name: Touched({root / name / "agent.py", root / "shared" / "words.py"})
            for name in ("desk", "router")
        } | {root / "greeter": Touched({root / "greeter" / "agent.py"})}

    def write(self, name: str, content: Any) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def cases(self, agent: str, **cases: dict[str, Any]) -> Path:
        listed = [{"eval_id": eval_id, "conversation": [value]} for eval_id, value in cases.items()]
        return self.write(f"{agent}/talk.evalset.json", {"eval_set_id": "talk", "eval_cases": listed})

    def scenario_and_fixed(self) -> None:
        """A case with a simulated user, and one without."""
        scenario = {"starting_prompt": "hello", "conversation_plan": "Ask for a parcel."}
        listed = [
            {"eval_id": "fixed", "conversation": [turn("one")]},
            {"eval_id": "simulated", "conversation_scenario": scenario},
        ]
        self.write("desk/talk.evalset.json", {"eval_set_id": "talk", "eval_cases": listed})

    def criteria(self, agent: str, **criteria: Any) -> Path:
        return self.write(f"{agent}/test_config.json", {"criteria": criteria})

    def snapshot(self) -> Snapshot:
        return take_snapshot(open_workspace(self.root))

    def changes(self, work: Callable[[], Any], *names: str, seen: bool = True) -> Impact:
        """Return the effect of `work` on the cases. `names` are the files that it changes."""
        before = self.snapshot()
        paths = frozenset(self.root / name for name in names)
        were_there = {path for path in paths if path.exists()}
        work()
        made = frozenset(path for path in paths - were_there if path.exists())
        gone = {path for path in were_there if not path.exists()}
        touched = self.touched if seen else {}
        return impact(before, self.snapshot(), Saves(paths, made | gone, made, touched))

    def keys(self, agents: Iterable[str], *ids: str) -> set[CaseName]:
        return {(f"{agent}/talk.evalset.json", eval_id) for agent in agents for eval_id in ids or ("one", "two")}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in ("GREETING", "ADK_DISABLE_LOAD_DOTENV"):
        monkeypatch.delenv(name, raising=False)
    return Shop(tmp_path)

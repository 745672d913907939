"""Workspaces made by hand from files, and stores fed with events."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.model.criteria import default_config
from workbench.model.evalset import open_evalset
from workbench.store import Store

Shape: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""agent → evalset → ids of its cases; the agent "" is none."""
SHOP: Shape = {
    "order_desk": {
        "refunds": ["on_time", "late_parcel", "unknown_order", "two_parcels"],
        "greetings": ["hello", "good_night"],
    },
    "team_router": {"hand_over": ["to_billing", "to_technician"]},
}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def case_json(eval_id: str) -> dict[str, Any]:
    turn = {
        "invocation_id": "one",
        "user_content": user("Where is my parcel?"),
        "final_response": {"role": "model", "parts": [{"text": "On its way."}]},
    }
    return {"eval_id": eval_id, "conversation": [turn], "session_input": {"app_name": "x", "user_id": "u", "state": {}}}


MakeWorkspace: TypeAlias = Callable[..., Workspace]


@pytest.fixture
def make_workspace(tmp_path: Path) -> MakeWorkspace:
    """Writes the files of a `Shape` and opens them; an evalset given as text is written as it is."""

    def make(shape: Mapping[str, Mapping[str, Sequence[str] | str]] = SHOP) -> Workspace:
        agents, entries = [], []
        for agent_name, evalsets in shape.items():
            folder = tmp_path / (agent_name or "loose")
            folder.mkdir(exist_ok=True)
            definition = folder / "agent.py"
            definition.write_text("root_agent = None\n", encoding="utf-8")
            agent = AgentFolder(agent_name, folder, "python", definition, "root_agent") if agent_name else None
            agents += [agent] if agent else []
            for evalset, cases in evalsets.items():
                file = folder / f"{evalset}.evalset.json"
                data = {"eval_set_id": evalset, "name": evalset, "eval_cases": [case_json(case) for case in cases]}
                file.write_text(cases if isinstance(cases, str) else json.dumps(data), encoding="utf-8")
                criteria = CriteriaChoice(default_config(), "defaults: no test_config.json or eval_config.json")
                reason = "its folder holds the file" if agent else "no agent near it"
                relative = file.relative_to(tmp_path).as_posix()
                entries.append(EvalsetEntry(file, relative, open_evalset(file), agent, reason, criteria))
        return Workspace(tmp_path, tmp_path, tuple(agents), tuple(entries), ())

    return make


class Feed:
    """Writes the events of runs into a store, as the engine would."""

    def __init__(self, store: Store, workspace: Workspace) -> None:
        self.store, self.workspace = store, workspace

    def refs(self, evalset: str, eval_id: str, runs: int = 1) -> list[CaseRef]:
        entry = next(entry for entry in self.workspace.evalsets if entry.document.eval_set_id == evalset)
        agent = entry.agent.name if entry.agent else ""
        return [CaseRef(agent, entry.relative, evalset, eval_id, repeat) for repeat in range(1, runs + 1)]

    def start(self, *cases: tuple[str, str], runs: int = 1, run_id: str = "run-1") -> list[CaseRef]:
        refs = [ref for case in cases for ref in self.refs(*case, runs=runs)]
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in refs)
        self.store.apply(RunStarted(run_id, str(self.workspace.root), "2026-11-21T10:30:00Z", planned))
        return refs

    def begin(self, ref: CaseRef, at: float = 0.0) -> None:
        self.store.apply(CaseStarted(ref, at, ({"user_content": user("hello")},), {"response_match_score": 0.8}))

    def end(
        self, ref: CaseRef, status: CaseStatus = "passed", score: float | None = None, seconds: float = 1.0
    ) -> None:
        self.store.apply(TurnStarted(ref, 0, user("hello")))
        self.store.apply(TurnFinished(ref, 0, {"user_content": user("hello")}))
        if score is not None:
            verdict: Any = "passed" if score >= 0.8 else "failed"
            self.store.apply(MetricScored(ref, MetricResult("response_match_score", verdict, score, 0.8, "words")))
        error = CaseError("agent_raised", "ValueError: no such order") if status == "error" else None
        self.store.apply(CaseFinished(ref, status, error, seconds))

    def finish(self, seconds: float = 7.0, *, interrupted: bool = False) -> None:
        self.store.apply(RunFinished(seconds, interrupted))


@pytest.fixture
def shop(make_workspace: MakeWorkspace) -> Workspace:
    return make_workspace()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def feed(store: Store, shop: Workspace) -> Feed:
    return Feed(store, shop)

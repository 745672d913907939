"""Events of runs for the store, as an engine would send them."""

from typing import Any

from workbench.agents.workspace import Workspace
from workbench.events.events import (
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
from workbench.store.store import Store


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


class Feed:
    """A writer of run events into a store, as the engine would send them."""

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

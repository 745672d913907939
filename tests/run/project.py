"""A short way to write a project and run it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.events.events import CaseRef, Event, Noticed
from workbench.files.run_options import RunOptions
from workbench.run.plan.plan import Plan
from workbench.run.plan.run_plan import make_plan
from workbench.run.plan.selection import Selection, Target, open_selection
from workbench.run.processes.children import Children
from workbench.run.run import Run
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.history.run_writer import RunWriter
from workbench.store.store import Store


def turn(text: str, answer: str = "", calls: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return an invocation as people write it."""
    return {
        "user_content": {"role": "user", "parts": [{"text": text}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": list(calls)},
    }


def evalset(name: str, cases: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return an evalset made from case ID → turns."""
    return {
        "eval_set_id": name,
        "eval_cases": [{"eval_id": eval_id, "conversation": turns} for eval_id, turns in cases.items()],
    }


@dataclass
class Project:
    """A folder with one plain-Python agent, `desk`, and its evalsets."""

    root: Path

    def agent(self, source: str, name: str = "desk") -> None:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("from . import agent\n")
        (folder / "agent.py").write_text(source)

    def write(self, relative: str, content: Any) -> Path:
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def cases(self, *messages: str, **criteria: Any) -> None:
        """Write `desk/all.evalset.json` with one case for each message, named like it. It expects the answer "ok"."""
        self.write("desk/all.evalset.json", evalset("all", {text: [turn(text, "ok")] for text in messages}))
        self.write("desk/test_config.json", {"criteria": criteria or {"response_match_score": 1.0}})

    def plan(self, options: RunOptions | None = None, *targets: Target) -> Plan:
        selection = Selection(targets or (Target(str(self.root), self.root),))
        workspace = open_selection(selection, folder=self.root)
        return make_plan(workspace, selection, options or RunOptions())


@dataclass
class Outcome:
    """The events of a run in order, and a store that has applied them."""

    events: list[Event] = field(default_factory=list)
    store: Store = field(default_factory=Store)
    watchers: list[Callable[[Event], None]] = field(default_factory=list)

    def take(self, event: Event) -> None:
        self.events.append(event)
        self.store.apply(event)
        for watcher in self.watchers:
            watcher(event)

    def record(self, eval_id: str, repeat: int = 1) -> CaseRecord:
        known = self.store.records.items()
        return next(read_details(record) for ref, record in known if (ref.eval_id, ref.repeat) == (eval_id, repeat))

    def ref(self, eval_id: str) -> CaseRef:
        return self.record(eval_id).ref

    @property
    def states(self) -> dict[str, str]:
        return {ref.eval_id: record.state for ref, record in self.store.records.items()}

    def error(self, eval_id: str) -> tuple[str, str]:
        error = self.record(eval_id).error
        assert error is not None, f"{eval_id} has no error"
        return error.kind, error.message

    def answer(self, eval_id: str) -> str:
        actual = self.record(eval_id).turns[0].actual
        assert actual is not None
        parts = actual["final_response"]["parts"]
        return "".join(part.get("text", "") for part in parts)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notices(self) -> list[str]:
        return [event.message for event in self.of(Noticed)]


async def execute(
    plan: Plan,
    children: Children,
    options: RunOptions | None = None,
    writer: RunWriter | None = None,
    outcome: Outcome | None = None,
) -> Outcome:
    """Run a plan to its end."""
    outcome = outcome or Outcome()
    await Run(replace(plan, options=options or plan.options), outcome.take, children, writer).execute()
    return outcome

"""Opening the overview of 10,000 verdicts, and a new verdict during a run: `python -m benchmarks.overview [--cases N]`.

CPU milliseconds from the verdicts to the lines of a screen of 120 × 40, without Textual's own work. One case in five
fails, for 200 causes. Opening counts everything from nothing; the others are what a frame needs afterwards. Folding is
what the tree does with the passed cases at the end of a run, with the first drawing of the rows that stand for them.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import figures
from workbench.events.events import CaseRef, MetricResult, PlannedCase, Usage
from workbench.results.overview import overview_document
from workbench.store.execution import Execution, short_score
from workbench.store.reasons import make_cause
from workbench.store.store import RunSummary
from workbench.ui.screen.overview_contents import Showing
from workbench.ui.screen.sides import Right
from workbench.ui.session.session import Session
from workbench.ui.tree.labels import Labels
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import ALL, Row
from workbench.ui.tree.query import parse_query
from workbench.ui.tree.scope import Scope, scope_at

OPEN_GOAL, AGAIN_GOAL, LINEAR_GOAL = 50.0, 16.0, 5.0
_WIDTH, _HEIGHT = 46, 36
_PER_FILE = 2_500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    cases = parser.parse_args().cases
    times = {number: _times(number) for number in (cases // 4, cases)}
    goals = dict.fromkeys(("opening", "a filter", "folding"), OPEN_GOAL)
    goals |= dict.fromkeys(("the same row again", "a new verdict", "a new verdict with a filter"), AGAIN_GOAL)
    for name, goal in goals.items():
        _figure(f"{name}, {cases:,} verdicts", times[cases][name], "ms", goal)
    for name in ("opening", "folding"):
        _figure(f"{name}: four times as many", times[cases][name] / times[cases // 4][name], "x", LINEAR_GOAL)


def _times(cases: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        session, tree = _session(Path(folder), cases)
        contents: list[Showing] = []
        right = Right()

        def draw(scope: Scope, made: Showing) -> None:
            document = overview_document(made.overview(scope), _WIDTH)
            assert document.lines[:_HEIGHT]

        def opened() -> None:
            contents[:] = [Showing(session, tree, right, right.set_timer)]
            draw(scope_at(tree, ALL), contents[0])

        def after_verdict() -> None:
            tree.verdicts.versions[0] += 1
            draw(scope_at(tree, ALL), contents[0])

        found = {"opening": _milliseconds(opened)}
        found["folding"] = _milliseconds(lambda: _fold(tree))
        found["the same row again"] = _milliseconds(lambda: draw(scope_at(tree, ALL), contents[0]))
        found["a new verdict"] = _milliseconds(after_verdict)
        tree.set_query(parse_query(":fail"))
        found["a filter"] = _milliseconds(opened)
        found["a new verdict with a filter"] = _milliseconds(after_verdict)
        return found


def _fold(tree: Tree) -> None:
    """Fold the passed cases of all evalsets anew, and draw all rows that stand for them."""
    for evalset in range(len(tree.entries)):
        tree.verdicts.versions[evalset] += 1
    tree.outline.folds.clear()
    tree.arrange_again()
    labels, folds = Labels(tree, lambda: 0.0), tree.outline.folds
    assert len(folds) == len(tree.entries)
    for evalset in folds:
        labels.pieces(Row("passed", tree.outline.group_of[evalset], evalset), _WIDTH)


def _session(folder: Path, cases: int) -> tuple[Session, Tree]:
    """Return a session with verdicts as they are after the workbench opened."""
    (folder / "shop").mkdir()
    (folder / "shop" / "agent.py").write_text("def root_agent(message, session):\n    return 'ok'\n", encoding="utf-8")
    for first in range(0, cases, _PER_FILE):
        turn = {"invocation_id": "one", "user_content": {"role": "user", "parts": [{"text": "Hello"}]}}
        numbers = range(first, min(first + _PER_FILE, cases))
        listed = [{"eval_id": f"case_{number:06}", "conversation": [turn]} for number in numbers]
        data = {"eval_set_id": f"set_{first}", "name": "many", "eval_cases": listed}
        (folder / "shop" / f"set_{first}.evalset.json").write_text(json.dumps(data), encoding="utf-8")
    session = Session(folder)
    workspace = session.read()
    session.set_workspace(workspace)
    tree = Tree(session.verdicts)
    tree.load(workspace)
    records = {}
    for entry in workspace.evalsets:
        for number, case in enumerate(entry.document.cases):
            record = _record(CaseRef("shop", entry.relative, entry.document.eval_set_id, case.eval_id), number)
            records[record.ref] = record
    session.store.restore(RunSummary("run-1"), list(records), records)
    session.verdicts.add(records)
    return session, tree


def _record(ref: CaseRef, number: int) -> Execution:
    fails = number % 5 == 0
    scores: dict[str, MetricResult] = {
        "tool_trajectory_avg_score": short_score(
            "tool_trajectory_avg_score", "failed" if fails else "passed", 0.0 if fails else 1.0, 1.0, ()
        ),
        "response_match_score": short_score("response_match_score", "passed", 1 - number % 150 / 1000, 0.8, ()),
        "safety_v1": short_score("safety_v1", "passed", 1.0, 0.8, (("model", "judge-1"), ("kind", "model"))),
    }
    record = Execution(PlannedCase(ref, None, ""), "failed" if fails else "passed", scores=scores)
    record.duration_seconds, record.usage = number % 97 / 10, Usage(2)
    record.cause = make_cause("calls", f"cause {number % 200}") if fails else None
    return record


def _milliseconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(7):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return statistics.median(taken) * 1000


def _figure(name: str, value: float, unit: str, goal: float) -> None:
    figures.record("overview", name, value, unit, goal=goal)
    print(f"{name:40} {value:8.2f} {unit}{'  MISSED' if value > goal else ''}", flush=True)


if __name__ == "__main__":
    main()

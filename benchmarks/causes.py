"""Causes of 10,000 failing cases: finding them, grouping them, and filtering by one of them.

    python -m benchmarks.causes [--cases 10000]

Finding is measured for each case, from the results of two criteria. Grouping and filtering take milliseconds for all
cases, and must be linear: four times as many cases take at most seven times as long. It is more than four, because
they do not fit into the processor's cache. Quadratic work would take sixteen times as long.
"""

import argparse
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from benchmarks import figures
from workbench.criteria.base import ScoreRequest
from workbench.criteria.registry import case_cause, score
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.store.reasons import Cause, make_cause
from workbench.store.store import Store
from workbench.ui.screen.overview_contents import Figures
from workbench.ui.tree.query import arrange, parse_query
from workbench.ui.tree.scope import scope_of
from workbench.ui.tree.verdicts import CaseVerdict, Verdicts

GROUP_GOAL, FILTER_GOAL, LINEAR_GOAL, FIND_GOAL = 25.0, 50.0, 7.0, 0.3
KINDS = 200
"""Number of distinct causes; a twentieth of the cases have one of their own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    cases = parser.parse_args().cases
    _figure("finding the cause of a case", _find(min(cases, 2_000)), "ms", FIND_GOAL)
    for name, measured, goal in (("grouping", _group, GROUP_GOAL), ("filtering", _filter, FILTER_GOAL)):
        some, many = measured(cases), measured(4 * cases)
        _figure(f"{name} {cases:,} failing cases by cause", some, "ms", goal)
        _figure(f"{name}: four times as many cases", many / some, "x", LINEAR_GOAL)


def _find(cases: int) -> float:
    """Return the milliseconds for one case."""
    scored = [_scored(number) for number in range(cases)]
    return _milliseconds(lambda: [case_cause("failed", None, one) for one in scored]) / cases


def _scored(number: int) -> list[tuple[MetricResult, tuple[MetricResult, ...]]]:
    """Return the results of a case of two turns that fails for its calls (every other case) or its answer."""
    answer = f"Your parcel for order A-{number} arrives on {number % 28 + 1} November, after 9:30."
    turns = _turn(answer, 12.5), _turn(answer, number)
    other = _turn("Your parcel is on its way and will reach you soon.", str(number) if number % 2 else number)
    criteria = Criterion("tool_trajectory_avg_score", 1.0, 1.0, {}), Criterion("response_match_score", 0.9, 0.9, {})
    found = [score(ScoreRequest(criterion, turns, (turns[0], other))) for criterion in criteria]
    return [(one.result, one.turns) for one in found]


def _turn(answer: str, amount: object) -> dict[str, Any]:
    uses = [{"name": "refund", "args": {"id": "A-7", "amount": amount}}]
    return {"final_response": {"parts": [{"text": answer}]}, "intermediate_data": {"tool_uses": uses}}


def _group(cases: int) -> float:
    verdicts = _verdicts(cases)
    return _milliseconds(lambda: Figures(verdicts).groups(scope_of((0, case) for case in range(cases))))


def _filter(cases: int) -> float:
    verdicts = _verdicts(cases)
    document = SimpleNamespace(cases=range(cases), eval_set_id="s")
    entries: Any = [SimpleNamespace(agent=None, relative="s", document=document)]
    query = parse_query("cause:cause-7 cause:one-of-a-kind")
    return _milliseconds(lambda: arrange(entries, verdicts, query))


def _verdicts(cases: int) -> Verdicts:
    """Return the verdicts of failing cases, without all that has nothing to do with causes."""
    verdicts, records = Verdicts(Store()), {}
    for number in range(cases):
        ref: Any = number
        records[ref] = SimpleNamespace(cause=_cause(number))
        verdicts.by_case[0, number] = CaseVerdict((ref,), ref, "failed")
    verdicts.store.records = records  # type: ignore[assignment]
    verdicts.versions = [1]
    return verdicts


def _cause(number: int) -> Cause:
    own = number % 20 == 0
    return make_cause("calls", f"own cause {number}" if own else f"cause {number % KINDS}")


def _milliseconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(15):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken) * 1000


def _figure(name: str, value: float, unit: str, goal: float) -> None:
    figures.record("causes", name, value, unit, goal=goal)
    print(f"{name:60} {value:8.3f} {unit}{'  MISSED' if value > goal else ''}", flush=True)


if __name__ == "__main__":
    main()

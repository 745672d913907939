"""One vote per case: its outcome in a run, used to compare runs.

The vote is the share of executions that passed, of those that count (`store.rates.counts`). So 44 repeats of one
case weigh as much as 3 of another. A case has no vote if none of its executions passed or failed: errors stand outside
of every pass rate and are counted beside it. Executions with injected faults do not count.

Two runs, or a run and a set of cases, are comparable if at least half of the wanted cases have a vote in both. A frozen
execution says nothing about a live one, so each way of running a case has its own vote.
"""

from collections.abc import Collection, Iterable
from typing import TypeAlias

from workbench.events.events import CaseName, Frozen
from workbench.store.execution import Execution
from workbench.store.rates import counts

Case: TypeAlias = tuple[str, ...]
"""A case: its evalset's path relative to the root, and its ID. If it was replayed, the mode follows: `tools` or `all`.

ADK's results do not name the path; the evalset's ID is used instead.
"""


def case_key(file: str, eval_id: str, frozen: Frozen | None) -> Case:
    """Return the key of a case's executions that were replayed in the same way."""
    return (file, eval_id) if frozen is None else (file, eval_id, frozen.mode)


def case_votes(executions: Iterable[Execution]) -> dict[Case, float]:
    """Return the vote of each case that has one, from 0 (never passed) to 1 (always passed)."""
    passed: dict[Case, int] = {}
    counted: dict[Case, int] = {}
    decided: set[Case] = set()
    for one in executions:
        if one.decides_case and counts(one.state, one.error):
            case = case_key(one.ref.evalset_file or one.ref.eval_set_id, one.ref.eval_id, one.frozen)
            counted[case] = counted.get(case, 0) + 1
            passed[case] = passed.get(case, 0) + (one.state == "passed")
            if one.state in ("passed", "failed"):
                decided.add(case)
    return {case: passed[case] / total for case, total in counted.items() if case in decided}


def are_enough(shared: Collection[Case], wanted: Collection[Case]) -> bool:
    """Return whether the shared cases are at least one, and at least half of the wanted cases."""
    return bool(shared) and 2 * len(shared) >= len(wanted)


def case_keys(names: Iterable[CaseName], records: Iterable[Execution]) -> set[Case]:
    """Return the keys under which past runs have comparable votes for these cases.

    A case whose verdict among `records` is frozen is compared with frozen ones. Others are compared with live ones.
    """
    frozen = {record.ref.name: record.frozen for record in records if record.frozen is not None}
    return {case_key(*name, frozen.get(name)) for name in names}

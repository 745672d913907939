"""Plans that inject a fault into each execution: each tool of each case, in each way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from workbench.counting import counted
from workbench.engine.plan.plan import FaultJudging, Plan, PlanEntry
from workbench.engine.plan.run_options import UsageFaultError
from workbench.events import CaseName, Noticed
from workbench.injection.fault_question import fault_question
from workbench.injection.matrix import faults_of


def matrix_of(plan: Plan, tools: Mapping[CaseName, Sequence[str]], raised: int = 0) -> Plan:
    """Return the plan for the matrix of tool faults. Entries that cannot start stay as they are.

    `tools` are the tools that each case calls. `raised` cases ended in an error before they called one. No
    criteria are scored: a recovery has other calls and other words.

    Raises:
        UsageFaultError: no case calls a tool.
    """
    entries = tuple(variants_of(plan, tools))
    if not entries:
        why = f"; {counted(raised, 'case')} ended in an error before any" if raised else ""
        raise UsageFaultError(f"no case calls a tool, so none can fail{why}", "", "nothing")
    without = sum(entry.blocked is None and not tools.get(entry.ref.name) for entry in plan.entries) - raised
    notices = plan.notices
    if raised:
        ended = (
            "ended in an error before any tool and is left out"
            if raised == 1
            else ("ended in an error before any tool and are left out")
        )
        notices = (*notices, Noticed("warning", f"{counted(raised, 'case')} {ended}"))
    if without:
        calls = "calls no tool and is left out" if without == 1 else "call no tool and are left out"
        notices = (*notices, Noticed("info", f"{counted(without, 'case')} {calls}"))
    return replace(plan, entries=entries, notices=notices)


def variants_of(plan: Plan, tools: Mapping[CaseName, Sequence[str]]) -> Iterator[PlanEntry]:
    """Yield the entries of the matrix. Cases without tools have none."""
    return (variant for entry in plan.entries for variant in _variants(entry, tools))


def _variants(entry: PlanEntry, tools: Mapping[CaseName, Sequence[str]]) -> Iterator[PlanEntry]:
    if entry.blocked is not None:
        yield entry
        return
    config = entry.config
    unscored = replace(config, criteria=())
    for number, fault in enumerate(faults_of(tools.get(entry.ref.name, ())), 1):
        planned = replace(entry.planned, case=replace(entry.ref, repeat=number), fault=fault)
        judging = FaultJudging(fault_question(fault, config), config)
        yield replace(entry, planned=planned, config=unscored, judging=judging)

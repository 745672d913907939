"""A plan executed for a test: no progress, no history, only what came of it."""

from collections.abc import Callable
from pathlib import Path

from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import Plan
from workbench.engine.processes.agent_host import AgentHost
from workbench.engine.processes.children import Children
from workbench.engine.run.run import Run
from workbench.history.state_dir import judge_cache_dir, state_dir
from workbench.store import Store
from workbench.testing.explanation import notice_line
from workbench.testing.results import Evaluation, evaluation


async def execute(
    plan: Plan, options: RunOptions, children: Children, make_host: Callable[..., AgentHost] = AgentHost
) -> Evaluation:
    """Runs the plan. Tests write nothing into the project: only where it has a `.workbench` already are the answers of
    judges taken from there and kept there."""
    state = state_dir(plan.root)
    cache: Path | None = judge_cache_dir(state) if state.is_dir() else None
    store = Store()
    await Run(plan, options, store.apply, children, None, cache, make_host).execute()
    return evaluation(store, tuple(notice_line(notice) for notice in store.notices if not notice.forecast))

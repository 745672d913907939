"""A plan executed for a test: no progress, no history, only what came of it."""

from workbench.engine.plan.plan import Plan
from workbench.project.project import Project
from workbench.store import Store
from workbench.testing.explanation import notice_line
from workbench.testing.results import Evaluation, evaluation


async def execute(project: Project, plan: Plan) -> Evaluation:
    """Run the plan, and return the outcome of this run only."""
    store = Store()
    await project.run(plan, store.apply).execute()
    return evaluation(store, tuple(notice_line(notice) for notice in store.notices if not notice.forecast))

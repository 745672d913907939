"""The executions of a matrix of tool faults: of one that runs, or of a stored one."""

from collections.abc import Callable
from dataclasses import dataclass, field

from workbench.events.events import Noticed, RunStarted
from workbench.store.execution import Execution
from workbench.store.history.summary import Summary
from workbench.store.store import OpenRun, RunSummary, Store
from workbench.ui.running.run_thread import Refused
from workbench.ui.running.side_run import SideRun
from workbench.ui.session.run_labels import ended_in


@dataclass(slots=True)
class Matrix:
    """The executions with their outcomes. Without `link`, nothing runs.

    `writers` are those of the runs of this session.
    """

    store: Store = field(default_factory=Store)
    link: SideRun | None = None
    writers: dict[str, OpenRun] = field(default_factory=dict)
    refused: Refused | None = None
    warning: Noticed | None = None
    """The first warning of the run."""

    @property
    def records(self) -> list[Execution]:
        """The executions in the order of the plan."""
        return list(self.store.current_records())

    @property
    def going(self) -> bool:
        """Whether executions may still run."""
        return self.link is not None and not self.link.over

    def start(self, start: Callable[[Callable[[], None]], SideRun], wake: Callable[[], None]) -> None:
        """Start the run. `wake` is called from the run's thread when there is news."""
        self.link = start(wake)

    def take(self) -> bool:
        """Take the news of the run. Return whether there was any."""
        news = self.link.take() if self.link is not None else []
        for event in news:
            if isinstance(event, Refused):
                self.refused = event
                continue
            self.store.apply(event)
            if isinstance(event, RunStarted) and event.run_id in self.writers:
                # Details of executions that have ended can then leave memory.
                self.store.writers[event.run_id] = self.writers[event.run_id]
            elif isinstance(event, Noticed) and event.level != "info" and self.warning is None:
                self.warning = event
        return bool(news)


def stored_matrix(summary: Summary) -> Matrix:
    """Return the matrix of a stored run."""
    store = Store()
    every = summary.executions.items()
    records = {ref: ended_in(summary, one) for ref, one in every if one.planned.fault is not None}
    run = RunSummary(summary.run_id, summary.root, summary.started, interrupted=summary.interrupted, has_faults=True)
    store.restore(run, list(records), records)
    return Matrix(store)

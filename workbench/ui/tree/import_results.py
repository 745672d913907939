"""Results of the latest import of each agent, by a run or a trial import."""

from workbench.events.events import CaseError

_KINDS = ("import_failed", "no_framework")


class ImportResults:
    """Import results by agent name. `failed` has the errors, `imported` the agents without one."""

    def __init__(self) -> None:
        self.failed: dict[str, CaseError] = {}
        self.imported: set[str] = set()

    def add(self, agent: str, error: CaseError | None) -> None:
        """Add the result of an import."""
        if error is None:
            self.failed.pop(agent, None)
            self.imported.add(agent)
        else:
            self.failed[agent] = error
            self.imported.discard(agent)

    def add_case(self, agent: str, error: CaseError | None) -> None:
        """Record what a finished case shows about its agent's import.

        A case without an error shows that its agent was imported.
        """
        if error is not None and error.kind in _KINDS:
            self.add(agent, error)
        elif error is None and agent in self.failed:
            self.add(agent, None)

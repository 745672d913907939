"""Which agents could be imported when that was tried last, by a run or by a trial import."""

from workbench.events import CaseError

_KINDS = ("import_failed", "no_framework")


class ImportBook:
    """`failed` holds what kept an agent from being imported, by its name; `imported` the agents that could be."""

    def __init__(self) -> None:
        self.failed: dict[str, CaseError] = {}
        self.imported: set[str] = set()

    def take(self, agent: str, error: CaseError | None) -> None:
        """Take in the outcome of an import."""
        if error is None:
            self.failed.pop(agent, None)
            self.imported.add(agent)
        else:
            self.failed[agent] = error
            self.imported.discard(agent)

    def learn(self, agent: str, error: CaseError | None) -> None:
        """Learn from the end of a case, and from its error, if it had one: a case that was scored was imported."""
        if error is not None and error.kind in _KINDS:
            self.take(agent, error)
        elif error is None and agent in self.failed:
            self.take(agent, None)

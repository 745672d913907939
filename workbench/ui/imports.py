"""Which agents could be imported when that was tried last, by a run or by a trial import."""

from workbench.events import CaseError
from workbench.store import CaseRecord

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

    def learn_of(self, record: CaseRecord) -> None:
        """Learn the same from a record. Its error is read from the journal only if it is the first of its
        agent that says something of an import."""
        brief = record.brief_error
        tells = brief is not None and brief.kind in _KINDS and record.ref.agent not in self.failed
        if tells or brief is None or brief.kind not in _KINDS:
            self.learn(record.ref.agent, record.error if tells else brief)

    def learn(self, agent: str, error: CaseError | None) -> None:
        """Learn from the end of a case, and from its error, if it had one: a case that was scored was imported."""
        if error is not None and error.kind in _KINDS:
            self.take(agent, error)
        elif error is None and agent in self.failed:
            self.take(agent, None)

"""Outcome of an evaluation, as values for a test.

Reasons use the texts of the other front ends, so that they do not diverge.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.events.events import CaseError, CaseStatus, Frozen, MetricResult
from workbench.results.explain import criteria_and_source, error_hints, reasons
from workbench.results.faces import FACES
from workbench.results.panes import plain_case
from workbench.results.plain_lines import case_line
from workbench.results.repeat_texts import sentence
from workbench.results.repeats import CaseRepeats, summarize_all
from workbench.store.execution import CaseRecord, Turn
from workbench.store.reasons import is_without_model, judged_by
from workbench.store.store import Store
from workbench.text.counting import counted_status
from workbench.text.safe_text import one_line, plain

_EXPLAINED = 20


@dataclass(frozen=True)
class CaseOutcome:
    """One execution of one case.

    - `metrics`: results by criterion, scores not rounded.
    - `reason`: one line; "" if the case passed.
    - `explanation`: the whole verdict as text; "" if the case passed.
    - `turns`: user message, agent's turn and metrics of each turn.
    - `expected`: the reference, an ADK invocation per turn. None for a scenario.
    - `details`: the case as text.
    - `output`: the end of the agent's output by stream. Empty if the agent was given as an object.
    """

    agent: str
    evalset_file: str
    eval_set_id: str
    eval_id: str
    repeat: int
    status: CaseStatus
    reason: str
    error: CaseError | None
    metrics: dict[str, MetricResult]
    turns: tuple[Turn, ...] = field(repr=False)
    expected: tuple[dict[str, Any], ...] | None = field(repr=False)
    duration_seconds: float
    summary: str = field(repr=False)
    explanation: str = field(repr=False)
    details: str = field(repr=False)
    output: dict[str, str] = field(default_factory=dict, repr=False)
    matched_by: str = ""
    """The rule that found the agent: `folder`, `app_name`, `choice`, `location` or `given`; "" without agent."""
    frozen: Frozen | None = None
    """The replay of the case from its recording, or None if its calls were live."""

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.status == "passed"

    @property
    def invocations(self) -> tuple[dict[str, Any], ...]:
        """The agent's completed turns as ADK invocations."""
        return tuple(turn.actual for turn in self.turns if turn.actual is not None)

    @property
    def scores(self) -> dict[str, float | None]:
        """The score of each criterion, or None if it has no score."""
        return {name: result.score for name, result in self.metrics.items()}

    @property
    def judged_by_function(self) -> list[str]:
        """The criteria judged by a function and not by a language model."""
        return [name for name, result in self.metrics.items() if is_without_model(judged_by(result.details))]

    @property
    def reasons(self) -> dict[str, str]:
        """The reason of each criterion, or "" if it has none."""
        return {name: result.reason for name, result in self.metrics.items()}


@dataclass(frozen=True)
class Evaluation:
    """All executions of an evaluation, in order. `notices` are warnings and other remarks of the run, as text."""

    cases: tuple[CaseOutcome, ...]
    notices: tuple[str, ...] = ()
    repeats: tuple[CaseRepeats, ...] = ()
    """The executions of each case taken together, for cases that were repeated and in runs with `until_sure`.

    They have `rate` with its interval, `pass_hat(k)`, `flaky` and `kind` (the cause of the variation).
    """

    def __iter__(self) -> Iterator[CaseOutcome]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def passed(self) -> bool:
        """Whether there are cases, and every execution passed."""
        return bool(self.cases) and all(case.passed for case in self.cases)

    @property
    def statuses(self) -> dict[str, CaseStatus]:
        """The status of each case ID: the worst one of all executions, also of equal IDs in several files."""
        found: dict[str, CaseStatus] = {}
        for case in self.cases:
            known = found.get(case.eval_id)
            if known is None or FACES[case.status].rank < FACES[known].rank:
                found[case.eval_id] = case.status
        return found

    def case(self, eval_id: str, repeat: int = 1) -> CaseOutcome:
        """Return the first case with that ID. Raise KeyError if there is no such case."""
        for case in self.cases:
            if (case.eval_id, case.repeat) == (eval_id, repeat):
                return case
        raise KeyError(eval_id)

    def repeats_of(self, eval_id: str) -> CaseRepeats:
        """Return the executions of the first case with that ID, taken together.

        Raises:
            KeyError: there is no such case, or it was executed only once, without `until_sure`.
        """
        for case in self.repeats:
            if case.ref.eval_id == eval_id:
                return case
        raise KeyError(eval_id)

    def assert_passed(self) -> None:
        """Raise AssertionError with the explanation of each execution that did not pass.

        Also raise it if nothing ran or a case could not be evaluated: neither proves that the agent works.
        """
        __tracebackhide__ = True
        if not self.passed:
            raise AssertionError(self.explanation())

    def explanation(self) -> str:
        """Return a text that says why not all cases passed, or "" if they did."""
        if self.passed:
            return ""
        wrong = [case for case in self.cases if not case.passed]
        if not wrong:
            return "no case was evaluated"
        counts = Counter(case.status for case in self.cases)
        figures = ", ".join(counted_status(status, number) for status, number in counts.items())
        parts = [f"{len(wrong)} of {len(self.cases)} did not pass ({figures})"]
        parts += [
            f"{one_line(case.ref.label)}: {sentence(case)}"
            for case in self.repeats
            if case.rate.passed < case.rate.total
        ]
        parts += [f"{case.summary}\n{case.explanation}" for case in wrong[:_EXPLAINED]]
        parts += [case.summary for case in wrong[_EXPLAINED:]]
        return "\n\n".join(parts)


def evaluation(store: Store, notices: tuple[str, ...]) -> Evaluation:
    """Return the outcome of the store's newest run."""
    cases = tuple(
        CaseOutcome(
            agent=record.ref.agent,
            evalset_file=record.ref.evalset_file,
            eval_set_id=record.ref.eval_set_id,
            eval_id=record.ref.eval_id,
            repeat=record.ref.repeat,
            status=record.status,
            reason=_reason(record),
            error=record.error,
            metrics=dict(record.metrics),
            turns=tuple(record.turns),
            expected=record.expected,
            duration_seconds=record.duration_seconds,
            summary=case_line(record),
            explanation=_explanation(record, store.run.root),
            details=_details(record),
            output={stream: plain(text[-_OUTPUT_SHOWN:]) for stream, text in record.output.items() if text},
            matched_by=record.planned.matched_by,
            frozen=record.frozen,
        )
        for record in store.read_current()
    )
    return Evaluation(cases, notices, tuple(summarize_all(store.current_records(), store.run.until_sure)))


_WIDTH = 72
"""Columns. Terminals and CI logs have 80, and pytest indents each line of an AssertionError by 8."""
_OUTPUT_SHOWN = 20_000


def _reason(record: CaseRecord) -> str:
    return "" if record.state == "passed" else "; ".join(reasons(record)) or "no criterion applied"


def _explanation(record: CaseRecord, root: str) -> str:
    """Return the reasons, the criteria and the whole case, or "" if it passed.

    The text is safe for a terminal. Paths in it are relative to `root`.
    """
    if record.state == "passed":
        return ""
    lines = reasons(record) or ["no criterion applied"]
    if record.error is not None:
        lines += error_hints(record.error, root)
    criteria = criteria_and_source(record)
    return "\n".join([*lines, *([f"criteria: {criteria}"] if criteria else []), "", _details(record)])


def _details(record: CaseRecord) -> str:
    return "\n".join(plain_case(record, _WIDTH))

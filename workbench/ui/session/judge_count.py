"""Judge calls of the newest run, counted from events, and their text in the bar."""

import math
from collections.abc import Iterable

from workbench.events.events import CaseFinished, CaseRef, Event, JudgeWaits, MetricScored, RunStarted, UserSimulated
from workbench.files.prices import Prices, criterion_cost, money, simulation_cost, total
from workbench.results.judged import count, is_function
from workbench.text.counting import counted
from workbench.text.json_values import mapping
from workbench.text.safe_text import one_line


class JudgeCount:
    """Judge calls of the run so far.

    `calls` and `cached` count calls. `by_function` says whether a function judged anything. With `prices`, the text
    has the cost too.
    """

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices or Prices()
        self._costs: list[float | None] = []
        self.calls = 0
        self.cached = 0
        self.by_function = False
        self.simulated = 0
        self.simulated_cached = 0
        self._cases: dict[CaseRef, tuple[int, int]] = {}
        self._of_user: dict[CaseRef, tuple[int, int]] = {}
        """Calls of the simulated user of each case, which its usage includes."""
        self._rescoring = False

    def apply(self, event: Event) -> None:
        """Count an event. The count of a finished case replaces that of its criteria."""
        match event:
            case RunStarted():
                self.clear()
                self._rescoring = bool(event.scored_from)
            case MetricScored():
                self.by_function = self.by_function or is_function(event.result)
                tally = mapping(event.result.details.get("tally"))
                calls, cached = self._cases.get(event.case, (0, 0))
                self._set(event.case, calls + count(tally.get("calls")), cached + count(tally.get("cached")))
                if count(tally.get("calls")):
                    self._costs.append(criterion_cost(event.result, self._prices))
            case UserSimulated():
                self._costs.append(simulation_cost([event], self._prices))
                self._count_user(event)
            case CaseFinished():
                calls, cached = self._of_user.pop(event.case, (0, 0))
                usage = event.usage
                self._set(event.case, max(0, usage.judge_calls - calls), max(0, usage.judge_calls_cached - cached))

    def clear(self) -> None:
        """Forget the run, because another one is shown."""
        self.calls = self.cached = 0
        self.simulated = self.simulated_cached = 0
        self.by_function = False
        self._cases.clear()
        self._of_user.clear()
        self._costs.clear()

    def _count_user(self, event: UserSimulated) -> None:
        """Count the calls for a message of a simulated user. Scoring again makes none."""
        # Imported here, because the first frame does not need it.
        from workbench.judges.base import question_usage

        usage = question_usage(event.question)
        if self._rescoring or not (usage.judge_calls or usage.judge_calls_cached):
            return
        calls, cached = self._of_user.get(event.case, (0, 0))
        self._of_user[event.case] = calls + usage.judge_calls, cached + usage.judge_calls_cached
        self.simulated += usage.judge_calls
        self.simulated_cached += usage.judge_calls_cached

    def _set(self, case: CaseRef, calls: int, cached: int) -> None:
        before = self._cases.get(case, (0, 0))
        self._cases[case] = (calls, cached)
        self.calls += calls - before[0]
        self.cached += cached - before[1]

    @property
    def text(self) -> str:
        """Text such as `12 judge calls, 3 cached, 6 simulator calls, 0.0054 EUR`, or "" without any calls.

        The cost is left out if it is not known.
        """
        judges = _calls(self.calls, self.cached, "judge call")
        text = ", ".join(filter(None, [judges, _calls(self.simulated, self.simulated_cached, "simulator call")]))
        if not text:
            return ""
        cost = total(self._costs) if self._prices else None
        return text if cost is None else f"{text}, {money(cost, self._prices.currency)}"


def _calls(calls: int, cached: int, noun: str) -> str:
    return counted(calls, noun) + (f", {cached:,} cached" if cached else "") if calls or cached else ""


def wait_text(waits: Iterable[JudgeWaits], elapsed: float) -> tuple[str, str]:
    """Return the longest judge wait as `gemini-2.5-flash waits 12 s: quota`, and a short form, or two "".

    `elapsed` counts seconds since the run started, like `JudgeWaits.at`.
    """
    left = sorted(((wait.at + wait.seconds - elapsed, wait) for wait in waits), key=lambda pair: -pair[0])
    if not left or left[0][0] <= 0:
        return "", ""
    seconds, wait = left[0]
    more = sum(rest > 0 for rest, _ in left) - 1
    name = one_line(wait.model, limit=60) or "a judge"
    reason = one_line(wait.reason, limit=60)
    short = f"waits {math.ceil(seconds)} s"
    return f"{name} {short}{f': {reason}' if reason else ''}{f', {more} more' if more else ''}", short

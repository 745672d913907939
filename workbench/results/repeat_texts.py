"""Texts about the repeats of a case, used by the screen, printed output and exports.

All of them are safe for a terminal.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.text.counting import exact_percent, percent
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    # The tree imports this module before the first frame.
    from workbench.results.repeats import CaseRepeats, Cause
    from workbench.store.rates import PassRate

CAUSES: "dict[Cause, str]" = {
    "agent": "agent", "judge": "judge", "both": "agent and judge", "unknown": "agent or judge"
}  # fmt: skip


def sentence(case: "CaseRepeats") -> str:
    """Return a one-line summary with remarks: `3/5 passed, 60% (23–89%), pass^5 0.00, FLAKY (agent)`."""
    return ", ".join(filter(None, [*figures(case), mark(case), *remarks(case)]))


def cells(case: "CaseRepeats") -> tuple[str, str, str, str, str]:
    """Return the parts of `sentence` for a table: passed, rate, pass^k, mark and remarks."""
    passed, rate, hat = (*figures(case), "", "")[:3]
    return passed.removesuffix(" passed"), rate, hat, mark(case), ", ".join(remarks(case))


def figures(case: "CaseRepeats") -> Iterator[str]:
    """Yield `3/5 passed`, `60% (23–89%)` and `pass^5 0.00`, or only `no verdict`."""
    rate = case.rate
    if not rate.total:
        yield "no verdict"
        return
    yield f"{rate.passed}/{rate.total} passed"
    yield f"{percent(rate.rate or 0.0)} ({interval(rate)})"
    yield f"pass^{rate.total} {share(case.pass_hat(rate.total) or 0.0)}"


def mark(case: "CaseRepeats") -> str:
    """Return `FLAKY (agent)` or `stable`, or "" if fewer than two repeats count."""
    if case.kind != "stable":
        return f"FLAKY ({CAUSES[case.kind]})"
    return "stable" if case.rate.total > 1 else ""


def remarks(case: "CaseRepeats") -> Iterator[str]:
    """Yield remarks on facts that the figures do not show."""
    if case.without_verdict and case.rate.total:
        yield f"{case.without_verdict} without a verdict"
    if case.cancelled:
        yield f"{case.cancelled} cancelled"
    for criterion in case.criteria:
        if criterion.spread:
            yield f"{one_line(criterion.name, limit=60)}: {spread(criterion.split, criterion.rejudged)}"
    if case.until is not None:
        yield sureness(case)


def spread(split: int, rejudged: int) -> str:
    """Return in how many repeats the judge disagreed with itself: `votes split in 2`, or "" if in none."""
    parts = [f"votes split in {split}"] if split else []
    parts += [f"same input judged differently in {rejudged}"] if rejudged else []
    return ", ".join(parts)


def sureness(case: "CaseRepeats") -> str:
    """Return whether the target is met: `sure that at least 90% pass`, or `not sure yet whether 90% pass`."""
    wanted = exact_percent(case.until or 0.0)
    words = {"above": f"sure that at least {wanted} pass", "below": f"sure that under {wanted} pass"}
    return words.get(case.sure or "", f"not sure yet whether {wanted} pass")


def interval(rate: "PassRate") -> str:
    """Return the 95% interval of the rate, with both ends rounded outwards: `23–89%`."""
    # 0.29 * 100 is slightly below 29, and 0.07 * 100 slightly above 7.
    return f"{math.floor(rate.low * 100 + 1e-9)}–{math.ceil(rate.high * 100 - 1e-9)}%"


def share(value: float) -> str:
    """Return a share with two decimals: `0.60`. Only exact values give `0.00` and `1.00`."""
    text = f"{value:.2f}"
    if text == "0.00" and value > 0:
        return "<0.01"
    return "0.99" if text == "1.00" and value < 1 else text

"""The figures of a comparison in words: rates, changes in points, verdicts, and what would have shown. Safe text."""

import math

from workbench.results.compare.gate import Drop, Gate
from workbench.results.statistics import ALPHA, Comparison
from workbench.text.counting import counted, counted_status, cut_to_tenths
from workbench.text.safe_text import one_line

_EXAMPLE = 0.05
"""The difference for which an unclear comparison says how many cases it needs."""


def rate_text(rate: float) -> str:
    """Return `71.1%`, cut and not rounded."""
    return f"{cut_to_tenths(rate * 100)}%"


def points_text(change: float) -> str:
    """Return `+7.2 points`."""
    return f"{change * 100:+.1f} points"


def change_text(found: Comparison) -> str:
    """Return `+7.2 points [+2.8, +11.9]`. The interval is rounded outwards."""
    low, high = math.floor(found.interval[0] * 1000) / 10, math.ceil(found.interval[1] * 1000) / 10
    return f"{points_text(found.change)} [{low:+.1f}, {high:+.1f}]"


def verdict_text(found: Comparison) -> str:
    """Return `better (p 0.004)`."""
    return f"{found.result} (p {probability(found.p)})"


def probability(p: float) -> str:
    """Return `0.004`, or `<0.001`. It is never rounded down to a limit such as 0.05."""
    return "<0.001" if p < 0.001 else f"{math.ceil(p * 1000 - 1e-9) / 1000:.3f}"


def chance_text(chance: float) -> str:
    """Return `chance alone: 5%`, or `chance alone: under 1%`."""
    return f"chance alone: {'under 1%' if chance < 0.01 else f'{round(chance * 100)}%'}"


def would_show_text(found: Comparison, *, alpha: float = ALPHA) -> str:
    """Return what an unclear comparison would have found, and how many cases a small difference needs."""
    if found.would_show is None:
        return f"{counted(found.cases, 'case')} cannot show any difference"
    # Rounded up: a smaller difference may not show.
    smallest = math.ceil(found.would_show * 100 - 1e-9)
    words = f"These {counted(found.cases, 'case')} show a difference of {counted(smallest, 'point')} or more"
    words += " in 8 of 10 tries"
    needed = found.cases_needed(_EXAMPLE, alpha=alpha)
    if needed is None or smallest <= _EXAMPLE * 100:
        return words
    return f"{words}; {_EXAMPLE * 100:.0f} points need about {counted(_rounded(needed), 'case')}"


def gate_text(gate: Gate) -> str:
    """Return the decision of a gate and its reasons in a sentence, without `passed` or `failed`."""
    rates, reasons = gate.rates, []
    if gate.new_errors:
        reasons.append(f"{counted(len(gate.new_errors), 'case')} with new errors")
    if rates.result == "worse":
        fell = points_text(-rates.change).removeprefix("+")
        reasons.append(f"the pass rate fell by {fell}, and chance does not explain it (p {probability(rates.p)})")
    elif gate.losses.found:
        p = gate.losses.drops_p if gate.losses.are_clear else min(drop.chance for drop in gate.drops)
        lost = len(gate.drops) if gate.losses.are_clear else len(gate.losses.clear)
        reasons.append(f"{counted(lost, 'case')} dropped farther than chance explains (p {probability(p)})")
    if reasons:
        return "; ".join(reasons)
    if not rates.cases:
        return "no case was judged in both runs"
    if rates.result == "better":
        return f"the pass rate rose by {points_text(rates.change).removeprefix('+')} (p {probability(rates.p)})"
    if not rates.better and not rates.worse:
        return f"{counted(rates.cases, 'case')} passed as often as before"
    return f"chance explains the difference of {points_text(rates.change)} (p {probability(rates.p)})"


def drop_text(drop: Drop) -> str:
    """Return `3/3 -> 1/3 passed (chance alone: 20%)`, and where a flaky case was seen to be flaky."""
    (passed, judged), (later, of_later) = drop.before, drop.after
    words = f"{passed}/{judged} -> {later}/{of_later} passed ({chance_text(drop.chance)})"
    return f"{words}, flaky: {one_line(drop.flaky)}" if drop.flaky else words


def left_out_text(found: Comparison) -> str:
    """Return `left out: 3 errors, 1 cancelled; 2 cases have nothing to compare`, or "" if nothing was left out."""
    parts = []
    if found.left_out:
        parts.append(", ".join(counted_status(status, number) for status, number in found.left_out.items()))
    if found.cases_left_out:
        have = "has" if found.cases_left_out == 1 else "have"
        parts.append(f"{counted(found.cases_left_out, 'case')} {have} nothing to compare")
    return f"left out: {'; '.join(parts)}" if parts else ""


def _rounded(number: int) -> int:
    """Return a number rounded up to two digits: more would promise too much."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return -(-number // unit) * unit

"""The figures of a comparison in words: rates, changes in points, verdicts, and what would have shown. Safe text."""

import math

from workbench.results.compare.gate import Drop, Gate
from workbench.results.statistics import Comparison
from workbench.text.counting import counted, counted_status
from workbench.text.safe_text import one_line

_CLOSE = 0.2
"""Below this p, there is a difference to see, although chance may explain it."""
_SMALL = 0.05
"""A difference of which an unclear comparison says how many cases would show it."""


def rate_text(rate: float | None) -> str:
    """Return `71.1%`, cut and not rounded, or `–` without a verdict."""
    return "–" if rate is None else f"{math.floor(rate * 1000 + 1e-6) / 10:.1f}%"


def change_text(found: Comparison) -> str:
    """Return `+7.2 points [+2.8,+11.9]`, or "" if no case can be compared. The interval is rounded outwards."""
    if not found.cases:
        return ""
    low, high = math.floor(found.interval[0] * 1000 + 1e-9) / 10, math.ceil(found.interval[1] * 1000 - 1e-9) / 10
    return f"{_signed(found.change * 100)} points [{_signed(low)},{_signed(high)}]"


def p_text(p: float) -> str:
    """Return how likely chance alone makes a difference as large: `p = 0.004`. It is never rounded down to a limit."""
    return "p < 0.001" if p < 0.001 else f"p = {math.ceil(p * 1000 - 1e-9) / 1000:.3f}"


def chance_text(chance: float) -> str:
    """Return `chance alone: 5%`, or `chance alone: under 1%`."""
    return f"chance alone: {'under 1%' if chance < 0.01 else f'{round(chance * 100)}%'}"


def compared_cases(found: Comparison) -> str:
    """Return `this case` or `these 60 cases`."""
    return "this case" if found.cases == 1 else f"these {counted(found.cases, 'case')}"


def unclear_text(found: Comparison) -> str:
    """Return what an unclear comparison would have found, and how many cases a small difference needs."""
    cases = compared_cases(found)
    text = f"{cases} show no difference."
    if found.p < _CLOSE:
        text = f"chance may explain what {cases} show ({p_text(found.p)})."
    if found.would_show is None:
        text += " They are too few to show any."
    else:
        text += f" They would show one of {_whole(found.would_show)} points or more in 8 of 10 tries"
        needed = found.cases_needed(_SMALL) if found.would_show > _SMALL else None
        text += (
            "."
            if needed is None
            else f"; for {_whole(_SMALL)} points you need about {counted(_about(needed), 'case')}."
        )
    if found.cases == 1:
        text = text.replace(" show ", " shows ", 1).replace("They are", "It is").replace("They ", "It ")
    return text


def gate_text(gate: Gate) -> str:
    """Return the decision of a gate and its reasons in a sentence, without `passed` or `failed`."""
    rates, reasons = gate.rates, []
    if gate.new_errors:
        reasons.append(f"{counted(len(gate.new_errors), 'case')} with new errors")
    if rates.result == "worse":
        fell = f"{-rates.change * 100:.1f} points"
        reasons.append(f"the pass rate fell by {fell}, and chance does not explain it ({p_text(rates.p)})")
    elif gate.losses.found:
        reasons.append(_lost_text(gate))
    if reasons:
        return "; ".join(reasons)
    if not rates.cases:
        return "no case was judged in both runs"
    if rates.result == "better":
        return f"the pass rate rose by {rates.change * 100:.1f} points ({p_text(rates.p)})"
    if not rates.better and not rates.worse:
        return f"{counted(rates.cases, 'case')} passed as often as before"
    return f"chance explains the difference of {_signed(rates.change * 100)} points ({p_text(rates.p)})"


def notes(gate: Gate) -> list[str]:
    """Return what the change of the pass rate does not say: clear drops, what would have shown, what is left out."""
    rates, found = gate.rates, []
    if gate.losses.found and rates.result != "worse":
        found.append(_lost_text(gate))
    elif rates.result == "unclear" and (rates.better or rates.worse):
        found.append(f"unclear: {unclear_text(rates)}")
    return [*found, *filter(None, [left_out_text(rates)])]


def _lost_text(gate: Gate) -> str:
    p = gate.losses.drops_p if gate.losses.are_clear else min(drop.chance for drop in gate.drops)
    lost = len(gate.drops) if gate.losses.are_clear else len(gate.losses.clear)
    return f"{counted(lost, 'case')} dropped farther than chance explains ({p_text(p)})"


def drop_text(drop: Drop, arrow: str = "->") -> str:
    """Return `3/3 -> 1/3 passed (chance alone: 20%)`, and where a flaky case was seen to be flaky."""
    (passed, judged), (later, of_later) = drop.before, drop.after
    words = f"{passed}/{judged} {arrow} {later}/{of_later} passed ({chance_text(drop.chance)})"
    return f"{words}, flaky: {one_line(drop.flaky)}" if drop.flaky else words


def left_out_text(found: Comparison) -> str:
    """Return `left out: 3 errors, 1 cancelled; 2 cases have no verdict on one side`, or "" if nothing was left out."""
    parts = []
    if found.left_out:
        parts.append(", ".join(counted_status(status, number) for status, number in found.left_out.items()))
    if found.cases_left_out:
        have = "has" if found.cases_left_out == 1 else "have"
        parts.append(f"{counted(found.cases_left_out, 'case')} {have} no verdict on one side")
    return f"left out: {'; '.join(parts)}" if parts else ""


def _signed(value: float) -> str:
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _whole(share: float) -> str:
    """Return points rounded up: a smaller difference may not show."""
    return f"{math.ceil(share * 100 - 1e-9)}"


def _about(number: int) -> int:
    """Return a number rounded up to two digits: more would promise too much."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return math.ceil(number / step) * step

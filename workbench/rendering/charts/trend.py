"""The trend of a pass rate as text, the same on the screen and in an exported page."""

import math

from workbench.counting import counted
from workbench.history.pass_rates import RunRate, Trend
from workbench.repeats.repeat_texts import percent


def trend_words(trend: Trend) -> str:
    """Return `12 runs of the same 60 cases  now 75 % (45 of 60)  best 80 %`, or the reason why there is no trend."""
    cases = counted(trend.wanted, "case")
    if not trend.is_comparable:
        if not trend.rates and not trend.left_out:
            return "no complete run of these cases is stored"
        few = f"; {counted(trend.left_out, 'run')} left out: under half of these cases" if trend.left_out else ""
        return f"nothing to compare: no two runs of the same cases{few}"
    last, best = trend.rates[-1], max(one.rate for one in trend.rates)
    same = f"{trend.cases:,} of {cases}" if trend.cases < trend.wanted else f"the same {cases.removeprefix('1 ')}"
    text = f"{counted(len(trend.rates), 'run')} of {same}  now {rate_words(last)}  best {percent(best)}"
    return f"{text}  {counted(trend.left_out, 'run')} left out: under half of these cases" if trend.left_out else text


def rate_words(one: RunRate) -> str:
    """Return `75 % (45 of 60)`. Cases that passed in some of their repeats count in tenths, which are cut."""
    return f"{percent(one.rate)} ({tenths(one.passed)} of {one.total:,})"


def tenths(value: float) -> str:
    """Return `45` or `44.6`, cut to one decimal place."""
    # A sum of thirds may be slightly below a whole number.
    cut = math.floor(value * 10 + 1e-6) / 10
    return f"{cut:,.0f}" if cut == int(cut) else f"{cut:,.1f}"

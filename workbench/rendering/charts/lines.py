"""Charts made of characters."""

from collections.abc import Callable, Iterator, Sequence

from workbench.execution import Execution
from workbench.history.pass_rates import Trend
from workbench.prices import money
from workbench.rendering.cells import cell_len, cut_name, fit_name
from workbench.rendering.charts.costs import NO_PRICES, Costs, not_known
from workbench.rendering.charts.figures import (
    BINS,
    STEPS,
    Scores,
    Share,
    most_expensive,
    most_tokens,
    scores,
    seconds_text,
    slowest,
)
from workbench.rendering.charts.trend import tenths, trend_words
from workbench.rendering.lines import BLANK, Line, Segment, cut_line, hang, heading, wrap
from workbench.scores import compared, cut_score
from workbench.text import one_line

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 5
_AXIS = 6
_NAME = 38
_LEAST_BAR = 8


def chart_lines(
    records: Sequence[Execution], trend: Trend | None, width: int, costs: Costs | None = None
) -> Iterator[Line]:
    """Yield the whole page in `width` cells.

    `trend` is None while it and the costs are loading. `costs` is None without a price table.
    """
    yield from _heading("scores per criterion", "one column per 0.05, from 0 to 1", width)
    found = [one for one in scores(records) if one.cases]
    beside = all(width - _taken(one) >= min(cell_len(one_line(one.name, limit=200)) + 2, _NAME) for one in found)
    for one in found:
        yield from _distribution(one, width, beside=beside)
    if not found:
        yield from _nothing("no scores yet", width)
    yield BLANK
    yield from _heading("pass rate over runs", "the same cases, oldest left", width)
    if trend is None:
        yield from _nothing("loading", width)
    elif not trend.is_comparable:
        yield from _nothing(trend_words(trend), width)
    else:
        yield from _columns(trend, width)
    yield BLANK
    yield from _heading("slowest", "", width)
    yield from _bars(slowest(records), seconds_text, width)
    if records:
        yield BLANK
        yield from _heading("most expensive", "agent, simulated user and judges", width)
        yield from _expensive(records, costs, width, reading=trend is None)
    yield BLANK
    yield from _heading("most tokens", "agent, simulated user and judges", width)
    yield from _bars(most_tokens(records), lambda amount: f"{amount:,.0f}", width)


def _heading(name: str, hint: str, width: int) -> Iterator[Line]:
    right: Line = (Segment(hint, "muted"),) if hint and len(name) + len(hint) + 10 <= width else ()
    yield heading(name, width, right)


def _nothing(words: str, width: int) -> Iterator[Line]:
    yield from wrap([Segment(words, "muted")], width)


def _result_text(one: Scores) -> str:
    text = f"  {tenths(one.passed)} of {one.cases:,} pass  mean "
    if one.threshold is None:
        return text + cut_score(one.mean, 2, 2)
    mean, wanted = compared(one.mean, one.threshold, 2, 2)
    return f"{text}{mean}  ≥ {wanted}"


def _taken(one: Scores) -> int:
    """Return the width of a chart and its text, without the name."""
    return BINS + 3 + len(_result_text(one))


def _distribution(one: Scores, width: int, *, beside: bool) -> Iterator[Line]:
    """Yield `name  ▁  ▂ ┊▇█  12 of 15 pass  mean 0.87  ≥ 0.80`.

    The bins below and above the threshold have their own colours, with the threshold between them. The name is `beside`
    the chart or above it.
    """
    most = max(one.bins) or 1
    cut = None if one.threshold is None else min(max(round(one.threshold * STEPS), 0), BINS)
    drawn: list[Segment] = []
    for number, count in enumerate(one.bins):
        if number == cut:
            drawn.append(Segment("┊", "label"))
        style = "" if cut is None else "status-failed" if number < cut else "status-passed"
        drawn.append(Segment(_EIGHTHS[0 if not count else max(1, round(count / most * 8))], style))
    if cut is None or cut == BINS:
        drawn.append(Segment("┊" if cut == BINS else " ", "label"))
    text, taken = _result_text(one), _taken(one)
    frame: Line = (Segment("│", "rule"), *drawn, Segment("│", "rule"))
    name = one_line(one.name, limit=200)
    if beside:
        yield (Segment(fit_name(name, min(width - taken, _NAME)), "name"), *frame, Segment(text))
        return
    yield (Segment(cut_name(name, width), "name"),)
    if taken < width:
        yield (Segment(" "), *frame, Segment(text))
    else:
        yield cut_line((Segment(" "), *frame), width)
        yield from hang([], wrap([Segment(text.strip())], max(width - 2, 8)), 2)


def _columns(trend: Trend, width: int) -> Iterator[Line]:
    """Yield one column per run, as high as its pass rate, the newest on the right."""
    step = 2 if len(trend.rates) * 2 <= width - _AXIS else 1
    shown = trend.rates[-((width - _AXIS) // step) :]
    for level in range(_HEIGHT, 0, -1):
        axis = {_HEIGHT: "100 %", 1: "  0 %"}.get(level, "")
        row = [Segment(f"{axis:>5} ", "label")]
        for one in shown:
            eighths = min(max(round(one.rate * _HEIGHT * 8) - (level - 1) * 8, 0), 8)
            if level == 1 and not eighths:
                eighths = 1  # A run without a passed case stays visible.
            style = "status-passed" if one.passed == one.total else "status-failed" if not one.passed else "label"
            row.append(Segment(_EIGHTHS[eighths] + " " * (step - 1), style))
        yield tuple(row)
    text = trend_words(trend)
    if len(shown) < len(trend.rates):
        text += f"  only the newest {len(shown):,} shown"
    yield from wrap([Segment(" " * _AXIS), Segment(text)], width)


def _bars(shares: Sequence[Share], words: Callable[[float], str], width: int, none: str = "no data") -> Iterator[Line]:
    """Yield one bar per case, the longest first."""
    if not shares:
        yield from _nothing(none, width)
        return
    names = [_name(share.record) for share in shares]
    figures = [words(share.amount) for share in shares]
    beside = max(map(len, figures))
    room = min(max(map(cell_len, names)), max(width - beside - _LEAST_BAR - 4, _LEAST_BAR), width // 2)
    bar = max(width - room - beside - 4, 1)
    for share, name, figure in zip(shares, names, figures, strict=True):
        drawn = Segment(_across(share.amount / shares[0].amount * bar), "label")
        yield cut_line((Segment(f"{fit_name(name, room)}  "), Segment(f"{figure:>{beside}}  ", "strong"), drawn), width)


def _expensive(records: Sequence[Execution], costs: Costs | None, width: int, *, reading: bool) -> Iterator[Line]:
    if reading:
        yield from _nothing("loading", width)
    elif costs is None:
        yield from _nothing(NO_PRICES, width)
    else:
        found = most_expensive(records, costs)
        if found or not costs.unknown:
            yield from _bars(found, lambda amount: money(amount, costs.currency), width, none="no costs")
        if note := not_known(costs):
            yield from _nothing(note, width)


def _across(cells: float) -> str:
    halves = max(round(cells * 2), 1)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def _name(record: Execution) -> str:
    ref = record.ref
    repeat = f" #{ref.repeat}" if ref.repeat > 1 else ""
    return one_line(f"{ref.eval_set_id} › {ref.eval_id}{repeat}", limit=200)

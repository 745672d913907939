"""Charts of the HTML page: inline SVG, each with a title that gives the same figures as text."""

from collections.abc import Callable, Iterator, Sequence

from workbench.authoring.triage.agreement import JudgeAgreement, left_out_text
from workbench.exporting.html_text import html_line
from workbench.history.pass_rates import RunRate, Trend
from workbench.rendering.charts.figures import BINS, STEPS, Scores, Share
from workbench.rendering.charts.trend import rate_words, tenths, trend_words
from workbench.rendering.plain_lines import case_label
from workbench.scores import compared, cut_score
from workbench.text import one_line

_STEP = 6
_HEIGHT = 26
_RATES_HEIGHT = 60
_RATE_WIDTH = 10
_BAR = 120
_NAME = 120


def distribution(one: Scores) -> str:
    """Draw the scores of a criterion from 0 to 1, with the threshold as a line."""
    most = max(one.bins) or 1
    mean, threshold = cut_score(one.mean), ""
    if one.threshold is not None:
        mean, threshold = compared(one.mean, one.threshold)
    words = f"{one.name}: {tenths(one.passed)} of {one.cases} cases pass, mean {mean}"
    drawn = []
    for number, count in enumerate(one.bins):
        if count:
            height = max(round(count / most * (_HEIGHT - 2)), 2)
            good = one.threshold is None or number >= round(one.threshold * STEPS)
            style = "" if one.threshold is None else ' class="good"' if good else ' class="bad"'
            x = number * _STEP
            drawn.append(f'<rect x="{x}" y="{_HEIGHT - height}" width="{_STEP - 1}" height="{height}"{style}/>')
    if one.threshold is not None:
        words += f", threshold {threshold}"
        place = min(max(round(one.threshold * STEPS), 0), STEPS) * _STEP - 0.5
        drawn.append(f'<line x1="{place}" x2="{place}" y1="0" y2="{_HEIGHT}"/>')
    return _svg(BINS * _STEP, _HEIGHT, words, drawn)


def rates_chart(trend: Trend) -> Iterator[str]:
    """Draw a column per run of the same cases, as high as its pass rate, the newest at the right.

    If there is no trend, give the reason.
    """
    yield '<section class="whole"><h2>Pass rate over runs</h2>\n'
    words = trend_words(trend)
    if trend.is_comparable:
        drawn = list(map(_column, range(len(trend.rates)), trend.rates))
        yield _svg(len(trend.rates) * _RATE_WIDTH, _RATES_HEIGHT, words, drawn, framed=True)
    yield f"<p>{html_line(words)}</p></section>\n"


def _column(number: int, one: RunRate) -> str:
    height = max(round(one.rate * _RATES_HEIGHT), 1)
    style = "good" if one.passed == one.total else "bad" if not one.passed else "some"
    return (
        f'<rect x="{number * _RATE_WIDTH}" y="{_RATES_HEIGHT - height}" width="{_RATE_WIDTH - 2}"'
        f' height="{height}" class="{style}"><title>{html_line(f"{one.run_id}: {rate_words(one)}")}</title></rect>'
    )


def bars(title: str, shares: Sequence[Share], words: Callable[[float], str], note: str = "") -> Iterator[str]:
    """Draw a bar per execution, the longest first, with `note` below them."""
    if not shares and not note:
        return
    yield f'<section class="bars"><h2>{html_line(title)}</h2>'
    yield "<table>\n" if shares else ""
    for share in shares:
        width = max(round(share.amount / shares[0].amount * _BAR), 1)
        bar = f'<rect x="0" y="2" width="{width}" height="8" class="some"/>'
        figure = html_line(words(share.amount))
        drawn = _svg(_BAR, 12, figure, [bar])
        name = case_label(share.record)
        yield f"<tr><td>{html_line(one_line(name, limit=_NAME))}<td>{figure}<td>{drawn}</tr>\n"
    yield ("</table>" if shares else "") + (f"<p>{html_line(note)}</p>" if note else "") + "</section>\n"


def agreement_tables(found: Sequence[JudgeAgreement], left_out: int = 0) -> Iterator[str]:
    """Show how often judges agree with the user's triage, with a confusion matrix each.

    `left_out` verdicts were given by cause and do not count.
    """
    if not found and not left_out:
        return
    yield "<section><h2>Judges against the user</h2>\n"
    if left_out:
        yield f"<p>{html_line(left_out_text(left_out))}</p>\n"
    for one in found:
        name = one.criterion or "the case’s verdict"
        kappa = "" if one.pairs.kappa is None else f", kappa {one.pairs.kappa:.2f}"
        few = " (few)" if one.few else ""
        who = f" by {one.judge}" if one.judge else ""
        kind = f", {one.part} labels" if one.part else ""
        words = f"{name}{who}{kind}: agrees in {one.share.passed} of {one.share.total}{kappa}{few}"
        yield f"<p>{html_line(words)}</p><table><tr><th>user ↓ judge →"
        yield "".join(f"<th>{html_line(name)}" for name in one.labels) + "</tr>\n"
        for user in one.labels:
            counts = (one.pairs.counts.get((user, judge), 0) for judge in one.labels)
            yield f"<tr><td>{html_line(user)}" + "".join(f"<td>{count or '·'}" for count in counts) + "</tr>\n"
        yield "</table>\n"
    yield "</section>\n"


def _svg(width: int, height: int, words: str, drawn: Sequence[str], *, framed: bool = False) -> str:
    style = ' class="framed"' if framed else ""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {size} role="img"{style}><title>{html_line(words)}</title>{"".join(drawn)}</svg>'

"""Verdicts as lines: a summary line for a case, and the scores of a turn."""

import re
from collections.abc import Sequence

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.cells import cell_len, cut_name
from workbench.results.faces import FACES
from workbench.results.lines import Line, cut_line, joined
from workbench.results.status import glyph, score_text
from workbench.text.safe_text import one_line

_BETWEEN = "   "
_SHORTEST_NAME = 8
_SUFFIX = re.compile("(_avg)?(_score)?(_v[0-9]+)?$")


def by_weight(results: Sequence[MetricResult]) -> list[MetricResult]:
    """Return the results, the worst first. Equal ones keep their order."""
    return sorted(results, key=lambda result: FACES[result.status].rank)


def chip(result: MetricResult, *, short: bool = False, width: int = 0) -> Line:
    """Return `✗ response_match_score 0.61 < 0.80`, on one line. In `width` cells, the name loses its middle."""
    sign, score = glyph(result.status), score_line(result)
    name = f" {short_name(result.name) if short else one_line(result.name, limit=60)}"
    room = width - sign.cell_len - score.cell_len - 1
    if width and room < cell_len(name):
        name = cut_words(name, max(room, _SHORTEST_NAME))
    return Text.assemble(sign, name, " ", score)


def score_line(result: MetricResult) -> Text:
    """Return `0.61 < 0.80`, or the status in words without a score. Only a score that did not pass has a colour."""
    style = "" if result.status == "passed" else FACES[result.status].variable
    return Text.styled(score_text(result) or FACES[result.status].word, style)


def short_name(criterion: str) -> str:
    """Return `response_match` for `response_match_score`, as safe text."""
    name = one_line(criterion, limit=60)
    return _SUFFIX.sub("", name) or name


def cut_words(name: str, width: int) -> str:
    """Return the safe name of a criterion in at most `width` cells, without words in its middle: `rubric…quality`.

    A name whose first and last word have no room loses letters in its middle.
    """
    if cell_len(name) <= width:
        return name
    words = name.split("_")
    ends = [(first, last) for first in range(1, len(words)) for last in range(1, len(words) - first)]
    short = [f"{'_'.join(words[:first])}…{'_'.join(words[-last:])}" for first, last in ends]
    return max((one for one in short if cell_len(one) <= width), key=cell_len, default="") or cut_name(name, width)


def chips(results: Sequence[MetricResult], width: int) -> Line:
    """Return as many chips as fit on one line, the worst first, and the number of others."""
    ordered = by_weight(results)
    for count in range(len(ordered), 0, -1):
        more: Line = Text.styled(f"  +{len(ordered) - count}", "muted") if count < len(ordered) else Text()
        for short in (False, True):
            line = joined([chip(result, short=short) for result in ordered[:count]], _BETWEEN) + more
            if line.cell_len <= width:
                return line
    if not ordered:
        return Text()
    # The score of the worst is whole, even if nothing says how many others there are.
    more = Text.styled(f"  +{len(ordered) - 1}", "muted") if len(ordered) > 1 else Text()
    line = chip(ordered[0], short=True, width=width - more.cell_len) + more
    return line if line.cell_len <= width else cut_line(chip(ordered[0], short=True, width=width), width)

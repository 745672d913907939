"""The overview as a document: its lines, and the selectable causes, criteria and changed cases."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rich.text import Text

from workbench.results.cells import cell_len, cut_name
from workbench.results.definition import fault_lines, file_faults, file_lines
from workbench.results.document import Document
from workbench.results.faces import BY_FUNCTION, FACES, FROZEN, Status, short_name
from workbench.results.frozen import frozen_total
from workbench.results.lines import Line, View, cut_line, flow, hang_text, joined, pad, shortened, wrap
from workbench.results.tally import BINS, LISTED_CHANGES, Changes, Overview, Scores, Tally
from workbench.store.reasons import ONE_OF_A_KIND
from workbench.text.counting import counted, cut_score, cut_to_tenths, percent
from workbench.text.counting import threshold as threshold_text
from workbench.text.safe_text import one_line

CAUSE, CRITERION, FROZEN_CRITERION, CASE = "cause/", "criterion/", "frozen criterion/", "case/"
"""Prefixes of item keys."""
CHANGED = "changed"
"""The key of the item that opens the changed cases that are not listed."""
_MOST_PROBLEMS = 6
"""Maximum number of lines about problems in the file."""
_NAME, _SHORTEST_NAME, _MEAN = 14, 8, 4
_BINS_OF_COLUMN = 2
_COLUMNS = (BINS + 1) // _BINS_OF_COLUMN
"""Number of columns in a distribution of scores."""
_LABEL = 12
_ROUNDING = 1e-9
"""Tolerance for sums of scores that are slightly too small."""


class Row(NamedTuple):
    """A line, and the key of its item. The key is "" if the cursor cannot select the line."""

    line: Line
    key: str = ""


def overview_document(overview: Overview, width: int) -> Document:
    """Return the overview in `width` cells. The first cell of each line is for the cursor."""
    document = Document()
    room = max(width - 2, 1)
    across = min(room, 72)  # Longer lines with text at both ends would be hard to follow.
    sections = (
        _totals(overview, across),
        _causes(overview, across),
        _problems(overview, room),
        _criteria(overview.tally, across),
        [*_changes(overview.changes, across), *_trend(overview, across)],
        _foot(overview.foot, room),
        _file(overview, room),
    )
    for section in sections:
        if section and document.lines:
            document.add([Text()])
        for line, key in section:
            indented = cut_line(Text.assemble(" ", line), width)
            if key:
                document.add_item(key, [indented])
            else:
                document.add([indented])
    return document


def _totals(overview: Overview, width: int) -> list[Row]:
    found = overview.tally
    live, frozen = _rate(found.live), _rate(found.frozen)
    if frozen:
        frozen = Text.assemble((f"{FROZEN.glyph} {FROZEN.word.upper()} ", FROZEN.variable), frozen)
    if live and frozen:
        live = Text.assemble("live ", live)
    no_rate = Text.styled("no case passed or failed", "muted")
    first, *others = filter(None, (live, frozen)) if live or frozen else [no_rate]
    rows = [*_both_ends(first, _moves(overview.changes), width), *others]
    if found.replays and not found.unfinished:
        rows += wrap(Text.styled(frozen_total(found.replays).partition(": ")[2], "muted"), width)
    spent: list[Line] = [Text(overview.spent.time)] if overview.spent.time else []
    if found.model_calls:
        spent.append(Text(counted(found.model_calls, "model call")))
    if found.judge_calls:
        spent.append(Text(counted(found.judge_calls, "judge call")))
    if overview.spent.cost:
        spent.append(Text(overview.spent.cost))
    *above, left = [*flow(spent, width, "  ")] or [Text()]
    rows += above
    broken = found.failed_with_errors  # These cases are in the pass rate.
    within = Text.styled(f"{broken:,} failed with errors", FACES["error"].variable) if broken else Text()
    apart = _spaced(_apart(overview))
    # The label explains why the totals of bar and rate differ.
    named = Text.assemble(("not in rate: ", "muted"), apart) if apart and (live or frozen) else apart
    right = _spaced(filter(None, (within, named)))
    if left.cell_len + 2 + right.cell_len > width:
        right = _spaced(filter(None, (within, apart)))
    rows += _both_ends(left, right, width)
    return [Row(line) for line in rows]


def _rate(states: Mapping[Status, int]) -> Line:
    """Return the pass rate: `3 of 4 passed, 75%`, or an empty line if no case passed or failed."""
    passed, failed = states.get("passed", 0), states.get("failed", 0)
    if not passed + failed:
        return Text()
    style = "status-failed" if failed else "status-passed"
    rate = Text.styled(percent(passed / (passed + failed)), style)
    return Text.assemble((f"{passed:,} of {passed + failed:,} passed", "strong"), ", ", rate)


def _moves(changes: Changes | None) -> Line:
    if changes is None:
        return Text()
    if not changes.total:
        return Text.styled(f"same as at {changes.since}", "muted")
    return Text.assemble(
        (f"↓ {changes.worse:,}  " if changes.worse else "", "status-failed"),
        (f"↑ {changes.better:,}  " if changes.better else "", "status-passed"),
        (f"since {changes.since}", "muted"),
    )


def _apart(overview: Overview) -> Iterator[Line]:
    """Yield the numbers of cases outside the pass rate."""
    states = overview.tally.states
    if states["error"]:
        yield Text.styled(counted(states["error"], "error"), FACES["error"].variable)
    if states["not_evaluated"]:
        yield Text.styled(f"{states['not_evaluated']:,} not evaluated", FACES["not_evaluated"].variable)
    if states["cancelled"]:
        yield Text.styled(f"{states['cancelled']:,} cancelled", "muted")
    if overview.tally.unfinished:
        yield Text.styled(f"{overview.tally.unfinished:,} to go", FACES["running"].variable)
    if not_run := overview.cases - states.total():
        yield Text.styled(f"{not_run:,} not run", "muted")


def _problems(overview: Overview, width: int) -> list[Row]:
    """Return the first problems in the evalset's file, or []. If there are more, the end of the overview lists all."""
    lines = _fault_lines(overview, width)
    if not lines:
        return []
    first = shortened(lines, _MOST_PROBLEMS, width)
    return [Row(Text.styled("Problems in the file", "heading")), *map(Row, first)]


def _fault_lines(overview: Overview, width: int) -> list[Line]:
    entry = overview.file
    return [] if entry is None else list(fault_lines(file_faults(entry, overview.found), entry, View(width)))


def _causes(overview: Overview, width: int) -> list[Row]:
    if not overview.groups:
        return [Row(Text.styled("No case failed.", "muted"))] if overview.tally.judged else []
    cases = sum(len(group.cases) for group in overview.groups)
    number = counted(len(overview.groups), "cause")
    rows = [Row(_headed("Why cases fail", f"{counted(cases, 'case')}, {number}", width))]
    widest = max(3, *(len(f"{len(group.cases):,}") for group in overview.groups))
    for group in overview.groups:
        cause, count = group.cause, f"{len(group.cases):>{widest},} "
        face = FACES["error" if cause.layer == "error" else "failed"]
        sign = Text.styled(f"{face.glyph} ", face.variable)
        if cause.slug == ONE_OF_A_KIND.slug:
            sign = Text("  ")
        text = cause.text + (f" {BY_FUNCTION.glyph}" if cause.by_function else "")
        rows.append(Row(Text.assemble((count, "strong"), sign, text), CAUSE + cause.slug))
    return rows


def _criteria(found: Tally, width: int) -> list[Row]:
    """Return a heading, and a row for each criterion, with separate rows for frozen cases. Return [] without scores.

    If names would be cut too much, the distribution of scores is left out, and then each name has its own line.
    """
    scored = [(one, "") for one in found.scores if one.cases]
    scored += [(one, f" {FROZEN.glyph}") for one in found.frozen_scores if one.cases]
    if not scored:
        return []
    # Without their usual endings, unless two names would look alike then.
    short = {one.name: short_name(one.name) for one, _ in scored}
    times = Counter(short.values())
    names = {name: text if times[text] == 1 else one_line(name, limit=200) for name, text in short.items()}
    signs = [(f" {BY_FUNCTION.glyph}" if one.by_function else "") + frozen for one, frozen in scored]
    counts = [f"{cut_to_tenths(one.passed)}/{one.cases:,}" for one, _ in scored]
    limits = ["" if one.threshold is None else f"≥{threshold_text(one.threshold)}" for one, _ in scored]
    count, limit = max(6, *map(len, counts)), max(map(len, limits))
    room = width - count - 2 - (_MEAN + 1 + limit)
    spread = room - _COLUMNS - 1 >= _NAME
    room -= spread * (_COLUMNS + 1)
    end = "scores mean  threshold" if spread and limit else "mean".ljust(_MEAN + 1 + limit)
    titles = f"{'passed':>{count}} {end}"
    rows = [Row(_headed("Criteria", titles, width))]
    for number, ((one, frozen), counted_text, least_text) in enumerate(zip(scored, counts, limits, strict=True)):
        key = (FROZEN_CRITERION if frozen else CRITERION) + one.name
        style = "status-passed" if one.passed == one.cases else "status-failed"
        mean = cut_score(one.mean + _ROUNDING, 2, 2)
        line = Text.assemble(f"{counted_text:>{count}} ", _distribution(one) if spread else "")
        line.append(f"{mean:>{_MEAN}} ", "" if spread else style).append(f"{least_text:>{limit}}", "muted")
        name, sign = names[one.name], signs[number]
        if room < _SHORTEST_NAME:
            rows += (Row(part, key) for part in wrap(Text(name + sign), max(width, 1))[:1])
            key = name = sign = ""
        named = cut_name(name, room - len(sign), names.values()) + sign
        rows.append(Row(pad(Text(named), width - line.cell_len) + line, key))
    return rows


def _distribution(one: Scores) -> Text:
    """Return a bar chart: a column for each tenth from 0 to 1, and one for exactly 1, coloured by the threshold."""
    bins = [sum(one.bins[place : place + _BINS_OF_COLUMN]) for place in range(0, _COLUMNS * _BINS_OF_COLUMN, 2)]
    drawn, most = Text(), max(bins) or 1
    for number, found in enumerate(bins):
        start, end = number / (_COLUMNS - 1), (number + 1) / (_COLUMNS - 1)
        style = ""
        if one.threshold is not None and start + _ROUNDING >= one.threshold:
            style = "status-passed"
        elif one.threshold is not None and (end <= one.threshold + _ROUNDING or start >= 1):
            style = "status-failed"
        level = max(int(found / most * 8 + _ROUNDING), 1) if found else 0
        drawn.append("╌▁▂▃▄▅▆▇█"[level], style if level else "muted")
    return drawn.append(" ")


def _changes(changes: Changes | None, width: int) -> list[Row]:
    if changes is None or not changes.total:
        return []
    words = [f"{changes.worse:,} worse"] if changes.worse else []
    words += [f"{changes.better:,} better"] if changes.better else []
    rows = [Row(_headed(f"Changed since {changes.since}", ", ".join(words), width))]
    listed = changes.cases[:LISTED_CHANGES]
    for changed in listed:
        mark = Text.styled("↓ ", "status-failed") if changed.worse else Text.styled("↑ ", "status-passed")
        how = f"{changed.before} → {changed.after}"
        name = cut_name(changed.name, max(width - 2 - cell_len(how) - 2, 8), [other.name for other in listed])
        line = Text.assemble(pad(Text.assemble(mark, name), width - cell_len(how)), (how, "muted"))
        rows.append(Row(line, case_key(changed.case)))
    if more := changes.total - len(listed):
        rows.append(Row(Text.styled(f"… {more:,} more", "muted"), CHANGED))
    return rows


def _trend(overview: Overview, width: int) -> list[Row]:
    trend = overview.trend
    if trend is None or not trend.is_comparable:
        return []
    last = trend.rates[-1].rate
    title, now = f"Pass rate, {counted(len(trend.rates), 'run')}", percent(last)
    room = width - cell_len(title) - len(now) - 4
    if room < 2:
        return []
    # Only a run in which everything passed has a full block.
    drawn = "".join("▁▂▃▄▅▆▇█"[int(one.rate * 7 + _ROUNDING)] for one in trend.rates[-room:])
    style = "status-passed" if last == 1 else "label"
    left = Text.assemble((title, "heading"), "  ", (drawn, style))
    return [Row(Text.assemble(pad(left, width - len(now)), (now, "strong")))]


def _foot(facts: Iterable[tuple[str, str]], width: int) -> list[Row]:
    rows: list[Row] = []
    for label, text in facts:
        if not text:
            rows.append(Row(Text.styled(label, "heading")))
        else:
            lead = Text.styled(f"{label:<{_LABEL - 1}} ", "label")
            rows += [Row(line) for line in hang_text(lead, Text(text), width, _LABEL)]
    return rows


def _file(overview: Overview, width: int) -> list[Row]:
    entry = overview.file
    if entry is None:
        return []
    faults = _fault_lines(overview, width)
    lines = [*(faults if len(faults) > _MOST_PROBLEMS else ()), *file_lines(entry, View(width))]
    return [Row(Text.styled("File", "heading")), *map(Row, lines)]


def case_key(case: tuple[int, int]) -> str:
    """Return the key of a case's item."""
    return f"{CASE}{case[0]}/{case[1]}"


def case_of(key: str) -> tuple[int, int] | None:
    """Return the evalset and the case of an item's key, or None if the item is not a case."""
    if not key.startswith(CASE):
        return None
    evalset, _, case = key.removeprefix(CASE).partition("/")
    return int(evalset), int(case)


def criterion_of(key: str) -> tuple[str, bool] | None:
    """Return the criterion of an item's key and whether the key is about frozen cases, or None for another key."""
    for beginning in (CRITERION, FROZEN_CRITERION):
        if key.startswith(beginning):
            return key.removeprefix(beginning), beginning == FROZEN_CRITERION
    return None


def _headed(words: str, right: str, width: int) -> Line:
    """Return a heading with `right` at the end of the line if it fits."""
    left = Text.styled(words, "heading")
    if cell_len(words) + 2 + cell_len(right) > width:
        return left
    return Text.assemble(pad(left, width - cell_len(right)), (right, "muted"))


def _spaced(parts: Iterable[Line]) -> Line:
    return joined(parts, "  ", "")


def _both_ends(left: Line, right: Line, width: int) -> list[Line]:
    """Return a line with text at both ends, or two lines if they do not fit on one."""
    if not left or not right:
        return [line for line in (left, right) if line]
    room = width - left.cell_len - right.cell_len
    return [left, right] if room < 2 else [Text.assemble(left, " " * room, right)]

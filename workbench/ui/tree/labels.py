"""The texts of the tree's rows, as pieces of safe text with style names."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from workbench.results.cells import cell_len, cut_sibling
from workbench.results.faces import (
    BY_FUNCTION,
    CHECKED,
    COUNTED,
    FACES,
    FLAKY,
    FROZEN,
    OTHER_CRITERIA,
    SPLIT,
    STALE,
    TRIAGED,
    TRIAGED_EARLIER,
    Face,
    Status,
    stale_mark,
)
from workbench.results.judged import is_function
from workbench.store.execution import Execution
from workbench.text.counting import counted, cut_score, percent
from workbench.text.safe_text import one_line
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import WHOLE_EVALSET, Outline, Row
from workbench.ui.tree.verdicts import CaseVerdict, TriageMark

Piece = tuple[str, str]
Pieces = list[Piece]
_NO_JOINERS = {0x200D: None, 0xFE0E: None, 0xFE0F: None}
_SECONDS_SHOWN_FROM = 3
_WORDS_FROM = 34
_RATE_FROM = 52
_NAME = 2
"""Index of the name in a case's row, after the indent and the verdict's sign."""
_HEADING = 1
"""Index of the name in the row of an agent or an evalset, after the arrow."""
NEIGHBOURS = 24
"""Number of cases before and after a case from which its cut name must differ."""
_GAP = 1
_SHORTEST = 6
_READABLE = 24
"""A name may be cut to this width, in cells, to make room for the reason of a stale verdict."""
_SHORT_REASON = 14
_FUNCTION: Piece = (BY_FUNCTION.glyph, "not-evaluated")
_SPLIT: Piece = (SPLIT.glyph, "not-evaluated")


def label(text: str) -> str:
    """Return the first 200 characters of a name as one safe line.

    Joiners are removed, because terminals disagree on the width of joined emoji.
    """
    return one_line(text, limit=200).translate(_NO_JOINERS)


def style_of(status: Status) -> str:
    """Return the name of the style of a status."""
    return FACES[status].variable.removeprefix("status-")


class Labels:
    """The texts of the rows of a loaded tree. `now` returns the seconds since the run began."""

    def __init__(self, tree: Tree, now: Callable[[], float]) -> None:
        self._tree, self._now = tree, now
        self._entries, self._verdicts, self._agents = tree.entries, tree.verdicts, tree.groups
        self._names = [label(name) for name in tree.groups]
        self._facts: dict[int, tuple[tuple[object, ...], Pieces, Pieces]] = {}
        """A cache for `_signs` by evalset, with the objects that the signs were made from."""

    def pieces(self, row: Row, width: int) -> tuple[Pieces, Pieces]:
        """Return the left and right side of a row of `width` cells."""
        outline = self._tree.outline
        match row.kind:
            case "all":
                marked = len(self._tree.marks)
                return [(f"marked {marked:,}" if marked else "everything", "strong")], self._total(row)
            case "agent":
                return fitted(*self._agent(outline, row, width), width, _HEADING, self._names)
            case "evalset":
                others = (self._evalset_name(number) for number in outline.evalsets[row.agent])
                return fitted(*self._evalset(outline, row, width), width, _HEADING, others)
            case "passed":
                return self._passed(outline, row)
            case "case":
                return self._case(outline, row, width)
        return self._repeat(row)

    def _total(self, row: Row) -> Pieces:
        """Return the counts of the first row, or nothing if the bar shows the same counts."""
        tree = self._tree
        if not len(tree.marks) and tree.query.empty and not self._verdicts.differ_from_run:
            return []
        return self._counts(row)

    def _agent(self, outline: Outline, row: Row, width: int) -> tuple[Pieces, Pieces]:
        evalsets = outline.evalsets[row.agent]
        left = [(_arrow(outline, row), "muted"), (self._names[row.agent], "strong")]
        if self._agents[row.agent] in self._verdicts.imports.failed:
            left.append((f" {CHECKED['error'].glyph}{'import' if width >= _WORDS_FROM else ''}", "error"))
        if not evalsets:
            return left, [("no evalsets", "muted")]
        # The only evalset has the same counts in the next row.
        shown = sum(bool(outline.order(evalset)) for evalset in evalsets)
        return left, [] if shown == 1 and outline.is_open(row) else self._counts(row)

    def _evalset(self, outline: Outline, row: Row, width: int) -> tuple[Pieces, Pieces]:
        entry = self._entries[row.evalset]
        left = [("  " + _arrow(outline, row), "muted"), (self._evalset_name(row.evalset), "")]
        left += self._check_sign((row.evalset, WHOLE_EVALSET), width)
        if not entry.document.cases and entry.document.broken:
            return left, [(FACES["error"].glyph + " broken file", "error")]
        if entry.owned.rule == "location":
            left.append((" by location", "muted"))
        if entry.owned.lost and entry.agent is None:
            return left, [(FACES["error"].glyph + " agent missing", "error")]
        if whole := self._verdicts.by_case.get((row.evalset, WHOLE_EVALSET)):
            return left, [(FACES[whole.state].glyph, style_of(whole.state))]
        right = self._counts(row)
        if entry.document.broken:
            right.insert(0, ("errors ", "error"))
        return left, right

    def _evalset_name(self, number: int) -> str:
        entry = self._entries[number]
        return label(entry.document.eval_set_id or entry.file.name)

    def _near(self, row: Row) -> Iterator[str]:
        """Yield the raw names of the cases near a case on the screen and in its evalset."""
        cases, near = self._entries[row.evalset].document.cases, range(row.case - NEIGHBOURS, row.case + NEIGHBOURS)
        # A filter may leave no other case, and a name that then keeps its beginning may say nothing.
        numbers = {*self._tree.outline.around(row, NEIGHBOURS), *near}
        yield from (cases[number].eval_id for number in numbers if 0 <= number < len(cases))

    def _passed(self, outline: Outline, row: Row) -> tuple[Pieces, Pieces]:
        """Return the left and the right part of the row that folds passed cases.

        The left part is `40 passed ▸`. Both parts have signs.
        """
        counts = self._tree.counts(row)
        signs, marks = self._signs(outline, row)
        arrow = "▾" if outline.is_open(row) else "▸"
        left: Pieces = [("    ", ""), (f"{counts['passed']:,} passed", "passed"), *signs, (f" {arrow}", "muted")]
        del counts["passed"]
        return left, _joined([*marks, *_counted(counts)])

    def _signs(self, outline: Outline, row: Row) -> tuple[Pieces, Pieces]:
        """Return the signs of folded cases for the left side (such as stale) and the right side (such as triage).

        Signs are computed again only after a change, because there may be many thousand cases.
        """
        verdicts = self._verdicts
        fold = outline.fold(row.evalset)
        made_of = fold, verdicts.stale, verdicts.flips, verdicts.check_results, verdicts.triage.cases
        known = self._facts.get(row.evalset)
        if known is None or any(one is not other for one, other in zip(known[0], made_of, strict=True)):
            pairs = outline.cases(row)
            flips = [verdicts.flips[pair] for pair in pairs if pair in verdicts.flips]
            stale = sum(pair in verdicts.stale for pair in pairs)
            checks = {verdicts.check_results[pair] for pair in pairs if pair in verdicts.check_results}
            signs: Pieces = [(f" ↓{sum(flips):,}", "failed")] if any(flips) else []
            signs += [(f" ↑{flips.count(False):,}", "passed")] if not all(flips) else []
            signs += [(f" {STALE.glyph}{stale:,}", STALE.variable.removeprefix("status-"))] if stale else []
            signs += [_check_sign("error" if "error" in checks else "warning")] if checks else []
            records = [record for pair in pairs for record in verdicts.records(*pair)]
            results = {id(score): score for record in records for score in record.scores.values()}
            faces = Counter(map(_triage_face, verdicts.triaged(row.evalset, pairs)))
            triaged = [(f"{face.glyph}{count:,}", "accent") for face, count in faces.items()]
            marks = dict.fromkeys(mark for record in records for mark in (*_frozen(record), *_other_criteria(record)))
            function = [_FUNCTION] if any(map(is_function, results.values())) else []
            split = [_SPLIT] if any(record.split for record in records) else []
            known = self._facts[row.evalset] = made_of, signs, [*triaged, *marks, *function, *split]
        return known[1:]

    def _case(self, outline: Outline, row: Row, width: int) -> tuple[Pieces, Pieces]:
        """Return the two sides of a case's row.

        If they do not fit, the beginning of the name is cut. If that is not enough, the score is left out. Signs, such
        as the one for a changed verdict, are always kept.
        """
        summary = self._entries[row.evalset].document.cases[row.case]
        verdict = self._verdicts.by_case.get((row.evalset, row.case))
        state: Status = verdict.state if verdict else "not_run"
        style = style_of(state)
        left = [("    ", ""), (FACES[state].glyph + " ", style), (label(summary.eval_id) or "(no id)", "")]
        pair = (row.evalset, row.case)
        if pair in self._verdicts.flips:
            left.append((" ↓", "failed") if self._verdicts.flips[pair] else (" ↑", "passed"))
        left += self._check_sign(pair, width)
        right: Pieces = []
        score: Pieces = []
        if verdict is not None and len(verdict.refs) > 1:
            left[0] = ("  " + _arrow(outline, row), "muted")
            if self._verdicts.flaky(*pair) and state not in ("running", "queued"):
                left[1] = (FLAKY.glyph + " ", "flaky")
            record = self._verdicts.store.records[verdict.deciding]
            right = [*_frozen(record), *_other_criteria(record), *self._repeated(pair, verdict, width)]
        elif verdict is not None:
            record = self._verdicts.store.records[verdict.deciding]
            right = [*_marks(record), *self._seconds(record, verdict.state)]
            found = record.decisive
            score = [(cut_score(found.score, 2, 2), "muted")] if found is not None and found.score is not None else []
        name = left[_NAME][0]
        for shown in (score, []) if score else ([],):
            right_side = _joined(self._with_triage(pair, left, [*right, *shown], width))
            made = fitted(self._with_stale(pair, left, right_side, width), right_side, width, _NAME, self._near(row))
            cut = made[0][_NAME][0]
            if not shown or (not cut.endswith("…") and name.endswith(cut.removeprefix("…"))):
                break
        return made

    def _repeated(self, pair: tuple[int, int], verdict: CaseVerdict, width: int) -> Pieces:
        """Return the pass rate of a case with several executions, such as `3/5 60%`, in pieces.

        While the case is running, return the rate so far and the number of executions.
        """
        rate = self._verdicts.rate(*pair)
        if verdict.state in ("running", "queued"):
            so_far = [(f"{rate.passed}/{rate.total}", "muted")] if rate.total else []
            if width >= _WORDS_FROM:
                total = f"of {len(verdict.refs)}" if rate.total else counted(len(verdict.refs), "time")
                so_far.append((total, "muted"))
            return so_far
        pieces: Pieces = [(f"{rate.passed}/{rate.total}", "muted")]
        if width >= _RATE_FROM and rate.rate is not None:
            pieces.append((percent(rate.rate), "muted"))
        if rate.flaky and (without_verdict := len(verdict.refs) - rate.total):
            pieces.append((f"{without_verdict}{FACES['error'].glyph}", "error"))
        return pieces

    def _check_sign(self, pair: tuple[int, int], width: int) -> Pieces:
        """Return the sign for problems found by `check`, with the severity in wide rows, or [] without problems."""
        worst = self._verdicts.check_results.get(pair)
        if worst is None:
            return []
        sign, style = _check_sign(worst)
        return [(sign + (CHECKED[worst].word if width >= _WORDS_FROM else ""), style)]

    def _with_stale(self, pair: tuple[int, int], left: Pieces, right: Pieces, width: int) -> Pieces:
        """Return the left side with the sign for a stale verdict. Add its reason if it fits after the name is cut."""
        changes = self._verdicts.stale.get(pair)
        if not changes:
            return left
        room = width - sum(cell_len(text) for text, _ in (*left, *right)) - _GAP - 1
        spare = room + max(cell_len(left[_NAME][0]) - _READABLE, 0)
        room = max(room, min(spare, _SHORT_REASON))
        return [*left, (f" {stale_mark(changes, room)}", STALE.variable.removeprefix("status-"))]

    def _with_triage(self, pair: tuple[int, int], left: Pieces, right: Pieces, width: int) -> Pieces:
        """Return the right side with the sign for a triaged verdict, and the label of the triage if there is room."""
        triage = self._verdicts.triage_state(*pair)
        if triage is None:
            return right
        face = _triage_face(triage)
        word = f" {one_line(triage.word, limit=24)}"
        taken = _width(left, _joined(right)) + cell_len(word) + 4
        taken += cell_len(f" {STALE.glyph}") if self._verdicts.stale.get(pair) else 0
        # On the right, so that a long name cannot push it off the row.
        return [(f"{face.glyph}{word if taken <= width else ''}", "accent"), *right]

    def _repeat(self, row: Row) -> tuple[Pieces, Pieces]:
        record = self._verdicts.record(row.evalset, row.case, row.repeat)
        state: Status = record.state if record else "not_run"
        left = [("      ", ""), (FACES[state].glyph + " ", style_of(state)), (f"#{row.repeat}", "muted")]
        return left, _joined([*_marks(record), *self._seconds(record, state)] if record is not None else [])

    def _seconds(self, record: Execution, state: Status) -> Pieces:
        """Return the seconds for which a case has been running, or nothing in the first seconds."""
        if state == "running" and record.started_at is not None:
            seconds = int(self._now() - record.started_at)
            if seconds >= _SECONDS_SHOWN_FROM:
                return [(f"{seconds}s", style_of(state))]
        return []

    def _counts(self, row: Row) -> Pieces:
        return _joined(_counted(self._tree.counts(row))) or [(str(self._tree.outline.count(row)), "muted")]


def _width(left: Pieces, right: Pieces) -> int:
    return sum(cell_len(text) for text, _ in (*left, *right)) + _GAP * bool(right)


def _check_sign(severity: Literal["error", "warning"]) -> Piece:
    face = CHECKED[severity]
    return f" {face.glyph}", face.variable.removeprefix("status-")


def _triage_face(triage: TriageMark) -> Face:
    """Return the sign for a triaged verdict, or the one for a verdict that has changed since its triage."""
    return TRIAGED_EARLIER if triage.outdated else TRIAGED


def _joined(pieces: Iterable[Piece]) -> Pieces:
    return [piece for number, item in enumerate(pieces) for piece in ([(" ", "")] if number else []) + [item]]


def _counted(counts: Counter[Status]) -> Pieces:
    """Return the counts as pieces such as `40✓` and `22✗`."""
    pieces = [(f"{counts[state]}{FACES[state].glyph}", style_of(state)) for state in COUNTED if counts[state]]
    if active := counts["running"] + counts["queued"]:
        pieces.append((f"{active}{FACES['running'].glyph}", "running"))
    return pieces


def fitted(left: Pieces, right: Pieces, width: int, place: int, others: Iterable[str]) -> tuple[Pieces, Pieces]:
    """Return both sides with the name at index `place` cut to fit. A cut name stays different from `others`."""
    name, style = left[place]
    over = _width(left, right) - width
    if over > 0:
        left = [*left]
        left[place] = (cut_sibling(name, max(cell_len(name) - over, _SHORTEST), others), style)
    return left, right


def _marks(record: Execution) -> Pieces:
    """Return the signs of a verdict: replayed calls, other criteria, a Python function as judge, and split votes."""
    marks = [*_frozen(record), *_other_criteria(record)]
    if any(map(is_function, record.scores.values())):
        marks.append(_FUNCTION)
    if record.split:
        marks.append(_SPLIT)
    return marks


def _frozen(record: Execution) -> Pieces:
    if record.frozen is None:
        return []
    return [(f"{FROZEN.glyph}≠", "not-evaluated")] if record.frozen.drifted else [(FROZEN.glyph, "accent")]


def _other_criteria(record: Execution) -> Pieces:
    return [(OTHER_CRITERIA.glyph, "not-evaluated")] if record.planned.criteria_changed else []


def _arrow(outline: Outline, row: Row) -> str:
    if not outline.has_children(row):
        return "  "
    return "▾ " if outline.is_open(row) else "▸ "

"""Tool calls as lines: short or in full, aligned with the expected calls, with both sides of each difference."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from workbench.criteria.call_rows import call_rows
from workbench.criteria.json_difference import path_step, shown, type_name
from workbench.criteria.trajectory import used_rules
from workbench.events.events import MetricResult
from workbench.files.invocation import ToolCall
from workbench.results.cells import cell_len
from workbench.results.evidence_frame import side, side_room
from workbench.results.lines import (
    GLYPHS,
    Line,
    View,
    cut_line,
    fold,
    joined,
    pad,
    wrap,
    wrap_indented,
)
from workbench.results.texts import INDENT, beginning, compact, is_marked, pretty
from workbench.text.counting import counted, cut_score
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain


def own_calls(rows: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return for each row the index of its actual call among the agent's own calls, or None if it has none."""
    made = [row.get("actual_index") if row.get("actual") else None for row in rows]
    inner = sorted(place for place, row in zip(made, rows, strict=True) if isinstance(place, int) and row.get("inside"))
    return [
        place - bisect_left(inner, place) if isinstance(place, int) and not row.get("inside") else None
        for place, row in zip(made, rows, strict=True)
    ]


def aligned_rows(
    expected: Sequence[ToolCall], actual: Sequence[ToolCall], scored: MetricResult | None
) -> list[dict[str, Any]]:
    """Return the rows that align both sides: those in the result `scored` if all are valid, else newly built ones."""
    details = scored.details if scored else {}
    rows = details.get("rows")
    if isinstance(rows, list) and all(map(_is_row, rows)):
        return rows
    return call_rows(expected, actual, used_rules(details))


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or row.get("mark") not in GLYPHS:
        return False
    sides = [row.get("expected"), row.get("actual")]
    return all(side is None or isinstance(side, dict) for side in sides) and any(sides)


def call_text(name: object, args: Any, limit: int = 1_000_000) -> str:
    """Return a call on one line as raw text: `find_order(id="A-7")`, with about `limit` characters of each value."""
    if not isinstance(args, dict):
        return f"{name}({'' if args is None else beginning(args, limit)})"
    return f"{name}({', '.join(f'{key}={beginning(value, limit)}' for key, value in args.items())})"


def brief_call(call: Mapping[str, Any], width: int, differing: frozenset[str] = frozenset()) -> Line:
    """Return a call on one line: `refund(id="A-7", amount=…)`.

    A call that is too long shows only the names of differing arguments, and is cut if that is still too long.
    `differing` are the paths of arguments whose values are shown elsewhere.
    """
    name = Text.styled(one_line(str(call.get("name") or "(no name)"), limit=200), "name")
    args = call.get("args")
    if not isinstance(args, dict):
        return cut_line(Text.assemble(name, "()" if args is None else f"({one_line(compact(args))})"), width)
    keys = {key: _argument_marked(key, differing) for key in args}
    parts = [
        f"{_key(key)}=…" if marked else f"{_key(key)}={one_line(compact(args[key]), limit=200)}"
        for key, marked in keys.items()
    ]
    whole: Line = Text.assemble(name, f"({', '.join(parts)})")
    if whole.cell_len <= width:
        return whole
    only = [_key(key) for key, marked in keys.items() if marked]
    return cut_line(Text.assemble(name, f"({', '.join(only)})"), width) if only else cut_line(whole, width)


def call_lines(call: Mapping[str, Any], width: int, marked: frozenset[str] = frozenset(), mark: str = "") -> list[Line]:
    """Return a call in full, on one line or with one argument per line."""
    name = Text.styled(one_line(str(call.get("name") or "(no name)"), limit=200), "name")
    args = call.get("args")
    if args is None:
        return wrap(Text.assemble(name, (" (no arguments given)", "muted")), width)
    if not isinstance(args, dict):
        return wrap(Text.assemble(name, f"({plain(compact(args))})"), width)
    short = _on_one_line(name, args, marked, mark, width)
    return [short] if short is not None else wrap_indented(_spread(name, args, marked, mark), width)


def _on_one_line(name: Text, args: dict[str, Any], marked: frozenset[str], mark: str, width: int) -> Line | None:
    parts: list[Line] = []
    size = 0
    for key, value in args.items():
        text = f"{_key(key)}={plain(compact(value))}"
        size += len(text) + 2
        if size > width + 2 or "\n" in text:
            return None
        parts.append(Text.styled(text, mark if _argument_marked(key, marked) else ""))
    line = Text.assemble(name, "(", joined(parts, ", ", ""), ")")
    return line if line.cell_len <= width else None


def _spread(name: Text, args: dict[str, Any], marked: frozenset[str], mark: str) -> Text:
    new_line, whole = "\n" + " " * INDENT, "args" in marked
    text = Text.assemble(name, "(")
    for index, (key, value) in enumerate(args.items()):
        lines = pretty(value, f"args{path_step(key)}", marked, mark).split(allow_blank=True)
        shown = Text.assemble(f"{_key(key)}=", Text(new_line).join(lines))
        if whole or f"args{path_step(key)}" in marked:
            shown.stylize(mark)
        text.append(f"{',' if index else ''}{new_line}").append_text(shown)
    return text.append("\n)")


def _key(key: str) -> str:
    return one_line(key if key.isidentifier() else compact(key), limit=200)


def _argument_marked(key: str, marked: frozenset[str]) -> bool:
    return "args" in marked or is_marked(f"args{path_step(key)}", marked)


def accepted_lines(row: Mapping[str, Any], width: int) -> Iterator[Line]:
    """Yield a line for each different value that a rule accepts: `args.id: text "B-7" · accepted: any value`."""
    for item in objects(row.get("accepted")):
        kind, value = type_and_value(item, "actual")
        value = value if kind == "true/false" else f"{kind} {value}"
        words = f"{plain(str(item.get('path', '')))}: {value} · accepted: {one_line(string(item.get('rule')))}"
        yield from wrap(Text.styled(words, "muted"), width)


def type_and_value(item: Mapping[str, Any], side: str) -> tuple[str, str]:
    """Return the type and the value of one side of a difference: `("number", "12.5")`. Both are safe texts."""
    kind = item.get(f"{side}_type") or type_name(item.get(side))
    return plain(str(kind)), plain(str(item.get(f"{side}_shown") or shown(item.get(side))))


def difference_lines(
    found: Sequence[Mapping[str, Any]], width: int, view: View, beyond: int = 0, *, named: bool = False
) -> Iterator[Line]:
    """Yield both sides of each difference (`json_difference.describe`) in `width` cells.

    Unless the view is full, only the first three are shown, and the others are counted. The path is above each
    difference if there are several, or with `named`. `beyond` is the number of differences that `found` leaves out.
    """
    kept = found if view.full else found[:3]
    inner = max(side_room(view, width), 2)
    for item in kept:
        path = one_line(str(item.get("path", "")).removeprefix("args").lstrip("."), limit=200)
        if path and (named or len(found) > 1):
            yield cut_line(Text.styled(path, "label"), width)
        values = {name: type_and_value(item, name) for name in ("expected", "actual")}
        if rule := one_line(string(item.get("rule"))):
            values["expected"] = ("nothing", rule)
        # The type beside a long value needs 12 cells.
        column = min(max(cell_len(value) for _, value in values.values()), inner - 12)
        for name, mark in (("expected", "missing"), ("actual", "extra")):
            kind, value = values[name]
            text: Line = Text.styled(value, f"mark-{mark}")
            if kind not in ("nothing", "true/false"):
                text = Text.assemble(pad(text, column), (f"  {kind}", "muted"))
            yield from side(mark, wrap(text, inner), view)
    more = len(found) - len(kept) + beyond
    if more:
        yield fold(f"▸ {counted(more, 'more value differs', 'more values differ')}", width)


def value_lines(details: Mapping[str, Any], width: int, view: View) -> Iterator[Line]:
    """Yield the differing values in a result's `details`, then the different values that a rule accepts."""
    beyond = details.get("more_differences")
    found = objects(details.get("differences"))
    yield from difference_lines(found, width, view, beyond if isinstance(beyond, int) else 0, named=True)
    yield from accepted_lines(details, width)


def match_type_words(scored: MetricResult) -> Line:
    """Return the match type and the scores of others, as far as known: `EXACT; others would score IN_ORDER 0.00`."""
    others = scored.details.get("other_match_types")
    used = one_line(str(scored.details.get("match_type") or ""))
    rule: Line = Text.styled(used, "strong") if used else Text()
    if used and scored.details.get("ignore_args") is True:
        rule = Text.assemble(rule, (", arguments ignored", "muted"))
    elif used and scored.details.get("args_match"):
        rule = Text.assemble(rule, (", arguments by rules", "muted"))
    reached = scored.score if scored.score is not None else 0.0
    scores = [
        Text.assemble((f"{one_line(name)} ", "muted"), (cut_score(value, 2, 2), "strong" if value > reached else ""))
        for name, value in mapping(others).items()
        if name != used and isinstance(value, int | float)
    ]
    between: Line = Text.styled("; others would score ", "muted") if rule and scores else Text()
    return Text.assemble(rule, between, joined(scores))

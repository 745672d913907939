"""Explanations of a row in the criteria editor: its meaning, its full value, and the last run's results under it."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from workbench.criteria.registry import descriptions
from workbench.editing.criteria_form import FormRow
from workbench.editing.criteria_presets import cost, needs
from workbench.editing.what_if import Flip, Outlook
from workbench.judges.base import DEFAULT_SAMPLES
from workbench.results.lines import safe, wrap
from workbench.text.counting import counted, cut_score, few
from workbench.text.safe_text import one_line, plain
from workbench.ui.editing.values import json_text

_NAMED = 4
"""Maximum number of cases named in a line."""
_SHOWN = 4_000
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def fitting(text: str, width: int, height: int) -> str:
    """Return as many whole sentences of safe text as fit, with "…" behind them if more follow.

    If not even the first fits, it is cut between words.
    """
    kept = ""
    for number, line in enumerate(text.split("\n")):
        for place, sentence in enumerate(_SENTENCE.split(line)):
            between = " " if place else "\n" if number else ""
            more = f"{kept}{between}{sentence}"
            if _height(f"{more} …" if len(more) < len(text) else more, width) > height:
                return f"{kept} …" if kept else _cut_between_words(sentence, width, height)
            kept = more
    return kept


def _height(text: str, width: int) -> int:
    return sum(1 for _ in wrap(safe(text), max(width, 1)))


def _cut_between_words(text: str, width: int, height: int) -> str:
    words = text.split(" ")
    most = bisect_right(range(1, len(words)), height, key=lambda count: _height(f"{' '.join(words[:count])} …", width))
    return f"{' '.join(words[:most])} …"


def about(row: FormRow, rows: Sequence[FormRow] = ()) -> str:
    """Return the purpose of a row, and its full value if it may be long. `rows` are all rows of its config."""
    if row.kind == "threshold":
        return _about_criterion(row, rows)
    lines = [row.field.help] if row.field.help else []
    default = row.field.default
    if default and row.kind != "heading" and not row.given:
        lines.append(f"Not set. Default: {default}.")
    elif default not in ("", "none"):
        lines.append(f"Default: {default}.")
    text = ""
    if row.given and isinstance(row.value, str) and row.kind in ("text", "word", "json"):
        text = row.value
    elif row.given and row.kind in ("json", "kept"):
        text = json_text(row.value)
    # Long values come first, because users put the cursor there to read them.
    shown = [plain(text, limit=_SHOWN)] if text else []
    return "\n".join([*shown, *lines])


def _about_criterion(row: FormRow, rows: Sequence[FormRow]) -> str:
    info = descriptions().get(row.criterion)
    if info is None:
        return "A custom metric. This form can only change its threshold."
    samples = next((one.value for one in rows if one.criterion == info.name and one.field.name == "num_samples"), None)
    votes = samples if isinstance(samples, int) and samples > 0 else DEFAULT_SAMPLES
    return f"{info.measures} Score: {info.range}. Cost: {cost(info, votes)}. Needs: {needs(info)}."


def outlook_of_criterion(outlook: Outlook | None, name: str) -> list[str]:
    """Return the last run's results for a criterion, by its settings in the editor.

    What `outlook_of_all` says of whole cases is left out.
    """
    if outlook is None:
        return ["last run: computing"]
    if not outlook.cases:
        return ["last run: none, so the effect of changes is unknown"]
    one = outlook.criteria.get(name)
    if one is None or not one.scored:
        if not outlook.unknown:
            return []  # `outlook_of_all` says what happens to the cases.
        return ["last run: not scored by this criterion, so the effect is unknown until the next run"]
    before = f"new for {one.new:,}" if one.new else f"before: {one.before:,}"
    lines = [f"last run: {one.after:,} of {cases(one.scored)} would pass this criterion ({before})"]
    lines += _flips(one.flips, outlook)
    if one.redo:
        lines.append(f"{cases(one.redo)} scored with other options: S scores again")
    if one.ways:
        lines.append("would pass: " + " · ".join(f"{way} {count}" for way, count in one.ways.items()))
    return lines


def outlook_of_all(outlook: Outlook | None) -> str:
    """Return the effect on the verdicts of whole cases, on one line."""
    if outlook is None or not outlook.cases:
        return ""
    cases = counted(outlook.cases, "case")
    if not outlook.flips and not outlook.unknown:
        return f"last run, {cases}: no verdict would change"
    up = sum(flip.after == "passed" for flip in outlook.flips)
    down = sum(flip.after == "failed" for flip in outlook.flips)
    rest = len(outlook.flips) - up - down
    words = [f"{down:,} more would fail" if down else "", f"{up:,} more would pass" if up else ""]
    words += [f"{rest:,} would change" if rest else "", f"{outlook.unknown:,} unknown" if outlook.unknown else ""]
    return f"last run, {cases}: {', '.join(word for word in words if word)}"


def _flips(flips: Sequence[Flip], outlook: Outlook) -> list[str]:
    """Return which cases would pass or fail a criterion.

    A case that passes one criterion may still fail another one, so both numbers are shown if they differ.
    """
    whole = {flip.ref: flip.after for flip in outlook.flips}
    lines = []
    for after, words in (("failed", "would now fail"), ("passed", "would now pass")):
        found = [flip for flip in flips if flip.after == after]
        if found:
            both = sum(whole.get(flip.ref) == after for flip in found)
            of_case = "" if both == len(found) else " this criterion"
            if of_case and not outlook.unknown:
                of_case += f", {both or 'none'} of them the whole case"
            lines.append(f"{len(found):,} {words}{of_case}: {few(map(_named, found), _NAMED)}")
    return lines


def _named(flip: Flip) -> str:
    return one_line(flip.name, limit=40) + ("" if flip.score is None else f" ({cut_score(flip.score, least=2)})")


def cases(number: int) -> str:
    """Return a number of cases as text: `1 case`, `2,000 cases`."""
    return counted(number, "case")

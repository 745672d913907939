"""Previews of edited configs, computed in a thread, and explanations of rows."""

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from textual.content import Content as Text
from textual.widgets import Static

from workbench.criteria.registry import descriptions
from workbench.editing.criteria_change import ConfigDraft, Content, cost, faults_of_draft, needs
from workbench.editing.criteria_form import FormRow
from workbench.editing.what_if import Flip, Outlook, WhatIf, is_free
from workbench.files.criteria import parse_config
from workbench.files.faults import Fault, Location, json_path
from workbench.files.json_text.json_edit import EditError
from workbench.judges.base import DEFAULT_SAMPLES
from workbench.results.lines import safe, wrap
from workbench.text.counting import counted, cut_score, few
from workbench.text.safe_text import one_line, plain
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.criteria.form_list import FormList
from workbench.ui.editing.conflicts import save_error_message
from workbench.ui.editing.drafts import json_text
from workbench.ui.widgets.basics import Work

_NAMED = 4
"""Maximum number of cases named on a line."""
_SHOWN = 4_000
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def fitting(text: str, width: int, height: int) -> str:
    """Return the whole sentences of a safe text that fit into `height` lines. "…" follows if some do not.

    If even the first sentence does not fit, it is cut between words.
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
    """Return the explanation of a row, after its value if that may be long. `rows` are all rows of its config."""
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
    return "\n".join([*([plain(text, limit=_SHOWN)] if text else []), *lines])


def _about_criterion(row: FormRow, rows: Sequence[FormRow]) -> str:
    info = descriptions().get(row.criterion)
    if info is None:
        return "A custom metric. This form can only change its threshold."
    samples = next((one.value for one in rows if one.criterion == info.name and one.field.name == "num_samples"), None)
    votes = samples if isinstance(samples, int) and samples > 0 else DEFAULT_SAMPLES
    return f"{info.measures} Score: {info.range}. Cost: {cost(info, votes)}. Needs: {needs(info)}."


def outlook_of_criterion(outlook: Outlook | None, name: str) -> list[str]:
    """Return lines about the results that the last run would have with a criterion's edited settings.

    Verdicts of whole cases are summed up in `outlook_of_all`. Return [] if the criterion scored no case, and these
    verdicts are all known.
    """
    if outlook is None:
        return ["last run: computing"]
    if not outlook.cases:
        return ["no last run, so the effect of changes is unknown"]
    one = outlook.criteria.get(name)
    if one is None or not one.scored:
        if not outlook.unknown:
            return []  # `outlook_of_all` says what happens to the cases.
        return ["last run: not scored by this criterion, so the effect is unknown until the next run"]
    before = f"new for {one.new:,}" if one.new else f"before: {one.before:,}"
    lines = [f"last run: {one.after:,} of {counted(one.scored, 'case')} would pass this criterion ({before})"]
    lines += _flips(one.flips, outlook)
    if one.redo:
        lines.append(f"{counted(one.redo, 'case')} scored with other options: S scores again")
    if one.ways:
        lines.append("would pass: " + " · ".join(f"{way} {count}" for way, count in one.ways.items()))
    return lines


def outlook_of_all(outlook: Outlook | None) -> str:
    """Return how the verdicts of whole cases would change, on one line, or "" without a preview or a last run."""
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
    """Return lines with the cases that would now pass or fail a criterion.

    A case that passes one criterion can still fail another one. A line then also says how many of its cases pass or
    fail overall, unless the overall verdict of any case is unknown.
    """
    whole = {flip.ref: flip.after for flip in outlook.flips}
    lines = []
    for after, words in (("failed", "would now fail"), ("passed", "would now pass")):
        found = [flip for flip in flips if flip.after == after]
        if found:
            both = sum(whole.get(flip.ref) == after for flip in found)
            of_case = "" if both == len(found) else " this criterion"
            if of_case and not outlook.unknown:
                of_case += f", {both or 'none'} of them overall"
            lines.append(f"{len(found):,} {words}{of_case}: {few(map(_named, found), _NAMED)}")
    return lines


def _named(flip: Flip) -> str:
    return one_line(flip.name, limit=40) + ("" if flip.score is None else f" ({cut_score(flip.score, least=2)})")


@dataclass(frozen=True)
class Preview:
    """The preview of a config: the results that the last run would have, and the faults of the config.

    `trouble` is safe text: why there is no preview, or "".
    """

    outlook: Outlook | None = None
    faults: Sequence[Fault] = ()
    trouble: str = ""

    def faults_of(self, row: FormRow) -> list[Fault]:
        """Return the faults of a row's value."""
        return [fault for fault in self.faults if concerns_row(row, fault)]

    def lines_of(self, row: FormRow) -> list[str]:
        """Return safe lines about a row: its faults, and the results that its criterion would have in the last run.

        Rows of options have results only if the criterion can be scored again without an agent or a judge.
        """
        lines = [fault_line(fault) for fault in self.faults_of(row)]
        if row.kind == "threshold" or (row.criterion and is_free(row.criterion)):
            lines += outlook_of_criterion(self.outlook, row.criterion)
        return lines

    def marks(self, rows: Sequence[FormRow]) -> Mapping[Location, str]:
        """Return the styles of rows that have faults, by location."""
        return {
            row.location: "failed" if any(fault.severity == "error" for fault in found) else "not-evaluated"
            for row in rows
            if (found := self.faults_of(row))
        }


@dataclass
class ConfigEdit:
    """A config in the editor. `name` is safe text. `obstacle` is safe text: why the config cannot be saved, or ""."""

    changes: FormChanges
    what_if: WhatIf
    name: str = ""
    obstacle: str = ""
    preview: Preview = field(default_factory=Preview)


class Previewer:
    """A background worker that computes one preview at a time, always of the newest content.

    Holding down a key therefore does not fill a queue. `run` starts a coroutine in the background. `done` gets each
    preview.
    """

    def __init__(self, what_if: WhatIf, run: Callable[[Any], object], done: Callable[[Preview], None]) -> None:
        self._what_if, self._run, self._done = what_if, run, done
        self._next: tuple[ConfigDraft, Content] | None = None
        self._busy = False

    def start(self, draft: ConfigDraft, content: Content) -> None:
        """Preview this content once the current preview is done."""
        self._next = draft, content
        if not self._busy:
            self._busy = True
            self._run(self._work)

    async def _work(self) -> None:
        try:
            while self._next is not None:
                (draft, content), self._next = self._next, None
                self._done(await asyncio.to_thread(self._preview, draft, content))
        finally:
            self._busy = False

    def _preview(self, draft: ConfigDraft, content: Content) -> Preview:
        try:
            config = parse_config(draft.file, draft.bytes_of(content))
            return Preview(self._what_if.with_criteria(config), faults_of_draft(draft, content))
        except EditError as error:
            return Preview(trouble=save_error_message(error))


def fault_line(fault: Fault) -> str:
    """Return a fault as one safe line."""
    mark = "!" if fault.severity == "error" else "?"
    return f"{mark} {one_line(fault.message)}. {one_line(fault.hint)}".rstrip(". ")


def concerns_row(row: FormRow, fault: Fault) -> bool:
    """Return whether a fault concerns the value of a row. A fault of a whole criterion concerns its threshold row."""
    here = json_path(row.location)
    inside = fault.json_path.startswith((f"{here}.", f"{here}["))
    if row.kind == "threshold":
        return fault.json_path in (here, json_path(row.unit))
    return bool(row.location) and (fault.json_path == here or (inside and row.kind in ("json", "lines", "kept")))


class About(Static):
    """An explanation that shows as many whole sentences as fit."""

    def __init__(self) -> None:
        super().__init__("", classes="about", markup=False)
        self._text = ""

    def explain(self, text: str) -> None:
        """Show this safe text."""
        self._text = text
        self.refresh()

    def render(self) -> Text:
        """Return the text that fits."""
        return Text(fitting(self._text, *self.content_size))


class PreviewPanel:
    """The previews of the configs in the editor.

    The widget `about` explains the row under the cursor. The widget `cases` shows the effect on whole cases. `run`
    starts a coroutine in the background. `warn` shows safe text.
    """

    def __init__(
        self, edits: Sequence[ConfigEdit], rows: FormList, warn: Callable[[str], object], run: Callable[[Work], None]
    ) -> None:
        self._edits, self._list, self._warn = edits, rows, warn
        self._previewers = [Previewer(edit.what_if, run, partial(self._take, n)) for n, edit in enumerate(edits)]
        self.about = About()
        self.cases = Static("", classes="cases", markup=False)

    def update(self, file: int, content: Content) -> None:
        """Preview this content of a config. `file` is the config's index."""
        self._previewers[file].start(self._edits[file].changes.draft, content)

    def update_all(self) -> None:
        """Preview the current content of all configs."""
        for file, edit in enumerate(self._edits):
            self.update(file, edit.changes.result)

    def show(self) -> None:
        """Explain the row under the cursor and show its preview."""
        row = self._list.row_or_none
        preview = self._edits[row.file if row is not None else 0].preview
        self.cases.update(Text(outlook_of_all(preview.outlook) if preview.outlook is not None else ""))
        if row is None:
            self.about.explain("No criteria, so nothing is judged. + adds one.")
            return
        rows = [one for one in self._list.all_rows if one.file == row.file]
        self.about.explain("\n".join([*preview.lines_of(row), about(row, rows)]))

    def _take(self, file: int, preview: Preview) -> None:
        if preview.trouble:
            self._warn(preview.trouble)
            return
        self._edits[file].preview = preview
        self._list.marks[file] = preview.marks([row for row in self._list.all_rows if row.file == file])
        self._list.refresh()
        self.show()

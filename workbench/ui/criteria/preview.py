"""Previews of edited configs, computed in a thread, and explanations of rows."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from textual.content import Content as Text
from textual.widgets import Static

from workbench.criteria.registry import descriptions
from workbench.editing.criteria_change import Content, cost, faults_of_draft, needs
from workbench.editing.criteria_form import FormRow
from workbench.editing.what_if import Flip, Outlook, is_free
from workbench.files.criteria import parse_config
from workbench.files.faults import Fault, Location, json_path
from workbench.files.json_text.json_edit import EditError
from workbench.judges.base import DEFAULT_SAMPLES
from workbench.results.cells import cut
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
    """The preview of a config: the results that the last run would have, and the faults of the config."""

    outlook: Outlook | None = None
    faults: Sequence[Fault] = ()

    def faults_of(self, row: FormRow) -> list[Fault]:
        """Return the faults of a row's value."""
        return [fault for fault in self.faults if concerns_row(row, fault)]

    def lines_of(self, row: FormRow) -> list[str]:
        """Return safe lines about a row: its faults, and the results that its criterion would have in the last run.

        Rows of options have results only if the criterion can be scored again without an agent or a judge.
        """
        lines = [
            f"{'!' if fault.severity == 'error' else '?'} {one_line(f'{fault.message}. {fault.hint}')}".rstrip(". ")
            for fault in self.faults_of(row)
        ]
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


def concerns_row(row: FormRow, fault: Fault) -> bool:
    """Return whether a fault concerns the value of a row. A fault of a whole criterion concerns its threshold row."""
    here = json_path(row.location)
    inside = fault.json_path.startswith((f"{here}.", f"{here}["))
    if row.kind == "threshold":
        return fault.json_path in (here, json_path(row.unit))
    return bool(row.location) and (fault.json_path == here or (inside and row.kind in ("json", "lines", "kept")))


class About(Static):
    """An explanation, as safe text. If it does not fit, its last line ends with "…"."""

    def __init__(self) -> None:
        super().__init__("", classes="about", markup=False)
        self.text = ""

    def explain(self, text: str) -> None:
        """Show this text."""
        self.text = text
        self.refresh()

    def render(self) -> Text:
        """Return the lines that fit."""
        width, height = self.content_size
        lines = [line.plain for line in wrap(safe(self.text), max(width, 1))]
        if len(lines) > height > 0:
            lines[height - 1 :] = [f"{cut(lines[height - 1], width - 2)} …".replace("… …", "…")]
        return Text("\n".join(lines))


class PreviewPanel:
    """The previews of the configs in the editor, computed in a thread, one at a time, always of the newest content.

    The widget `about` explains the row under the cursor. The widget `cases` shows the effect on whole cases. `run`
    starts a coroutine in the background. `warn` shows safe text.
    """

    def __init__(
        self, edits: Sequence[FormChanges], rows: FormList, warn: Callable[[str], object], run: Callable[[Work], None]
    ) -> None:
        self._edits, self._list, self._warn, self._run = edits, rows, warn, run
        self._previews = [Preview() for _ in edits]
        self._waiting: dict[int, Content] = {}
        """The content to preview next, by index of the config. Holding down a key therefore fills no queue."""
        self._busy = False
        self.about = About()
        self.cases = Static("", classes="cases", markup=False)

    def update(self, file: int, content: Content) -> None:
        """Preview this content of a config. `file` is the config's index."""
        self._waiting[file] = content
        if not self._busy:
            self._busy = True
            self._run(self._work)

    def update_all(self) -> None:
        """Preview the current content of all configs."""
        for file, edit in enumerate(self._edits):
            self.update(file, edit.result)

    async def _work(self) -> None:
        try:
            while self._waiting:
                file, content = self._waiting.popitem()
                try:
                    self._previews[file] = await asyncio.to_thread(_preview, self._edits[file], content)
                except EditError as error:
                    self._warn(save_error_message(error))
                    continue
                rows = [row for row in self._list.all_rows if row.file == file]
                self._list.marks[file] = self._previews[file].marks(rows)
                self._list.refresh()
                self.show()
        finally:
            self._busy = False

    def show(self) -> None:
        """Explain the row under the cursor and show its preview."""
        row = self._list.row_or_none
        preview = self._previews[row.file if row is not None else 0]
        self.cases.update(Text(outlook_of_all(preview.outlook)))
        if row is None:
            self.about.explain("No criteria, so nothing is judged. + adds one.")
            return
        rows = [one for one in self._list.all_rows if one.file == row.file]
        self.about.explain("\n".join([*preview.lines_of(row), about(row, rows)]))


def _preview(edit: FormChanges, content: Content) -> Preview:
    config = parse_config(edit.draft.file, edit.draft.bytes_of(content))
    return Preview(edit.what_if.with_criteria(config), faults_of_draft(edit.draft, content))
